"""Reading whole windows of a trace: in columns what a format reads so, by its `parse` whatever it leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litehit.errors import InvalidRequest
from litehit.registration import Registration
from litehit.request import Request
from litehit.window import Window
from litehit.window_requests import ReadWindow, WindowRequests
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext, TraceFormat


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
        contents = trace_format.parse_many(
            [record for _, _, record in records],
            [RecordContext(instance_id, number, timestamp_ns=None) for _, number, _ in records],
        )
        numbers: list[int] = []
        places: list[int] = []
        requests: list[Request] = []
        ignored = 0
        fault: tuple[int, InvalidRequest] | None = None
        for (place, number, _), content in zip(records, contents, strict=True):
            if isinstance(content, Registration):
                fault = number, _registers(content)
            elif isinstance(content, FormatError):
                fault = number, content
            elif content is None:
                ignored += 1
            else:
                numbers.append(number)
                places.append(place)
                requests.append(content)
            if fault is not None:
                break
        read_one_by_one = WindowRequests.from_requests(numbers, requests)
        if plain is None:
            return ReadWindow(len(window.numbers), read_one_by_one, ignored, fault)
        merged = plain.requests.merge(read_one_by_one, plain.places, np.array(places, np.int64))
        if fault is not None:
            before = np.flatnonzero(plain.places < place)
            merged = merged.select(np.arange(len(before) + len(places)))
        return ReadWindow(len(window.numbers), merged, ignored, fault)

    return read


def _registers(registration: Registration) -> FormatError:
    return FormatError(
        Reason.REGISTRATION_REFUSED,
        f"it registers {registration.instance_id!r}, which only the topic takes; register the instance in the "
        f"registry file and remove the line",
    )
