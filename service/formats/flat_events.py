"""The fast path for many request events at once: flat ones only, and never another answer than the record's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from litehit.window import windows_of
from service.formats.fast_event import EventFields
from service.formats.flat_lines import read_flat

_INTEGERS = ("timestamp_ns", "input_token_len", "trace_block_size_tokens", "input_len")
_STRINGS = ("type", "instance_id", "trace_id")
_KEYS = "block_keys"
_KINDS = frozenset({b"request", b"get"})
_WINDOW_BYTES = 2**19  # with its keys it stays in a processor's cache


def read_flat_events(records: Sequence[bytes]) -> Iterator[EventFields | None]:
    """The event in each record; None where the record is for the format's `parse`, and where it is of no event.

    The members that a template of instance ids looks at are not read.
    """
    # A line feed may stand between the tokens of a record, which is no line then.
    lines = ((place, record if b"\n" not in record else b"") for place, record in enumerate(records))
    for window in windows_of(lines, _WINDOW_BYTES):
        text = window.text
        flat = read_flat(window, _INTEGERS, _KEYS, _STRINGS)
        rows = zip(
            flat.is_flat.tolist(),
            flat.given.tolist(),
            flat.values.tolist(),
            flat.bounds.tolist(),
            flat.key_firsts.tolist(),
            (flat.key_firsts + flat.key_counts).tolist(),
            strict=True,
        )
        for is_flat, given, (time_ns, length, block, _), bounds, first_key, end_key in rows:
            has_time, has_length, has_block, has_other_length, has_kind, has_instance, has_trace, has_keys = given
            kind, kind_end, instance, instance_end, trace, trace_end = bounds
            if (
                not (is_flat and has_kind and has_keys)
                or has_other_length
                or text[kind:kind_end] not in _KINDS
                or (has_instance and instance == instance_end)
                or (has_block and block < 1)
            ):
                yield None
                continue
            yield EventFields(
                text[instance:instance_end].decode("ascii") if has_instance else None,
                text[trace:trace_end].decode("ascii") if has_trace else "",
                time_ns if has_time else None,
                flat.keys[first_key:end_key],
                length if has_length else 0,
                block if has_block else None,
                {},
            )
