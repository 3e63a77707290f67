"""Where an archive goes on: a damaged end is set aside where its facts can be had again, else it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.chain_end import Held, find_end
from service.archive.errors import ChainBroken, OffsetsMissing
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, SegmentInfo, describe
from service.archive.segment_writer import encode
from service.archive.store import Store
from tests.archive_facts import made_facts

KEY = ChainKey("facts", "g", 0)
ALL = Held(0, 30)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Segments of offsets 0 to 10, 10 to 20 and 20 to 30."""
    store = open_store(str(tmp_path))
    for base in (0, 10, 20):
        put(store, base)
    return store


def put(store: Store, base: int) -> SegmentInfo:
    table = made_facts(10, base).table
    info = describe(KEY, base, base + 10, table)
    store.create(info.path, encode(info, table))
    return info


def segment(tmp_path: Path, base: int) -> Path:
    return tmp_path / f"facts/facts/g/00000/{base:020d}.parquet"


def end(store: Store, held: Held = ALL, *, accept_gap: bool = False) -> tuple[int, Chain]:
    catalog = Catalog(store)
    catalog.refresh()
    return find_end(catalog, KEY, held, accept_gap=accept_gap), catalog.view.chain(KEY)


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name.lstrip("0") for path in segment(tmp_path, 0).parent.iterdir())


def test_a_readable_end_is_the_end(store: Store) -> None:
    assert end(store)[0] == 30
    assert end(store, Held(40, 50))[0] == 30, "what is missing behind it is not its concern"


@pytest.mark.parametrize("torn", ["empty", "cut", "garbage", "zeros", "a flipped bit"])
def test_a_damaged_last_segment_is_set_aside(store: Store, tmp_path: Path, torn: str) -> None:
    path = segment(tmp_path, 20)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 4] ^= 1  # in a page, which the footer does not show
    damaged = {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "garbage": b"\xa5" * len(whole),
        "zeros": bytes(len(whole)),
        "a flipped bit": bytes(flipped),
    }[torn]
    path.write_bytes(damaged)
    begin, chain = end(store)
    assert (begin, chain.faults) == (20, ())
    assert names(tmp_path) == [".parquet", "10.parquet", "20.parquet.damaged"]
    assert path.with_name(f"{path.name}.damaged").read_bytes() == damaged
    put(store, 20)
    assert end(store)[0] == 30


def test_every_damaged_segment_at_the_end_is_set_aside(store: Store, tmp_path: Path) -> None:
    for base in (10, 20):
        segment(tmp_path, base).write_bytes(b"torn")
    assert end(store)[0] == 10
    assert names(tmp_path) == [".parquet", "10.parquet.damaged", "20.parquet.damaged"]
    segment(tmp_path, 0).write_bytes(b"torn")
    assert end(store)[0] == 0


def test_a_name_that_was_set_aside_before_is_not_used_again(store: Store, tmp_path: Path) -> None:
    for content in (b"once", b"twice"):
        segment(tmp_path, 20).write_bytes(content)
        assert end(store)[0] == 20
    assert names(tmp_path) == [".parquet", "10.parquet", "20.parquet.damaged", "20.parquet.damaged-2"]


def test_damage_before_a_readable_segment_is_a_hole_and_stays(store: Store, tmp_path: Path) -> None:
    segment(tmp_path, 10).write_bytes(b"torn")
    begin, chain = end(store)
    assert begin == 30
    assert len(chain.faults) == 2
    assert segment(tmp_path, 10).read_bytes() == b"torn"


def test_an_end_whose_facts_expired_is_told_and_left_alone(store: Store, tmp_path: Path) -> None:
    segment(tmp_path, 20).write_bytes(b"torn")
    with pytest.raises(ChainBroken, match=r"begins at offset 23, so that 3 offsets from 20 on .* --accept-gap"):
        end(store, Held(23, 40))
    assert segment(tmp_path, 20).read_bytes() == b"torn"
    begin, chain = end(store, Held(23, 40), accept_gap=True)
    assert (begin, chain.faults) == (20, ())


def test_the_end_of_another_topics_archive_is_left_alone(store: Store, tmp_path: Path) -> None:
    segment(tmp_path, 20).write_bytes(b"torn")
    with pytest.raises(OffsetsMissing, match="ends at offset 5, 15 offsets earlier"):
        end(store, Held(0, 5), accept_gap=True)
    assert segment(tmp_path, 20).read_bytes() == b"torn"


def test_an_object_store_is_left_to_the_operator() -> None:
    store = open_store("memory://")
    path = put(store, 0).path
    store.delete(path)
    store.create(path, b"torn")
    with pytest.raises(ChainBroken, match=r"stop every archiver, rename it .*\.parquet\.damaged"):
        end(store)
    assert store.read(path) == b"torn"
