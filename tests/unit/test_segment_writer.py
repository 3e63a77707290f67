from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.archive import segment_writer
from service.archive.segment import ChainKey, describe
from service.archive.segment_writer import encode
from tests.archive_facts import made_facts

CHAIN = ChainKey("litehit.facts", "g1", 0)
FACTS = made_facts(40).table
INFO = describe(CHAIN, 0, 40, FACTS)


@given(st.lists(st.integers(0, 40)).map(sorted))
def test_the_same_facts_give_the_same_bytes_however_they_are_cut(cuts: list[int]) -> None:
    pieces = [FACTS.slice(low, high - low) for low, high in zip([0, *cuts], [*cuts, 40], strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "ROW_GROUP_ROWS", 7)
        whole = encode(INFO, FACTS)
        assert whole == encode(INFO, pa.concat_tables(pieces))
        assert whole == encode(INFO, pieces)


def test_pages_end_in_the_same_places_too() -> None:
    """Trace ids that fill several pages of a row group."""
    names = pa.array([f"{number:01000d}" for number in range(5000)], pa.string())
    table = pa.concat_tables([FACTS] * 125).set_column(0, FACTS.schema.field(0), names)
    info = describe(CHAIN, 0, 5000, table)
    pieces = [table.slice(low, 77) for low in range(0, 5000, 77)]
    assert encode(info, table.combine_chunks()) == encode(info, pa.concat_tables(pieces))
