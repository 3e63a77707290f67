"""A store on S3, Google Cloud Storage, Azure, or in memory for tests."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import from_url

from service.archive.errors import AlreadyExists, CannotSetAside, NotFound, StoreError
from service.archive.store import DAMAGED, Data, StoredFile, check_path


class ObjectStore:
    """Objects below a URL; the exclusive create is a conditional put (If-None-Match).

    Args:
        url: `s3://bucket/prefix`, `gs://...`, `az://...` or `memory://`.

    Raises:
        StoreError: the URL or the environment's configuration is unusable.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        with self._errors(url):
            self._store = from_url(url)

    def create(self, path: str, data: Data) -> None:
        """See `Store.create`."""
        with self._errors(path):
            obstore.put(self._store, check_path(path), data, mode="create")

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        with self._errors(path):
            return bytes(obstore.get(self._store, check_path(path)).bytes())

    def open(self, path: str) -> pa.NativeFile:
        """See `Store.open`."""
        with self._errors(path):
            size = obstore.head(self._store, check_path(path))["size"]
        return pa.PythonFile(_Ranges(self, path, size), mode="r")

    def list(self, prefix: str = "") -> list[StoredFile]:
        """See `Store.list`."""
        with self._errors(prefix):
            found = [
                StoredFile(meta["path"], meta["size"], meta["e_tag"] or str(meta["last_modified"]))
                for page in obstore.list(self._store, prefix=check_path(prefix) if prefix else None)
                for meta in page
            ]
        return sorted(found, key=lambda file: file.path)

    def delete(self, path: str) -> None:
        """See `Store.delete`."""
        try:
            with self._errors(path):
                obstore.delete(self._store, check_path(path))
        except NotFound:  # some services say so, others do not
            return

    def set_aside(self, path: str, version: str) -> str | None:
        """See `Store.set_aside`."""
        # To copy and to delete are two steps, between which the name may come to stand for another archiver's object.
        raise CannotSetAside(
            f"store {self.url}: objects can't be set aside safely while others publish; stop every archiver, rename it "
            f"{path}{DAMAGED} and start again"
        )

    def range(self, path: str, start: int, end: int) -> memoryview:
        """Bytes `start:end` of an object."""
        with self._errors(path):
            return memoryview(obstore.get_range(self._store, path, start=start, end=end))

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except AlreadyExistsError:
            raise AlreadyExists(path) from None
        except FileNotFoundError:
            raise NotFound(path) from None
        except (BaseError, OSError) as error:
            # obstore appends its own debug text after the first line.
            raise StoreError(f"store {self.url}: {path}: {str(error).splitlines()[0]}") from error


class _Ranges(io.RawIOBase):
    """An object as a file: each read is one ranged request, so a Parquet footer costs no download."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = origin + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = min(len(buffer), self._size - self._position)
        if count <= 0:
            return 0
        buffer[:count] = self._store.range(self._path, self._position, self._position + count)
        self._position += count
        return count
