"""What is read of segments' files: the row groups that were asked for, of the segment that was asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from service.api import segment_reader
from service.api.segment_reader import ParquetReader
from service.archive import segment_writer
from service.archive.errors import NotFound, SegmentError
from service.archive.local_store import LocalStore
from service.archive.segment import ChainKey, SegmentInfo, describe
from service.archive.segment_writer import encode
from tests.histories import fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)
FACTS = [fact(100 - time, (time + 1, 2), instance="ab"[time % 2], block=1 + time % 3) for time in range(10)]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


@pytest.fixture(autouse=True)
def _row_groups_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "ROW_GROUP_ROWS", 4)


def publish(store: LocalStore, count: int) -> SegmentInfo:
    table = rows_of(FACTS[:count], 0).table
    info = describe(CHAIN, 0, count, table)
    (store.root / info.path).unlink(missing_ok=True)
    store.create(info.path, encode(info, table))
    return info


def test_row_groups_say_their_rows_and_times(store: LocalStore) -> None:
    groups = ParquetReader(store).row_groups(publish(store, 10))
    assert (groups.rows.tolist(), groups.first_ns.tolist(), groups.last_ns.tolist()) == (
        [4, 4, 2],
        [97, 93, 91],
        [100, 96, 92],
    )


@pytest.mark.parametrize("places", [[0], [1, 2], [0, 2], [0, 1, 2], []])
def test_the_row_groups_that_were_asked_for(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, places: list[int]
) -> None:
    info, reader = publish(store, 10), ParquetReader(store)
    expected = [one for place in places for one in FACTS[4 * place : 4 * place + 4]]
    for chunk in (1, 6, 1000):
        monkeypatch.setattr(segment_reader, "CHUNK_ROWS", chunk)
        batches = list(reader.read(info, places))
        assert [time for batch in batches for time in batch.times_ns.tolist()] == [one.timestamp_ns for one in expected]
        assert [curve for batch in batches for curve in batch.hit_curves] == [one.hit_curve for one in expected]
        keys = [batch.groups.keys[code] for batch in batches for code in batch.codes]
        assert keys == [(one.instance_id, one.block_size_tokens, one.block_bytes) for one in expected]
        tokens = [one for batch in batches for one in batch.input_token_lens.tolist()]
        assert tokens == [one.input_token_len for one in expected]


def test_a_file_that_is_another_segments_by_now(store: LocalStore) -> None:
    reader = ParquetReader(store)
    old = publish(store, 4)
    assert len(next(iter(reader.read(old, [0])))) == 4
    new = publish(store, 8)  # merged: its first row group is that of the old one
    for ask in (lambda: list(reader.read(old, [0])), lambda: [reader.row_groups(old)]):
        with pytest.raises(SegmentError, match="replaced"):
            ask()
    assert reader.row_groups(new).rows.tolist() == [4, 4]
    with pytest.raises(SegmentError, match="replaced"):
        reader.row_groups(replace(new, last_time_ns=7))


def test_a_file_that_is_gone_or_none(store: LocalStore) -> None:
    reader = ParquetReader(store)
    info = publish(store, 4)
    (store.root / info.path).write_bytes(b"PAR1 garbage")
    with pytest.raises(SegmentError, match="damaged"):
        reader.row_groups(info)
    (store.root / info.path).write_bytes(b"")
    with pytest.raises(SegmentError):
        list(reader.read(info, [0]))
    store.delete(info.path)
    with pytest.raises(NotFound):
        list(reader.read(info, [0]))


@pytest.mark.parametrize(
    ("field", "value"),
    [("input_token_len", 2**63 - 1), ("input_token_len", 2**40 + 1), ("input_token_len", -1), ("run_length", 2**62)],
)
def test_numbers_that_sums_could_not_hold_are_refused(store: LocalStore, field: str, value: int) -> None:
    changes = {field: value} if field == "input_token_len" else {"hit_curve": ((1, value),)}
    table = rows_of([FACTS[0], FACTS[1].model_copy(update=changes)], 0).table
    info = describe(CHAIN, 0, 2, table)
    store.create(info.path, encode(info, table))
    with pytest.raises(SegmentError, match=rf"{info.path}: a fact has {field} {value}, which no request has .* put"):
        list(ParquetReader(store).read(info, [0]))


def test_few_footers_are_kept(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "_FOOTERS", 1)
    reader = ParquetReader(store)
    for count in (4, 8, 4):
        info = publish(store, count)
        assert sum(len(batch) for batch in reader.read(info, range(count // 4))) == count
