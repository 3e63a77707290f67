"""Real lines, mutated in every way, through a lane: facts, ignored records or dead letters, and the ledger balances."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litehit.registry import Registry
from schemas.dead_letter import FORMAT_HEADER
from schemas.fact import RequestFact
from service import formats
from service.format_names import FormatName
from service.formats.native_protobuf import EVENT_MESSAGE
from service.lanes.counts import Ignored, LaneCounts
from service.lanes.lane import Lane, LaneTargets
from service.lanes.poison_limit import NO_LIMITS
from service.lanes.reading import read_records
from service.lanes.snapshot import decode, encode
from service.records import OutputRecord, SourceRecord, SourceRecords
from service.trace_source import open_trace
from tests import snapshots_made as made

SAMPLES = Path(__file__).parents[1] / "samples"
BLOCKS = {FormatName.BAILIAN: 16, FormatName.WEKA: 64}
RECORDS = 1200
WINDOW = 3
ODD = [None, True, 0, -1, 2**63, -(2**70), 1e308, "", "x", "\ud800", "\x00é\U0001f600", [], [[1]], {}, {"a": 1}]
ODD_TEXTS = [b"NaN", b"-Infinity", b"1e99999", b"-0", b"0.1", b"1" * 400, b"9" * 5000, b"[" * 3000, b'{"a":' * 50]
ODD_BYTES = [b"\xff", b"\x00", b"\\u0000", b"\\ud83d", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"\\", b"{", b"]"]


def real_lines(name: FormatName) -> list[bytes]:
    if name is FormatName.NATIVE_PROTOBUF:
        keys: tuple[list[int], ...] = ([1, 2], [1, 2, 3], [], [2**63 - 1, -1])
        return [
            EVENT_MESSAGE(
                trace_id=f"r{number}",
                timestamp_ns=number,
                block_keys=each,
                input_token_len=512 * len(each) + 3,
                fields={"model": "m"},
            ).SerializeToString()
            for number, each in enumerate(keys)
        ]
    path = SAMPLES / name
    with open_trace(str(path if path.is_dir() else path.with_suffix(".jsonl")), name) as trace:
        return [line for window in trace.windows() for _, line in window.records()]


def bytes_changed(rng: random.Random, line: bytes) -> bytes:
    record = bytearray(line)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(record) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(record):
            record[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del record[at:]
        elif kind == 2:
            record[at : at + rng.randint(0, 4)] = rng.choice(ODD_BYTES)
        elif kind == 3:
            record[at:at] = record[at : at + rng.randint(1, 30)]
        else:
            del record[at : at + rng.randint(1, 30)]
    return bytes(record)


def holders(value: Any) -> list[Any]:
    """Every object and list in a value, itself included."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return [] if inner is None else [value, *(found for each in inner for found in holders(each))]


