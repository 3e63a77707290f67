"""What stands in the records of a window: in columns what a format reads so, by its `parse` whatever it leaves."""

from __future__ import annotations

from litehit.window import Window
from service.formats.contents import Contents, Contexts
from service.formats.trace_format import TraceFormat


def window_contents(
    trace_format: TraceFormat, window: Window, instance_id: str | None, time_ns: int | None = None
) -> Contents:
    """What stands in a window's records that are not blank; their places are those in the window.

    Args:
        trace_format: the format.
        window: the records.
        instance_id: the instance of records that name none.
        time_ns: the time of records that state none.
    """
    plain = trace_format.read_plain(window, instance_id)
    left = None if plain is None else frozenset(plain.left.tolist())
    at_once = None if plain is None else Contents(plain.requests.numbered(plain.places), ())
    if at_once is not None and not left:
        return at_once
    listed = [
        (place, number, record)
        for place, (number, record) in enumerate(window.records())
        if (left is None or place in left) and record.strip()
    ]
    contexts = Contexts.of_lines(instance_id, [number for _, number, _ in listed], time_ns)
    rest = trace_format.parse_many([record for _, _, record in listed], contexts)
    rest = rest.at([place for place, _, _ in listed])
    return rest if at_once is None else at_once.join(rest)
