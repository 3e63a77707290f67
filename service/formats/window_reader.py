"""Reading whole windows of a trace for `litehit.replay`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litehit.registration import Registration
from litehit.window import Window
from litehit.window_requests import ReadWindow
from schemas.dead_letter import Reason
from service.formats.base import FormatError
from service.formats.trace_format import TraceFormat
from service.formats.window_contents import window_contents


def window_reader(trace_format: TraceFormat, instance_id: str | None) -> Callable[[Window], ReadWindow]:
    """How `litehit.replay` reads a window of a format.

    Args:
        trace_format: the format.
        instance_id: the instance of records that name none.
    """

    def read(window: Window) -> ReadWindow:
        contents = window_contents(trace_format, window, instance_id)
        places, others = contents.requests.numbers, contents.others
        requests = contents.requests.numbered(window.numbers_at(places))
        faults = ((ignored, place, other) for ignored, (place, other) in enumerate(others) if other is not None)
        first = next(faults, None)
        if first is None:
            return ReadWindow(len(window.numbers), requests, len(others))
        ignored, place, other = first
        fault = _registers(other) if isinstance(other, Registration) else other
        before = np.arange(np.count_nonzero(places < place))
        return ReadWindow(len(window.numbers), requests.select(before), ignored, (window.numbers[place], fault))

    return read


def _registers(registration: Registration) -> FormatError:
    return FormatError(
        Reason.REGISTRATION_REFUSED,
        f"it registers {registration.instance_id!r}, which only the topic takes; register the instance in the "
        f"registry file and remove the line",
    )
