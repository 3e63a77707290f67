"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that gets its name when the block ends well.

    Written to `<path>.tmp`, flushed, fsynced, renamed, and the folder fsynced. Where the block raises, the temporary
    file is removed and whatever was at `path` stays.

    Raises:
        IsADirectoryError: `path` is a folder; nothing was written.
        BlockingIOError: another process, or another thread, is writing this file.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f"{path.name}.tmp")
    with _open_alone(temporary) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
                error.filename = str(path)  # a write knows only its descriptor
            raise
    _fsync_folder(path.parent)


def _open_alone(path: Path) -> BinaryIO:
    """Open a file that is locked until it is closed; what a killed process left in it is cut off."""
    while True:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, its writer may have renamed it: then it is published and no longer ours.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                return file
        except BlockingIOError:
            file.close()
            raise BlockingIOError(
                errno.EAGAIN, "another process is writing it; wait for its end, or write elsewhere", str(path)
            ) from None
        except FileNotFoundError:
            pass
        file.close()


def _fsync_folder(folder: Path) -> None:
    # Without it a crash may forget the new name.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
