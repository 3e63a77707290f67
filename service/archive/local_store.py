"""A store in a local folder that survives power loss."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from service.archive.errors import AlreadyExists, Changed, NotFound, StoreError
from service.archive.store import DAMAGED, Data, StoredFile, check_path
from service.crash_points import CrashPoint, crash_point

_TEMPORARY = ".tmp-"


class LocalStore:
    """Files below a folder.

    A file is written under a temporary name in its own folder, fsynced, then hard-linked to its name: link fails where
    the name exists, so it is the exclusive create, and what the name shows is whole. Last, the folder is fsynced. To
    replace a file is the same with a rename, under a lock of the folder, as to set one aside is.

    Args:
        root: the folder.
        for_writing: make the folder, try a write, and remove temporary files that no living process holds.

    Raises:
        StoreError: the folder is absent (when reading), no folder, not writable, or without hard links.
    """

    def __init__(self, root: Path, *, for_writing: bool = True) -> None:
        self.root = root.absolute()
        self.url = str(root)
        self._identity: tuple[int, int] | None = None
        if not for_writing:
            if not self.root.is_dir():
                found = "a file, no folder" if self.root.exists() else "no such folder"
                raise StoreError(f"store {self.url}: {found}; give the folder of `litehit serve --store`")
            self._identity = _identity_of(self.root)
            return
        try:
            _make_folder(self.root, Path(self.root.anchor))
            self._remove_stale()
            probe = self.root / f"{_TEMPORARY}{secrets.token_hex(8)}-probe"
            _publish(probe, b"")
            probe.unlink(missing_ok=True)  # another process that starts may have taken it for abandoned
            self._identity = _identity_of(self.root)
        except OSError as error:
            raise StoreError(
                f"store {self.url}: {error.strerror or error}; give a folder that this user may write to, "
                f"on a file system with hard links"
            ) from error

    def create(self, path: str, data: Data) -> None:
        """See `Store.create`."""
        target = self._locate(path)
        with self._errors(path):
            _make_folder(target.parent, self.root)
            _publish(target, data)

    def replace(self, path: str, data: Data, version: str) -> None:
        """See `Store.replace`."""
        target = self._locate(path)
        with self._errors(path):
            if not target.parent.is_dir():
                raise Changed(path)
            with _written_beside(target, data) as temporary:
                with _locked_folder(target.parent):
                    if _version_of(target) != version:
                        raise Changed(path)
                    temporary.rename(target)
                _sync_folder(target.parent)

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        with self._errors(path):
            return self._locate(path).read_bytes()

    def open(self, path: str) -> pa.NativeFile:
        """See `Store.open`."""
        with self._errors(path):
            return pa.OSFile(str(self._locate(path)))

    def list(self, prefix: str = "") -> list[StoredFile]:
        """See `Store.list`."""
        top = self._locate(prefix) if prefix else self.root
        with self._errors(prefix):
            found = sorted(self._walk(top), key=lambda file: file.path)
            self._refuse_if_gone()  # meanwhile, when what was not there any more looked like nothing
            return found

    def delete(self, path: str) -> None:
        """See `Store.delete`."""
        target = self._locate(path)
        with self._errors(path):
            target.unlink(missing_ok=True)
            if target.parent.is_dir():
                _sync_folder(target.parent)

    def set_aside(self, path: str, version: str) -> str | None:
        """See `Store.set_aside`."""
        target = self._locate(path)
        # The lock keeps others from freeing the name, and so from publishing under it, after the version was compared.
        with self._errors(path), _locked_folder(target.parent):
            if _version_of(target) != version:
                return None
            aside = _link_beside(target)
            target.unlink()
            _sync_folder(target.parent)
            return aside.relative_to(self.root).as_posix()

    def _locate(self, path: str) -> Path:
        return self.root / check_path(path)

    def _walk(self, top: Path) -> Iterator[StoredFile]:
        def refuse(error: OSError) -> None:
            # What can't be read is not empty. A folder that is not there is, but for the store itself.
            if not isinstance(error, FileNotFoundError):
                raise error

        for folder, _, names in os.walk(top, onerror=refuse):
            for name in names:
                if name.startswith(_TEMPORARY):
                    continue
                file = Path(folder, name)
                try:
                    stat = file.stat()
                except FileNotFoundError:  # deleted since the folder was read
                    continue
                yield StoredFile(file.relative_to(self.root).as_posix(), stat.st_size, _version(stat), stat.st_mtime_ns)

    def _remove_stale(self) -> None:
        for folder, _, names in os.walk(self.root):
            for name in names:
                if name.startswith(_TEMPORARY):
                    _remove_if_abandoned(Path(folder, name))

    def _refuse_if_gone(self) -> None:
        """Of a folder that is gone nothing can be said, and in its place none is made: its volume may come back.

        The folder on which a volume was mounted stays behind it: it is another one, and an empty one.
        """
        try:
            identity = _identity_of(self.root)
            if identity == self._identity:
                return
            with os.scandir(self.root) as entries:
                is_empty = next(entries, None) is None
        except (FileNotFoundError, NotADirectoryError):
            is_empty = True
        if is_empty:
            raise StoreError(f"store {self.url}: the folder is gone; is its volume mounted?")
        self._identity = identity  # mounted again

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        self._refuse_if_gone()
        try:
            yield
        except FileExistsError:
            raise AlreadyExists(path) from None
        except FileNotFoundError:
            self._refuse_if_gone()
            raise NotFound(path) from None
        except OSError as error:
            raise StoreError(f"store {self.url}: {path}: {error.strerror or error}") from error


def _identity_of(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _version(stat: os.stat_result) -> str:
    return f"{stat.st_ino}-{stat.st_mtime_ns}-{stat.st_size}"


def _version_of(file: Path) -> str | None:
    try:
        return _version(file.stat())
    except FileNotFoundError:
        return None


def _publish(target: Path, data: Data) -> None:
    """Write a file whole and durably, or raise FileExistsError."""
    with _written_beside(target, data) as temporary:
        os.link(temporary, target)
    _sync_folder(target.parent)


@contextmanager
def _written_beside(target: Path, data: Data) -> Iterator[Path]:
    """A file of this content in the target's folder, durable but for its name, which is removed at the end.

    It is locked for as long as its writer lives.
    """
    while True:
        temporary = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A starting process may have taken it for abandoned before the lock was held.
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        crash_point(CrashPoint.MID_PUBLISH)
        os.fsync(descriptor)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_if_abandoned(temporary: Path) -> None:
    try:
        descriptor = os.open(temporary, os.O_WRONLY)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink(missing_ok=True)
    except BlockingIOError:  # its writer is alive
        return
    finally:
        os.close(descriptor)


def _link_beside(target: Path) -> Path:
    """A second name for a damaged file, one that is free."""
    aside, number = target.with_name(f"{target.name}{DAMAGED}"), 1
    while True:
        try:
            os.link(target, aside)
        except FileExistsError:
            number += 1
            aside = target.with_name(f"{target.name}{DAMAGED}-{number}")
        else:
            return aside


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_folder(folder: Path, top: Path) -> None:
    """Make a folder and its parents below the top, so that they outlive a power loss."""
    if folder == top or folder.is_dir():
        return
    _make_folder(folder.parent, top)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
