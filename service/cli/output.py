"""Where a command's result goes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

STANDARD = Path("-")


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """The file to write a result to, or standard output for `-`."""
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as sink:
        yield sink
