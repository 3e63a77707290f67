"""Records of a window stand at their places, whether they are read all at once or one by one."""

from __future__ import annotations

import pytest

from litehit.window import windows_of
from service import formats
from service.formats.window_contents import window_contents

PLAIN = b'{"timestamp": 1, "input_length": 600, "hash_ids": [1, 2]}'
ESCAPED = b'{"timestamp": 2, "input_length": 600, "hash_ids": [1, 2], "x": "\\n"}'
WRONG = b'{"timestamp": 3, "input_length": 600, "hash_ids": [1]}'
UNTIMED = b'{"type": "request", "block_keys": []}'
WRITE = b'{"type": "write"}'


@pytest.mark.parametrize(
    ("name", "lines", "numbers", "requests", "others"),
    [
        ("mooncake", [b"", PLAIN, b" ", PLAIN], [4, 5, 6, 7], [(1, 1), (3, 1)], []),
        ("mooncake", [ESCAPED, PLAIN, b"", ESCAPED, WRONG], range(1, 6), [(0, 2), (1, 1), (3, 2)], [4]),
        ("mooncake", [WRONG, WRONG], range(2), [], [0, 1]),
        ("native", [b"", UNTIMED, WRITE, UNTIMED], range(4), [(1, 9), (3, 9)], [2]),
        ("native", [b""], [1], [], []),
    ],
)
def test_contents_stand_at_their_places(
    name: str, lines: list[bytes], numbers: list[int], requests: list[tuple[int, int]], others: list[int]
) -> None:
    (window,) = windows_of(zip(numbers, lines, strict=True))
    contents = window_contents(formats.get(name), window, "default", time_ns=9)
    unit = 1_000_000 if name == "mooncake" else 1
    assert [(place, request.timestamp_ns) for place, request in contents.requests.requests()] == [
        (place, time * unit) for place, time in requests
    ]
    assert [place for place, _ in contents.others] == others
    if name == "mooncake":
        assert list(contents.requests.columns.trace_ids) == [f"mooncake-{numbers[place]}" for place, _ in requests]
