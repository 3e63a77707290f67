from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit import facts_csv
from litehit.errors import FactsError
from litehit.facts import FactBatch
from litehit.facts_csv import HEADER, read_facts, write_header, write_rows
from schemas.fact import RequestFact
from tests.facts_strategies import facts

ROW = 't,i,5,9,4,1024,"[[1,1],[3,1]]"'


def written(batches: Iterable[list[RequestFact]]) -> bytes:
    sink = io.BytesIO()
    write_header(sink)
    for batch in batches:
        write_rows(sink, FactBatch.from_facts(batch))
    return sink.getvalue()


def read(data: bytes) -> list[RequestFact]:
    return [fact for batch in read_facts(io.BytesIO(data), "f.csv") for fact in batch]


def failure(text: str) -> str:
    with pytest.raises(FactsError) as caught:
        read(text.encode())
    return str(caught.value)


def fact(**changes: object) -> RequestFact:
    values = {
        "trace_id": "t",
        "instance_id": "i",
        "timestamp_ns": 5,
        "input_token_len": 13,
        "block_size_tokens": 4,
        "block_bytes": 1024,
        "hit_curve": ((1, 2), (4, 1)),
    }
    return RequestFact.model_validate(values | changes)


def test_the_text_is_that_of_the_specification() -> None:
    odd = fact(trace_id='a,"b"\r\nc', instance_id="é ", timestamp_ns=-1, hit_curve=())
    assert written([[fact()], [odd]]).decode() == (
        "trace_id,instance_id,timestamp_ns,input_token_len,block_size_tokens,block_bytes,hit_curve\n"
        't,i,5,13,4,1024,"[[1,2],[4,1]]"\n'
        '"a,""b""\r\nc",é ,-1,13,4,1024,"[]"\n'
    )


@settings(deadline=None)
@given(st.lists(st.lists(facts(), max_size=4), max_size=4))
def test_what_is_written_reads_back(batches: list[list[RequestFact]]) -> None:
    data = written(batches)
    assert read(data) == [one for batch in batches for one in batch]
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert [json.loads(row["hit_curve"]) for row in rows] == [
        [list(segment) for segment in one.hit_curve] for batch in batches for one in batch
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
@pytest.mark.parametrize("name", ['"', '""', 'a"', '"a"', ',"', '",\n"', "\r", "x,y"])
def test_quotes_that_stand_rightly_are_read(name: str, end: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    row = f'{quoted},"i",5,"9",4,1024,[]{end}'
    assert read(f"{HEADER}\n{row}".encode())[0].trace_id == name


def test_rows_come_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_csv, "_BATCH_ROWS", 2)
    data = written([[fact(timestamp_ns=i) for i in range(5)]])
    batches = list(read_facts(io.BytesIO(data), "f.csv"))
    assert [batch.timestamps_ns.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]


def test_a_file_without_rows_has_no_batches() -> None:
    assert read(f"{HEADER}\n".encode()) == []
    assert read(f"{HEADER}\r\n".encode()) == []


def test_a_very_long_curve_is_read() -> None:
    curve = tuple((2 * i, 1) for i in range(10**6, 10**6 + 14_000))
    long = fact(input_token_len=10**6, hit_curve=curve)
    assert read(written([[long]])) == [long]


def test_the_file_stays_open_for_its_owner() -> None:
    file = io.BytesIO(written([[fact()]]))
    list(read_facts(file, "f.csv"))
    assert not file.closed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t,i,5,", "t,i,", "has 6 fields; it must have 7"),
        ("t,i,5,", "t,i,5,5,", "has 8 fields; it must have 7"),
        (ROW, "", "has 0 fields; it must have 7"),
        ("i,5", "i,5.0", "timestamp_ns = '5.0' is no plain 64-bit integer"),
        ("i,5", "i, 5", "timestamp_ns = ' 5' is no plain 64-bit integer"),
        ("i,5", "i,+5", "timestamp_ns = '+5'"),
        ("i,5", "i,05", "timestamp_ns = '05'"),
        ("i,5", "i,1_0", "timestamp_ns = '1_0'"),
        ("i,5", "i,\u0665", "timestamp_ns = '\u0665'"),
        ("i,5", "i,", "timestamp_ns = ''"),
        ("i,5", "i,9223372036854775808", "timestamp_ns: Input should be less than 9223372036854775808"),
        ("5,9,", "5,-1,", "input_token_len: Input should be greater than or equal to 0 (got '-1')"),
        ("9,4,", "9,0,", "block_size_tokens: Input should be greater than or equal to 1"),
        ("t,", 't"x,', "has a quote inside a field that does not begin with one"),
        ("t,", ' "t",', "has a quote inside a field"),
        ("t,", 't"",', "has a quote inside a field"),
        ("t,i,", '"t,""\n",i"",', "has a quote inside a field"),
        ("i,5", 'i,5"', "has a quote inside a field"),
        ("4,1024", "4,0", "block_bytes: Input should be greater than or equal to 1"),
        ("[3,1]", f"[{2**62},1]", f"Input should be less than {2**62}"),
        ("[3,1]", f"[3,{2**62}]", f"Input should be less than {2**62}"),
        ("5,9,", "5,7,", "row 3: hit_curve counts 2 blocks of 4 tokens, more than input_token_len 7"),
        ("[3,1]", "[2,1]", "hit_curve[1] starts at 2 blocks"),
        ("[3,1]", "[0,1]", "Input should be greater than or equal to 1"),
        ("[3,1]", "[3,0]", "Input should be greater than or equal to 1"),
        ("[3,1]", "[3]", "hit_curve: "),
        ("[3,1]", "[3,1.0]", "hit_curve: "),
        ("[3,1]", "[3,true]", "hit_curve: "),
        ("[3,1]", '[3,""1""]', "hit_curve: "),
        ("[[1,1],[3,1]]", "", "hit_curve: "),
        ("[[1,1],[3,1]]", "{}", "hit_curve: "),
        ("[[1,1],[3,1]]", "[[1,1]", "hit_curve: "),
        ('"[[1,1],[3,1]]"', "[[1,1],[3,1]]", "has 10 fields"),
        ('[3,1]]"', '[3,1]]"x', "is no CSV in UTF-8"),
        ('[3,1]]"', "[3,1]]", "is no CSV in UTF-8"),
    ],
)
def test_a_malformed_row_is_named_with_its_fault(old: str, new: str, message: str) -> None:
    assert old in ROW
    text = f"{HEADER}\n{ROW}\n{ROW.replace(old, new, 1)}\n"
    assert failure(text).startswith("f.csv: row 3: ")
    assert message in failure(text)


def test_other_bytes_than_utf_8_are_refused() -> None:
    with pytest.raises(FactsError, match=r"f\.csv: row \d+: is no CSV in UTF-8"):
        read(f"{HEADER}\n".encode() + b"\xff\n")


@pytest.mark.parametrize("text", ["trace_id\n", "", f"\ufeff{HEADER}\n", f"{HEADER},x\n", f"{HEADER.upper()}\n"])
def test_another_header_is_refused(text: str) -> None:
    assert failure(text).startswith("f.csv: row 1: the ")
    assert HEADER in failure(text)


def test_a_file_that_was_closed_before_its_end_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(f"{HEADER}\n" + 'a,one,1,64,64,1048576,"[]"\n' * 5000, encoding="utf-8")
    with path.open("rb") as file:
        rows = read_facts(file, "facts.csv")
        assert len(next(rows)) == 4096
    rows.close()  # type: ignore[attr-defined]
