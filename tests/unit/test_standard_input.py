"""Standard input is read as it comes, and waiting for it ends when it is stopped."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from service.standard_input import StandardInput


@pytest.fixture
def tap(monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """Writes to what is standard input."""
    end, begin = os.pipe()
    with os.fdopen(end, "rb") as stream, os.fdopen(begin, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        yield writer


def test_what_is_there_is_read_at_once_up_to_the_end(tap: BinaryIO) -> None:
    with closing(StandardInput()) as standard_input:
        tap.write(b"x" * 30_000)
        read = b""
        while len(read) < 30_000:
            read += standard_input.read(20_000)
        tap.write(b"more")
        assert standard_input.read(20_000) == b"more"
        tap.close()
        assert standard_input.read(20_000) == b""
    assert read == b"x" * 30_000


def test_it_stops_while_it_is_waited_for(tap: BinaryIO) -> None:
    with closing(StandardInput()) as standard_input, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(standard_input.read, 10)
        standard_input.stop()
        assert waiting.result(60) == b""
        tap.write(b"more")
        assert standard_input.read(10) == b""


def test_it_may_lie_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"text")))
    with closing(StandardInput()) as standard_input:
        assert [standard_input.read(3), standard_input.read(3), standard_input.read(3)] == [b"tex", b"t", b""]
