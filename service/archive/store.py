"""Where segments and snapshots live: a port that publishes by exclusive create and replaces on condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

Data: TypeAlias = bytes | memoryview
"""What a file is made of; a memoryview is of bytes (`cast("B")`)."""

DAMAGED = ".damaged"
"""What the name of a file that was set aside ends with; no reader takes it for what it was."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file as a listing shows it.

    Attributes:
        path: its name, relative to the store, with `/` between parts.
        size: its length in bytes.
        version: changes whenever the file's content does; comparable for equality only.
        modified_ns: when this version was written, by the store's clock, nanoseconds since 1970.
    """

    path: str
    size: int
    version: str
    modified_ns: int


class Store(Protocol):
    """A set of files. Paths are relative, with `/` between parts.

    A file is whole as soon as it is visible, and, once `create` or `replace` returned, it outlives a crash. Every
    method raises StoreError when the store can't be reached or written to.
    """

    url: str

    def create(self, path: str, data: Data) -> None:
        """Publish a file. Of several callers with one path exactly one succeeds.

        Raises:
            AlreadyExists: the path is taken. On an object store the taker may have been this very call, where a
                first attempt arrived and its answer was lost: read the file to know.
        """

    def replace(self, path: str, data: Data, version: str) -> None:
        """Put another file in the place of one, in one step: a reader finds the old one or the new one.

        Of several callers with one version at most one succeeds.

        Args:
            path: the file.
            data: the new one.
            version: as it was listed.

        Raises:
            Changed: the file is gone or has another version. On an object store the new one may be this very call's,
                where a first attempt arrived and its answer was lost: read the file to know.
            CannotReplace: the store has no such condition.
        """

    def read(self, path: str) -> bytes:
        """The whole file.

        Raises:
            NotFound: no file has the path.
        """

    def open(self, path: str) -> pa.NativeFile:
        """The file for random access, as pyarrow reads it; close it after use.

        All that is read is of the version that was opened. Where the store does not keep that, reading raises Changed.

        Raises:
            NotFound: no file has the path.
        """

    def list(self, prefix: str = "") -> list[StoredFile]:
        """The files below a folder (`""`: all), sorted by path."""

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is no error."""

    def set_aside(self, path: str, version: str) -> str | None:
        """Give a damaged file another name, `<path>.damaged`, so that its own is free; its bytes are not touched.

        Args:
            path: the file.
            version: as it was listed. Another one is left where it is: somebody was quicker.

        Returns:
            The new name; None where the file is not there in this version.

        Raises:
            CannotSetAside: the store has no way to do it that is safe while others publish.
        """


def check_path(path: str) -> str:
    """The path itself, if it is a plain relative one.

    Raises:
        ValueError: a part is empty, `.` or `..`.
    """
    if any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"store path {path!r} has an empty, '.' or '..' part")
    return path
