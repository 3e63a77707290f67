from __future__ import annotations

from pathlib import Path

import pytest

from service.cli.output import open_output


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "answer.jsonl"
    with open_output(path) as sink:
        sink.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"


def test_a_device_stays_one(tmp_path: Path) -> None:
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    with open_output(device) as sink:
        sink.write(b"x")
    assert device.is_symlink()
    assert device.is_char_device()


def test_a_folder_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), open_output(tmp_path):
        pytest.fail("nothing can be written")
