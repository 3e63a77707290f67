"""A JSON number with a fraction or an exponent, as it is written: no double ever holds it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, repr=False)
class NumberText:
    """The number's text."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def decimal(self) -> Decimal:
        """The number itself.

        Raises:
            ArithmeticError: its exponent is beyond what a Decimal holds.
        """
        return Decimal(self.text)
