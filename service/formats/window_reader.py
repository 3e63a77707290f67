"""Reading whole windows of a trace: in columns what a format reads so, by its `parse` whatever it leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litehit.registration import Registration
from litehit.window import Window
from litehit.window_requests import ReadWindow
from schemas.dead_letter import Reason
from service.formats.base import FormatError
from service.formats.contents import Contexts
from service.formats.trace_format import TraceFormat


def window_reader(trace_format: TraceFormat, instance_id: str | None) -> Callable[[Window], ReadWindow]:
    """How `litehit.replay` reads a window of a format.

    Args:
        trace_format: the format.
        instance_id: the instance of records that name none.
    """

    def read(window: Window) -> ReadWindow:
        plain = trace_format.read_plain(window, instance_id)
        if plain is not None and len(plain.left) == 0:
            return ReadWindow(len(window.numbers), plain.requests, 0)
        left = None if plain is None else frozenset(plain.left.tolist())
        records = [
            (place, number, record)
            for place, (number, record) in enumerate(window.records())
            if (left is None or place in left) and record.strip()
        ]
        places, numbers = [place for place, _, _ in records], [number for _, number, _ in records]
        contents = trace_format.parse_many(
            [record for _, _, record in records], Contexts.of_lines(instance_id, numbers)
        )
        rest = contents.requests
        rest_places = np.array(places, np.int64)[rest.numbers]
        rest = rest.numbered(np.array(numbers, np.int64)[rest.numbers])
        merged = rest if plain is None else plain.requests.merge(rest, plain.places, rest_places)
        others = contents.others
        faults = ((ignored, row, other) for ignored, (row, other) in enumerate(others) if other is not None)
        first = next(faults, None)
        if first is None:
            return ReadWindow(len(window.numbers), merged, len(others))
        ignored, row, other = first
        fault = _registers(other) if isinstance(other, Registration) else other
        before = np.count_nonzero(rest_places < places[row])
        if plain is not None:
            before += np.count_nonzero(plain.places < places[row])
        return ReadWindow(len(window.numbers), merged.select(np.arange(before)), ignored, (numbers[row], fault))

    return read


def _registers(registration: Registration) -> FormatError:
    return FormatError(
        Reason.REGISTRATION_REFUSED,
        f"it registers {registration.instance_id!r}, which only the topic takes; register the instance in the "
        f"registry file and remove the line",
    )
