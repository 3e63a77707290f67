"""A store on S3, Google Cloud Storage, Azure, or in memory for tests."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError
from obstore.store import from_url

from service.archive.errors import AlreadyExists, CannotReplace, CannotSetAside, Changed, NotFound, StoreError
from service.archive.store import DAMAGED, Data, StoredFile, check_path

if TYPE_CHECKING:  # they exist for types alone
    from obstore import ObjectMeta, UpdateVersion

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectStore:
    """Objects below a URL; exclusive create and replace are conditional puts (If-None-Match and If-Match).

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

    def replace(self, path: str, data: Data, version: str) -> None:
        """See `Store.replace`."""
        try:
            with self._errors(path):
                found = obstore.head(self._store, check_path(path))
                if _version(found) != version:
                    raise Changed(path)
                self._put_if(path, data, found)
        except NotFound:
            raise Changed(path) from None

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        with self._errors(path):
            return bytes(obstore.get(self._store, check_path(path)).bytes())

    def open(self, path: str) -> pa.NativeFile:
        """See `Store.open`."""
        with self._errors(path):
            found = obstore.head(self._store, check_path(path))
        return pa.PythonFile(_Ranges(self, path, found["size"], found["e_tag"]), mode="r")

    def list(self, prefix: str = "") -> list[StoredFile]:
        """See `Store.list`."""
        with self._errors(prefix):
            found = [
                StoredFile(meta["path"], meta["size"], _version(meta), _nanoseconds(meta["last_modified"]))
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

    def range(self, path: str, start: int, end: int, e_tag: str | None) -> memoryview:
        """Bytes `start:end` of an object.

        Raises:
            Changed: its ETag is another one; None asks for nothing.
        """
        try:
            with self._errors(path):
                answer = obstore.get(self._store, path, options={"range": (start, end), "if_match": e_tag})
                return memoryview(answer.bytes())
        except NotFound:
            raise Changed(path) from None

    def _put_if(self, path: str, data: Data, found: ObjectMeta) -> None:
        """Put where the object still is the one found. Services ask for the ETag; Google's for the version."""
        if found["e_tag"] is None:
            raise CannotReplace(f"store {self.url}: {path} has no ETag, so it can't be replaced safely")
        condition: UpdateVersion = {"e_tag": found["e_tag"]}
        if found["version"] is not None:
            condition["version"] = found["version"]
        try:
            obstore.put(self._store, path, data, mode=condition)
        except (NotSupportedError, NotImplementedError) as error:
            raise CannotReplace(
                f"store {self.url}: {path}: the service has no conditional put, or it is switched off: "
                f"{_first_line(error)}"
            ) from error

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except AlreadyExistsError:
            raise AlreadyExists(path) from None
        except PreconditionError:
            raise Changed(path) from None
        except FileNotFoundError:
            raise NotFound(path) from None
        except (BaseError, OSError) as error:
            raise StoreError(f"store {self.url}: {path}: {_first_line(error)}") from error


def _version(meta: ObjectMeta) -> str:
    return meta["e_tag"] or str(meta["last_modified"])


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _first_line(error: Exception) -> str:
    """What happened; obstore appends its own debug text."""
    return str(error).splitlines()[0]


class _Ranges(io.RawIOBase):
    """An object as a file: each read is one ranged request, so a Parquet footer costs no download."""

    def __init__(self, store: ObjectStore, path: str, size: int, e_tag: str | None) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._e_tag = e_tag
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
        buffer[:count] = self._store.range(self._path, self._position, self._position + count, self._e_tag)
        self._position += count
        return count
