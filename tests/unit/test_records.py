"""Records in columns are the records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.records import SourceRecord, SourceRecords

HEADERS = st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3) | st.none()), max_size=2).map(tuple)
RECORDS = st.lists(
    st.builds(
        SourceRecord,
        st.just("requests"),
        st.just(3),
        st.integers(0, 2**60),
        st.binary(max_size=3) | st.none(),
        st.binary(max_size=3) | st.none(),
        st.integers(0, 2**40) | st.none(),
        HEADERS,
    ),
    min_size=1,
    max_size=6,
)


@given(records=RECORDS, first=st.integers(-7, 7), end=st.integers(-7, 7))
def test_they_are_the_records(records: list[SourceRecord], first: int, end: int) -> None:
    columns = SourceRecords.of(records)
    assert list(columns) == records == [columns[row] for row in range(len(records))]
    assert list(columns[first:end]) == records[first:end]
    assert [f"{columns.source_start}{offset}" for offset in columns.offsets] == [record.source for record in records]
    assert (columns.headers is None) is not any(record.headers for record in records)


@pytest.mark.parametrize("foreign", [{"topic": "others"}, {"partition": 4}])
def test_they_are_of_one_partition(foreign: dict[str, Any]) -> None:
    record = SourceRecord("requests", 3, 0, None, None, None)
    with pytest.raises(ValueError, match=r"several partitions: .*'requests', 3"):
        SourceRecords.of([record, record._replace(**foreign)])
