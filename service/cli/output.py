"""Where a command's result goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from service.errors import OutputClosed

STANDARD = Path("-")


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Where to write a result: standard output for `-`, else a file that appears whole or not at all.

    A device or a pipe is written to as it is: a rename would put a file in its place.

    Raises:
        OutputClosed: whoever read standard output did not wait for its end.
    """
    if path == STANDARD:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # At its end Python would try once more to write what is left, and say so in its own words.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise OutputClosed from None
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    from litehit.atomic_file import atomic_file

    with atomic_file(path) as sink:
        yield sink
