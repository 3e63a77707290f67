from __future__ import annotations

from typing import Any

import obstore
import pytest
from obstore.exceptions import NotSupportedError

from service.archive.errors import CannotReplace
from service.archive.object_store import ObjectStore


def test_a_service_without_conditional_puts_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore("memory://")
    store.create("file", b"one")
    (listed,) = store.list()

    def refuse(*_: Any, **__: Any) -> None:
        raise NotSupportedError("Operation not supported")

    monkeypatch.setattr(obstore, "put", refuse)
    with pytest.raises(CannotReplace, match="file: the service has no conditional put"):
        store.replace("file", b"two", listed.version)


def test_an_object_without_an_etag_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore("memory://")
    store.create("file", b"one")
    real_head = obstore.head
    monkeypatch.setattr(obstore, "head", lambda *arguments: {**real_head(*arguments), "e_tag": None})
    written = str(real_head(store._store, "file")["last_modified"])
    with pytest.raises(CannotReplace, match="file has no ETag"):
        store.replace("file", b"two", written)


def test_where_versions_are_kept_the_condition_names_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore("memory://")
    store.create("file", b"one")
    (listed,) = store.list()
    real_head = obstore.head
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(obstore, "head", lambda *arguments: {**real_head(*arguments), "version": "7"})
    monkeypatch.setattr(obstore, "put", lambda *_, mode: asked.append(mode))
    store.replace("file", b"two", listed.version)
    assert asked == [{"e_tag": listed.version, "version": "7"}]
