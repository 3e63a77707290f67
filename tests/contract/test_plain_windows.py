"""Records that a format reads all at once are what it makes of them one by one, and no others are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from litehit.errors import InvalidRequest
from litehit.request import Request
from litehit.window import windows_of
from litehit.window_requests import ReadWindow
from service import formats
from service.format_names import LINE_FORMATS, FormatName
from service.formats.base import RecordContext
from service.formats.naming import naming_by
from service.formats.trace_format import TraceFormat
from service.formats.window_reader import window_reader
from tests.contract.test_format_fuzz import mutated, real_lines

WINDOWS = 150


def plain(number: int, request: Request) -> tuple[Any, ...]:
    return (number, *request._replace(block_keys=request.block_keys.tolist()))


def one_by_one(
    trace_format: TraceFormat, instance_id: str | None, lines: list[bytes]
) -> tuple[list[tuple[Any, ...]], int, tuple[int, str] | None]:
    requests: list[tuple[Any, ...]] = []
    ignored = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            request = trace_format.parse(line, RecordContext(instance_id, number, None))
        except InvalidRequest as error:
            return requests, ignored, (number, str(error))
        if isinstance(request, Request):
            requests.append(plain(number, request))
        else:
            ignored += 1
    return requests, ignored, None


def all_at_once(read: ReadWindow) -> tuple[list[tuple[Any, ...]], int, tuple[int, str] | None]:
    fault = None if read.fault is None else (read.fault[0], str(read.fault[1]))
    return [plain(number, request) for number, request in read.requests.requests()], read.ignored, fault


@pytest.mark.parametrize("instance_id", ["default", None])
@pytest.mark.parametrize("template", [None, "{timestamp|none}"])
@pytest.mark.parametrize("name", LINE_FORMATS)
def test_a_window_is_its_records(name: FormatName, template: str | None, instance_id: str | None) -> None:
    rng = random.Random(f"windows of {name}")
    trace_format = formats.get(name, naming_by(template))
    originals = real_lines(name)
    for _ in range(WINDOWS):
        lines = [
            (mutated(rng, name, line) if line.strip() and rng.random() < 0.15 else line)
            .replace(b"\n", b" ")
            .rstrip(b"\r")
            for line in rng.choices([*originals, b"", b" \t"], k=8)
        ]
        (window,) = windows_of(enumerate(lines, 1))
        read = window_reader(trace_format, instance_id)(window)
        assert read.records == len(lines)
        assert all_at_once(read) == one_by_one(trace_format, instance_id, lines)


@pytest.mark.parametrize(("name", "is_read"), [(FormatName.MOONCAKE, True), (FormatName.NATIVE, False)])
def test_usual_lines_are_read_all_at_once(name: FormatName, is_read: bool) -> None:
    lines = real_lines(name)
    (window,) = windows_of(enumerate(lines, 1))
    read = formats.get(name).read_plain(window, "default")
    assert (read is not None) == is_read
    if read is not None:
        assert read.places.tolist() == [place for place in range(len(lines)) if place not in read.left.tolist()]
        assert len(read.places) >= len(lines) / 2
