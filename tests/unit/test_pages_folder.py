"""The folder of pages: used where whole, made again where not, and never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.api import pages_folder
from service.api.pages import SegmentPages
from service.api.pages_folder import PagesFolder, default_folder
from service.api.rows import FactRows
from service.archive.segment import ChainKey
from tests.api_doubles import Segments
from tests.histories import fact, rows_of, segment_of

CHAIN = ChainKey("litehit.facts", "g1", 0)
FACTS = [fact(1, (1, 4)), fact(2, (2, 3)), fact(3, (6, 1))]


@pytest.fixture
def segments() -> Segments:
    made = Segments()
    made.rows[INFO] = rows_of(FACTS, 0)
    return made


INFO = segment_of(CHAIN, 0, 3, FACTS)


def only_file(folder: Path) -> Path:
    (file,) = folder.rglob("*.pages")
    return file


def test_what_was_made_once_is_not_read_again(tmp_path: Path, segments: Segments) -> None:
    first = PagesFolder(tmp_path, segments).make(INFO, (), ())
    segments.rows.clear()
    second = PagesFolder(tmp_path, segments).make(INFO, (), ())
    assert second.mapped is not None
    assert second.pages.totals.hits.tolist() == first.pages.totals.hits.tolist()
    assert second.pages.facts == 3
    second.release()
    assert second.pages.facts == 3  # read again from the file


def test_pages_made_of_parts_need_no_reading(tmp_path: Path, segments: Segments) -> None:
    rows = FactRows.of(rows_of(FACTS, 0).facts)
    made = PagesFolder(tmp_path, segments).make(INFO, [SegmentPages.of(rows)], ())
    assert (made.pages.facts, segments.reads) == (3, [])


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_file_is_made_again_and_told(tmp_path: Path, segments: Segments, damage: bytes | None) -> None:
    folder = PagesFolder(tmp_path, segments)
    folder.make(INFO, (), ())
    file = only_file(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:-1] if damage is None else damage)
    with capture_logs() as logs:
        assert folder.make(INFO, (), ()).pages.facts == 3
    assert [(one["event"], one["path"]) for one in logs] == [("index_pages_rebuilt", str(file))]
    assert file.read_bytes() == content


def test_a_folder_that_cant_be_written_to(tmp_path: Path, segments: Segments) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    folder = PagesFolder(blocked / "below", segments)
    with capture_logs() as logs:
        made = folder.make(INFO, (), ())
        folder.make(INFO, (), ())
        folder.drop([INFO], ())
    assert made.pages.facts == 3
    assert [one["event"] for one in logs] == ["index_pages_not_kept"]


def test_a_file_that_another_process_writes_is_not_waited_for(
    tmp_path: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(path: Path) -> None:
        raise BlockingIOError(11, "another process is writing it", str(path))

    monkeypatch.setattr(pages_folder, "atomic_file", busy)
    assert PagesFolder(tmp_path, segments).make(INFO, (), ()).pages.facts == 3


def test_without_a_folder(segments: Segments) -> None:
    folder = PagesFolder(None, segments)
    assert folder.make(INFO, (), ()).pages.facts == 3
    folder.drop([INFO], ())
    folder.sweep((), [CHAIN])


def test_files_of_segments_that_are_gone(tmp_path: Path, segments: Segments) -> None:
    other = segment_of(ChainKey("litehit.facts", "g1", 1), 0, 3, FACTS)
    segments.rows[other] = rows_of(FACTS, 0)
    folder = PagesFolder(tmp_path, segments)
    for info in (INFO, other):
        folder.make(info, (), ())
    folder.drop([INFO], [INFO])  # replaced by one of the same offsets: the file is its own
    assert len(list(tmp_path.rglob("*.pages"))) == 2
    folder.drop([INFO], [other])
    assert "00001" in str(only_file(tmp_path))
    folder.sweep((), [CHAIN])  # not its chain
    assert "00001" in str(only_file(tmp_path))
    folder.sweep((), [other.chain])
    assert list(tmp_path.rglob("*.pages")) == []


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder("some/store") == Path("some/store/index")
    remote = default_folder("s3://bucket/facts")
    assert remote.parent == tmp_path / ".cache" / "litehit"
    assert remote != default_folder("s3://bucket/other")