def fields_changed(rng: random.Random, line: bytes) -> bytes:
    record = json.loads(line)
    marks: dict[str, bytes] = {}
    for number in range(rng.randint(1, 3)):
        holder = rng.choice([one for one in holders(record) if one] or [record])
        if not holder:
            break
        place = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        kind = rng.randrange(6)
        if kind == 0:
            del holder[place]
        elif kind == 1:
            holder[place] = rng.choice(ODD)
        elif kind == 2 and isinstance(holder, dict):  # a name given twice
            marks[f"@{number}"] = json.dumps(rng.choice(ODD)).encode() + b"," + json.dumps(place).encode() + b":1"
            holder[place] = f"@{number}"
        elif kind == 3:
            holder[place] = [holder[place]]
        elif kind == 4 and isinstance(holder[place], int | float):
            holder[place] = str(holder[place])
        else:
            marks[f"@{number}"] = rng.choice(ODD_TEXTS)
            holder[place] = f"@{number}"
    text = json.dumps(record, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    for mark, replacement in marks.items():
        text = text.replace(f'"{mark}"'.encode(), replacement)
    return text


def mutated(rng: random.Random, name: FormatName, line: bytes) -> bytes:
    if name is FormatName.NATIVE_PROTOBUF or rng.random() < 0.5:
        return bytes_changed(rng, line)
    return fields_changed(rng, line)


@pytest.fixture(scope="module", params=list(FormatName))
def traffic(request: pytest.FixtureRequest) -> tuple[FormatName, list[SourceRecord]]:
    name: FormatName = request.param
    rng = random.Random(f"fuzz of {name}")
    lines = real_lines(name)
    records = []
    for offset in range(RECORDS):
        line = rng.choice(lines)
        value = line if rng.random() < 0.25 else mutated(rng, name, line)
        key = rng.choice([b"key", b"key", b"", None, b"\xff"])
        headers = ((FORMAT_HEADER, name.encode()),)
        records.append(SourceRecord("requests", 3, offset, key, value, rng.choice([7, None]), headers))
    return name, records


@pytest.fixture(scope="module")
def known(traffic: tuple[FormatName, object], tmp_path_factory: pytest.TempPathFactory) -> Registry:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    block = BLOCKS.get(traffic[0], 512)
    path.write_text(
        f"groups: [{{name: g, ttl_seconds: 5}}]\n"
        f"instances: [{{instance_id: '*', group: g, block_size_tokens: {block}, block_bytes: 1024}}]\n",
        encoding="utf-8",
    )
    return Registry.load(path)


def new_lane(known: Registry) -> Lane:
    return Lane(3, known, LaneTargets("facts", "dead", 1_000_000), NO_LIMITS, WINDOW)


def run(
    lane: Lane, records: Sequence[SourceRecord], cuts: Sequence[int], template: str | None
) -> tuple[list[OutputRecord], list[OutputRecord], LaneCounts]:
    topic = formats.of_topic(FormatName.NATIVE, template)
    facts: list[OutputRecord] = []
    letters: list[OutputRecord] = []
    counts = LaneCounts()
    for first, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        output = lane.process(read_records(topic, SourceRecords.of(records[first:end])))
        facts += output.facts
        letters += output.dead_letters
        counts += output.counts
    return facts, letters, counts


@pytest.mark.parametrize("template", [None, "{model|none}/{trace_id|none}/x{type|}", "{request.model|none}"])
def test_every_record_is_a_fact_or_ignored_or_a_dead_letter(
    traffic: tuple[FormatName, list[SourceRecord]], known: Registry, template: str | None
) -> None:
    _, records = traffic
    lane = new_lane(known)
    facts, letters, counts = run(lane, records, [], template)
    assert counts.consumed == RECORDS
    assert counts.consumed == counts.facts + sum(counts.dead_letters.values()) + sum(counts.ignored.values())
    assert (len(facts), len(letters)) == (counts.facts, sum(counts.dead_letters.values()))
    sources = Counter(dict(one.headers)["litehit-source"] for one in (*facts, *letters))
    assert set(sources.values()) == {1}
    for one in facts:
        fact = RequestFact.model_validate_json(one.value or b"")
        assert (one.key or b"").decode() == fact.instance_id != ""
    for letter in letters:
        said = dict(letter.headers)
        assert (said["litehit-error"] or b"").decode().strip()
    assert min(len(facts) + counts.ignored.get(Ignored.REPEAT, 0), len(letters)) > RECORDS // 20
    # However it is cut, and from a snapshot in between.
    cuts = np.sort(np.random.default_rng(1).integers(0, RECORDS, 5)).tolist()
    assert run(new_lane(known), records, cuts, template) == (facts, letters, counts)
    first = new_lane(known)
    before = run(first, records[: RECORDS // 2], [], template)
    file = made.snapshot_of(first)
    second = Lane(3, known, made.TARGETS, NO_LIMITS, WINDOW, decode(file.path, bytes(encode(file))))
    after = run(second, records[RECORDS // 2 :], [], template)
    assert [one.value for one in before[0] + after[0]] == [one.value for one in facts]
