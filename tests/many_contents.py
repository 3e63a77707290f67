"""What is read of many records at once, against what each is by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from litehit.request import Request
from service.formats.base import Content, FormatError
from service.formats.contents import Contents, Contexts
from service.formats.trace_format import TraceFormat


def contexts_of(records: Sequence[bytes]) -> Contexts:
    """Of some records; what is known of each differs."""
    places = range(len(records))
    return Contexts(
        [None if place % 3 == 2 else f"key-{place % 2}" for place in places],
        [100 + place for place in places],
        [None if place % 4 == 3 else 7 + place for place in places],
        ["told" if place % 5 == 4 else "" if place % 5 == 3 else None for place in places],
    )


def check_many(trace_format: TraceFormat, records: Sequence[bytes]) -> None:
    """A format's `parse_many` makes of records what its `parse` makes of each."""
    contexts = contexts_of(records)
    contents = trace_format.parse_many(records, contexts)
    expected = Contents.read_one_by_one(trace_format.parse, records, contexts, range(len(records)))
    assert _listed(contents) == _listed(expected)


def _listed(contents: Contents) -> list[tuple[int, Any]]:
    assert contents.requests.columns.keys.dtype == np.int64
    return [
        *((place, _comparable(request)) for place, request in contents.requests.requests()),
        *((place, _comparable(other)) for place, other in contents.others),
    ]


def _comparable(content: Content | FormatError) -> Any:
    if isinstance(content, FormatError):
        return content.reason, str(content)
    if isinstance(content, Request):
        return content._replace(block_keys=np.array(0)), content.block_keys.tolist()
    return content
