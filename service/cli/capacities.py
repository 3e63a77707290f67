"""Capacities on the command line: `--capacity-gb 8 64 -1`, or the option once for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

OPTION = "--capacity-gb"


def _capacity(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        several = ", each as a word of its own: 8 64" if "," in text else ""
        raise typer.BadParameter(f"{text!r} is no number; give binary GB, or -1 for infinite{several}") from None


Capacities: TypeAlias = Annotated[
    list[float],
    typer.Option(
        OPTION,
        metavar="G...",
        parser=_capacity,
        help="Capacities in binary GB; negative is infinite, 0 and duplicates count.",
    ),
]


class CapacitiesCommand(TyperCommand):
    """A command whose `--capacity-gb` takes as many numbers as follow it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option for each number, which is the form the parser knows."""
        return super().parse_args(ctx, list(_repeat_option(args)))


def _repeat_option(args: Sequence[str]) -> Iterator[str]:
    follows = False
    for position, argument in enumerate(args):
        if argument == "--":
            yield from args[position:]
            return
        first = position > 0 and args[position - 1] == OPTION
        if follows and not first and _is_number(argument):
            yield OPTION
        elif not first:
            follows = argument == OPTION or argument.startswith(f"{OPTION}=")
        yield argument


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
