"""Input formats, one adapter a file, all behind `base.TraceFormat`."""

from __future__ import annotations

from litehit.errors import OptionError
from service.formats.base import TraceFormat
from service.formats.mooncake import MooncakeFormat
from service.formats.native import NativeFormat
from service.formats.tair import TairFormat

FORMATS: dict[str, TraceFormat] = {each.name: each for each in (NativeFormat(), TairFormat(), MooncakeFormat())}
"""Every format by its name."""


def get(name: str) -> TraceFormat:
    """The format of a name.

    Raises:
        OptionError: there is none.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise OptionError(f"format {name!r} is unknown; use one of {', '.join(FORMATS)}") from None
