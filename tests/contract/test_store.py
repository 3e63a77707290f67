"""What every store promises, over every store there is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service.archive.errors import AlreadyExists, CannotSetAside, Changed, NotFound
from service.archive.open_store import open_store
from service.archive.store import Store


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    urls: dict[str, Callable[[], str]] = {
        "folder": lambda: str(tmp_path / "store"),
        "memory": lambda: "memory://",
    }
    return open_store(urls[request.param]())


def contend(attempt: Callable[[bytes], None], refusal: type[Exception]) -> list[bytes]:
    """Eight threads attempt something at once, each with a content of its own; the contents that were not refused."""
    start = threading.Barrier(8)
    won: list[bytes] = []

    def one(content: bytes) -> None:
        start.wait()
        try:
            attempt(content)
        except refusal:
            return
        won.append(content)

    threads = [threading.Thread(target=one, args=(b"%d" % i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def test_a_created_file_reads_back(store: Store) -> None:
    store.create("a/b/c.bin", b"hello")
    assert store.read("a/b/c.bin") == b"hello"


def test_a_memoryview_and_an_empty_file_are_data_too(store: Store) -> None:
    store.create("view", memoryview(b"xyz")[1:])
    store.create("empty", b"")
    assert (store.read("view"), store.read("empty")) == (b"yz", b"")


def test_create_is_exclusive_and_keeps_the_first(store: Store) -> None:
    store.create("a/file", b"first")
    with pytest.raises(AlreadyExists, match="a/file"):
        store.create("a/file", b"second")
    assert store.read("a/file") == b"first"


def test_of_many_creators_at_once_one_wins(store: Store) -> None:
    won = contend(lambda content: store.create("contended", content), AlreadyExists)
    assert won == [store.read("contended")]


@pytest.mark.parametrize("call", ["read", "open"])
def test_a_missing_file_is_named(store: Store, call: str) -> None:
    with pytest.raises(NotFound, match="no/such"):
        getattr(store, call)("no/such")


def test_open_gives_random_access(store: Store) -> None:
    store.create("file", bytes(range(100)))
    with store.open("file") as file:
        assert file.size() == 100
        file.seek(90)
        assert file.read() == bytes(range(90, 100))
        file.seek(10)
        assert file.read(3) == b"\n\x0b\x0c"


def test_list_is_sorted_and_by_whole_folders(store: Store) -> None:
    for path in ("a/2", "a/10", "ab/1", "a/sub/0", "top"):
        store.create(path, path.encode())
    assert [file.path for file in store.list("a")] == ["a/10", "a/2", "a/sub/0"]
    assert [file.path for file in store.list()] == ["a/10", "a/2", "a/sub/0", "ab/1", "top"]
    assert [file.size for file in store.list("a")] == [4, 3, 7]
    assert store.list("nothing") == []


def test_a_replaced_file_has_another_version(store: Store) -> None:
    store.create("a/file", b"one")
    before = store.list()
    assert store.list() == before
    store.delete("a/file")
    store.create("a/file", b"two")
    assert store.list()[0].version != before[0].version


def test_delete_frees_the_name_and_forgives_a_missing_file(store: Store) -> None:
    store.create("a/file", b"one")
    store.delete("a/file")
    store.delete("a/file")
    store.delete("no/folder/file")
    store.create("a/file", b"two")
    assert store.read("a/file") == b"two"


@pytest.mark.parametrize("path", ["", "/abs", "a//b", "a/../b", "./a", "a/"])
def test_a_path_is_plain_and_relative(store: Store, path: str) -> None:
    with pytest.raises(ValueError, match="part"):
        store.create(path, b"")


def test_a_file_is_set_aside_as_it_is_or_not_at_all(store: Store) -> None:
    store.create("a/file", b"torn")
    (listed,) = store.list()
    try:
        aside = store.set_aside("a/file", listed.version)
    except CannotSetAside:
        assert store.list() == [listed]
        return
    assert aside == "a/file.damaged"
    assert store.read(aside) == b"torn"
    store.create("a/file", b"whole")
    assert store.set_aside("a/file", listed.version) is None, "what stands there now is another file"
    assert store.set_aside("a/gone", listed.version) is None
    assert store.read("a/file") == b"whole"


def test_a_file_is_replaced_as_long_as_it_is_the_listed_one(store: Store) -> None:
    store.create("a/file", b"one")
    (listed,) = store.list()
    store.replace("a/file", memoryview(b"two"), listed.version)
    (replaced,) = store.list()
    assert replaced.version != listed.version
    assert store.read("a/file") == b"two"
    with pytest.raises(Changed, match="a/file was replaced or removed"):
        store.replace("a/file", b"three", listed.version)
    store.delete("a/file")
    for path in ("a/file", "no/such"):
        with pytest.raises(Changed, match=path):
            store.replace(path, b"three", replaced.version)
    assert store.list() == []


def test_of_many_who_replace_one_version_one_does(store: Store) -> None:
    store.create("contended", b"")
    (listed,) = store.list()
    won = contend(lambda content: store.replace("contended", content, listed.version), Changed)
    assert won == [store.read("contended")]


def test_what_is_open_never_turns_into_what_replaces_it(store: Store) -> None:
    store.create("file", b"old" * 100)
    (listed,) = store.list()
    with store.open("file") as file:
        store.replace("file", b"new" * 100, listed.version)
        try:
            assert file.read() == b"old" * 100
        except Changed:
            return
    with store.open("file") as file:
        store.delete("file")
        assert file.read() == b"new" * 100


def test_a_listing_says_when_a_file_was_written(store: Store) -> None:
    before = time.time_ns()
    store.create("a/file", b"one")
    (created,) = store.list()
    store.replace("a/file", b"two", created.version)
    (replaced,) = store.list()
    # File systems take the time from the kernel's last tick.
    assert before - 10**8 < created.modified_ns <= replaced.modified_ns <= time.time_ns()
