from __future__ import annotations

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


def test_a_folder_that_is_absent_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "none" / "out.csv"):
        pytest.fail("nothing can be written")
