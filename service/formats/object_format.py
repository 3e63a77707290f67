"""What the formats of one JSON object a record share."""

from __future__ import annotations

from typing import Any, ClassVar

from service.formats.fast_object import Wanted
from service.formats.fields import read_members
from service.formats.naming import STATED, Naming
from service.formats.trace_format import TraceFormat


class ObjectFormat(TraceFormat):
    """Reads the members that a format wants and those that name the instance, in one go.

    Args:
        naming: how the instance is told.

    Attributes:
        wanted: what the format itself wants.
    """

    wanted: ClassVar[Wanted]

    def __init__(self, naming: Naming = STATED) -> None:
        self._naming = naming
        self._members = naming.join(self.wanted)

    def _read(self, record: bytes) -> dict[str, Any]:
        """As `fields.read_members`."""
        return read_members(record, self._members)
