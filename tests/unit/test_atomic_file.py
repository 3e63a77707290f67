from __future__ import annotations

import errno
import fcntl
import os
import re
from pathlib import Path
from typing import BinaryIO

import pytest

from litehit.atomic_file import atomic_file


def test_the_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with atomic_file(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")

    def fail(sink: BinaryIO) -> None:
        sink.write(b"new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), atomic_file(path) as file:
        fail(file)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    (tmp_path / "out.csv.tmp").write_bytes(b"left over by another")
    with atomic_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_two_writers_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with atomic_file(path) as file:
        file.write(b"first")
        with pytest.raises(BlockingIOError, match=r"another process is writing it.*out\.csv\.tmp"), atomic_file(path):
            pytest.fail("another is writing")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_renamed_by_its_writer_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.csv"
    lock = fcntl.flock

    def publish_first(file: BinaryIO, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        (tmp_path / "out.csv.tmp").write_bytes(b"published")
        (tmp_path / "out.csv.tmp").replace(tmp_path / "published")
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", publish_first)
    with atomic_file(path) as file:
        file.write(b"new")
    assert (tmp_path / "published").read_bytes() == b"published"
    assert path.read_bytes() == b"new"


def test_a_folder_of_that_name_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(IsADirectoryError, match=r"'.*/out'"), atomic_file(tmp_path / "out"):
        pytest.fail("nothing can be written")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_is_absent_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "none" / "out.csv"):
        pytest.fail("nothing can be written")


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    with pytest.raises(OSError, match=re.escape(str(path))), atomic_file(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []
