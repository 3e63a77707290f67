from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from service.archive.errors import StoreError
from service.archive.local_store import LocalStore
from service.archive.open_store import open_store

CRASH_BEFORE_LINK = """
import os, sys
from pathlib import Path
from service.archive.local_store import LocalStore

store = LocalStore(Path(sys.argv[1]))
os.link = lambda source, target: os._exit(9)
store.create("facts/segment", b"half a segment")
"""


def temporaries(root: Path) -> list[Path]:
    return sorted(root.rglob(".tmp-*"))


def test_a_crash_before_the_link_leaves_nothing_visible(tmp_path: Path) -> None:
    crashed = subprocess.run([sys.executable, "-c", CRASH_BEFORE_LINK, str(tmp_path)], check=False, timeout=60)
    assert crashed.returncode == 9
    assert len(temporaries(tmp_path)) == 1

    reader = LocalStore(tmp_path, for_writing=False)
    assert reader.list() == []
    assert len(temporaries(tmp_path)) == 1, "a reader touches nothing"

    writer = LocalStore(tmp_path)
    assert temporaries(tmp_path) == []
    writer.create("facts/segment", b"a whole segment")
    assert [file.path for file in writer.list()] == ["facts/segment"]


def test_a_living_writers_temporary_file_is_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    real_link = os.link

    def start_another_first(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", real_link)
        LocalStore(tmp_path)
        real_link(source, target)

    monkeypatch.setattr(os, "link", start_another_first)
    store.create("a/file", b"slow")
    assert store.read("a/file") == b"slow"


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "a").mkdir()
    with pytest.raises(StoreError, match=r"a/file: No space left on device"):
        store.create("a/file", b"data")
    assert list((tmp_path / "a").iterdir()) == []


def test_the_file_is_synced_before_it_is_linked_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    steps: list[str] = []
    real_fsync, real_link = os.fsync, os.link

    def fsync(descriptor: int) -> None:
        steps.append(f"sync {'folder' if Path(f'/proc/self/fd/{descriptor}').resolve().is_dir() else 'file'}")
        real_fsync(descriptor)

    def link(source: Path, target: Path) -> None:
        steps.append("link")
        real_link(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    store.create("new/file", b"data")
    assert steps == ["sync folder", "sync file", "link", "sync folder"]


def test_a_replacement_is_synced_before_it_has_the_name_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.create("file", b"old")
    (listed,) = store.list()
    seen: list[bytes] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        seen.append((tmp_path / "file").read_bytes())
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.replace("file", b"new", listed.version)
    assert seen == [b"old", b"new"]
    assert temporaries(tmp_path) == []


def test_a_failed_replacement_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    store.create("file", b"old")
    (listed,) = store.list()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"file: No space left on device"):
        store.replace("file", b"new", listed.version)
    assert store.list() == [listed]
    assert temporaries(tmp_path) == []


def test_an_unusable_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="give a folder that this user may write to"):
        open_store(str(tmp_path / "file"))
    with pytest.raises(StoreError, match="no such folder"):
        open_store(str(tmp_path / "absent"), for_writing=False)
    assert not (tmp_path / "absent").exists()


def test_what_cant_be_listed_is_not_empty(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    store.create("facts/topic/segment", b"facts")
    assert store.list("snapshots") == []
    (tmp_path / "store/elsewhere").touch()
    with pytest.raises(StoreError, match="elsewhere: Not a directory"):
        store.list("elsewhere")
    (tmp_path / "store").rename(tmp_path / "away")
    for prefix in ("", "facts"):
        with pytest.raises(StoreError, match="the folder is gone"):
            store.list(prefix)
    (tmp_path / "away").rename(tmp_path / "store")
    assert [file.path for file in store.list("facts")] == ["facts/topic/segment"]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.create("facts/new", b""),
        lambda store: store.create("new", b""),
        lambda store: store.replace("facts/file", b"", "1-2-3"),
        lambda store: store.read("facts/file"),
        lambda store: store.open("facts/file"),
        lambda store: store.list("facts"),
        lambda store: store.delete("facts/file"),
        lambda store: store.set_aside("facts/file", "1-2-3"),
    ],
)
def test_a_store_that_is_gone_is_told_and_not_made_again(tmp_path: Path, call: Callable[[LocalStore], object]) -> None:
    """A volume that was unmounted: what is written in its place would be hidden when it comes back."""
    store = LocalStore(tmp_path / "volume" / "store")
    store.create("facts/file", b"here")
    (tmp_path / "volume").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="the folder is gone; is its volume mounted"):
        call(store)
    assert not (tmp_path / "volume").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "volume")
    assert store.read("facts/file") == b"here"


def test_the_folder_under_a_volume_that_went_is_not_the_store(tmp_path: Path) -> None:
    root = tmp_path / "mount"
    store = LocalStore(root)
    store.create("facts/file", b"here")
    root.rename(tmp_path / "volume")
    root.mkdir()  # what an unmounted volume leaves
    for call in (store.list, lambda: store.create("facts/new", b""), lambda: store.read("facts/file")):
        with pytest.raises(StoreError, match="the folder is gone; is its volume mounted"):
            call()
    assert list(root.iterdir()) == []
    root.rmdir()
    (tmp_path / "volume").rename(root)
    (tmp_path / "copy").mkdir()
    for path in list(root.iterdir()):  # mounted again, as another device
        path.rename(tmp_path / "copy" / path.name)
    root.rmdir()
    (tmp_path / "copy").rename(root)
    assert store.read("facts/file") == b"here"
    store.create("facts/new", b"")
    assert [file.path for file in store.list()] == ["facts/file", "facts/new"]


def test_a_file_url_is_a_folder_and_an_unknown_scheme_is_refused(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}/store").create("a", b"x")
    assert (tmp_path / "store" / "a").read_bytes() == b"x"
    with pytest.raises(StoreError, match=r"unknown scheme ftp://; give a folder"):
        open_store("ftp://host/path")


def test_of_many_who_set_a_file_aside_one_does_and_what_it_publishes_stays(tmp_path: Path) -> None:
    LocalStore(tmp_path).create("a/file", b"torn")
    (torn,) = LocalStore(tmp_path).list("a")
    start = threading.Barrier(8, timeout=30)
    done: list[str] = []

    def contend(number: int) -> None:
        store = LocalStore(tmp_path)
        start.wait()
        aside = store.set_aside("a/file", torn.version)
        if aside is not None:
            store.create("a/file", b"whole %d" % number)
            done.append(aside)

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["a/file.damaged"]
    assert (tmp_path / "a/file").read_bytes().startswith(b"whole")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["file", "file.damaged"]
