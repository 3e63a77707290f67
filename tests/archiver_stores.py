"""Stores that fail as a full disk does, or do not answer, and a clock that passes the pauses."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any

from service.archive.errors import StoreError
from service.archive.open_store import open_store
from service.archive.store import Data, Store, StoredFile


class RefusingStore:
    """A store that publishes nothing while it is told so, as one on a full disk.

    Attributes:
        refused: set once it has refused.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.refused = threading.Event()
        self._store: Store = open_store(url)
        self._refusing = threading.Event()

    def refuse(self) -> None:
        self.refused.clear()
        self._refusing.set()

    def allow(self) -> None:
        self._refusing.clear()

    def create(self, path: str, data: Data) -> None:
        if self._refusing.is_set():
            self.refused.set()
            raise StoreError(f"store {self.url}: {path}: {os.strerror(errno.ENOSPC)}")
        self._store.create(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class SilentStore:
    """A store that does not list some folders until it is let.

    Args:
        url: of the store.
        end: how the names of the folders end.

    Attributes:
        asked: set once it is to list one of them.
        answer: to be set, so that it does.
    """

    def __init__(self, url: str, end: str) -> None:
        self.url = url
        self.asked, self.answer = threading.Event(), threading.Event()
        self._end = end
        self._store: Store = open_store(url)

    def list(self, prefix: str = "") -> list[StoredFile]:
        if prefix.endswith(self._end):
            self.asked.set()
            assert self.answer.wait(60)
        return self._store.list(prefix)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class LeapingClock:
    """Stands still, and leaps where the test says so."""

    def __init__(self) -> None:
        self._now = 0.0

    def leap(self, seconds: float) -> None:
        self._now += seconds

    def __call__(self) -> float:
        return self._now
