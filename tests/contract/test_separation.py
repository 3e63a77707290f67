"""The same keys under another model, tenant, LoRA adapter or salt never hit, through a file and through the topic."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from litehit.facts_csv import read_facts
from litehit.registry import Registry
from litehit.replay import replay
from litehit.window import windows_of
from schemas.dead_letter import FORMAT_HEADER, INSTANCE_HEADER, REASON_HEADER
from service import formats
from service.format_names import LINE_FORMATS, FormatName
from service.formats.naming import Naming
from service.formats.native_protobuf import EVENT_MESSAGE
from service.formats.window_reader import window_reader
from service.instance_template import InstanceTemplate
from service.lanes.lane import Lane, LaneTargets
from service.lanes.reading import read_records
from service.outgoing import OutgoingRecord
from service.publish_trace import publish_trace
from service.records import SourceRecord, SourceRecords
from tests.format_samples import SAMPLES, Plain

TEMPLATE = "{model}/{metadata.tenant}/{lora|base}/{salt|}"
CALLERS: tuple[dict[str, Any], ...] = (
    {"model": "llama", "metadata": {"tenant": "acme"}},
    {"model": "qwen", "metadata": {"tenant": "acme"}},
    {"model": "llama", "metadata": {"tenant": "other"}},
    {"model": "llama", "metadata": {"tenant": "acme"}, "lora": "legal"},
    {"model": "llama", "metadata": {"tenant": "acme"}, "salt": 7},
    # Values with the separator in them, which would be the first ones' id if they were only put together.
    {"model": "llama/acme", "metadata": {"tenant": "base"}, "lora": ""},
    {"model": "llama", "metadata": {"tenant": "acme/base"}},
    {"model": "llama%2Facme", "metadata": {"tenant": "base"}},
)
IDS = (
    "llama/acme/base/",
    "qwen/acme/base/",
    "llama/other/base/",
    "llama/acme/legal/",
    "llama/acme/base/7",
    "llama%2Facme/base/base/",
    "llama/acme%2Fbase/base/",
    "llama%252Facme/base/base/",
)
BLOCK = 16
Curves = Mapping[str, list[list[list[int]]]]
every_format = pytest.mark.parametrize("name", LINE_FORMATS)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """Globs: none of these ids is registered by itself."""
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    blocks = {name: (BLOCK if SAMPLES[name].any_block else SAMPLES[name].block) for name in LINE_FORMATS}
    assert set(blocks.values()) == {BLOCK}
    path.write_text(
        f"groups: [{{name: g}}]\n"
        f"instances:\n"
        f"  - {{instance_id: 'llama*', group: g, block_size_tokens: {BLOCK}, block_bytes: 1024}}\n"
        f"  - {{instance_id: 'qwen/*', group: g, block_size_tokens: {BLOCK}, block_bytes: 1024}}\n",
        encoding="utf-8",
    )
    return Registry.load(path)


def lines(name: FormatName) -> list[bytes]:
    """Each caller once, then each again: all send the same keys."""
    record = SAMPLES[name].record
    return [json.dumps(record(Plain([1, 2], 0, time, BLOCK)) | who).encode() for time in (1, 2) for who in CALLERS]


def assert_separate(curves: Curves) -> None:
    assert sorted(curves) == sorted(IDS)
    assert all(found == [[], [[1, 2]]] for found in curves.values())


def by_instance(facts: list[tuple[str, list[list[int]]]]) -> Curves:
    curves: defaultdict[str, list[list[list[int]]]] = defaultdict(list)
    for instance_id, curve in facts:
        curves[instance_id].append(curve)
    return curves


def through_a_lane(known: Registry, records: list[SourceRecord], template: str | None, usual: FormatName) -> Curves:
    lane = Lane(0, known, LaneTargets("facts", "dead", 1_000_000))
    output = lane.process(read_records(formats.of_topic(usual, template), SourceRecords.of(records)))
    assert output.dead_letters == ()
    facts = [json.loads(fact.value or b"") for fact in output.facts]
    assert [fact.key.decode() for fact in output.facts if fact.key] == [fact["instance_id"] for fact in facts]
    return by_instance([(fact["instance_id"], fact["hit_curve"]) for fact in facts])


@every_format
def test_through_a_file(name: FormatName, known: Registry, tmp_path: Path) -> None:
    naming = Naming(InstanceTemplate.parse(TEMPLATE))
    read = window_reader(formats.get(name, naming), None)
    done = replay(windows_of(enumerate(lines(name), 1)), read, known, tmp_path, source="trace")
    with done.path.open("rb") as file:
        facts = [
            (fact.instance_id, [list(segment) for segment in fact.hit_curve])
            for batch in read_facts(file, "facts")
            for fact in batch
        ]
    assert_separate(by_instance(facts))


@every_format
@pytest.mark.parametrize("key", [b"a key that says nothing", None])
def test_through_the_topic(name: FormatName, key: bytes | None, known: Registry) -> None:
    records = [SourceRecord("requests", 0, at, key, line, 1) for at, line in enumerate(lines(name))]
    assert_separate(through_a_lane(known, records, TEMPLATE, name))


def test_binary_events_through_the_topic(known: Registry) -> None:
    records = []
    for at, who in enumerate(CALLERS * 2):
        flat = {"model": who["model"], "metadata.tenant": who["metadata"]["tenant"]}
        fields = flat | {name: str(who[name]) for name in ("lora", "salt") if name in who}
        value = EVENT_MESSAGE(block_keys=[1, 2], timestamp_ns=at, fields=fields).SerializeToString()
        records.append(SourceRecord("requests", 0, at, None, value, 1))
    assert_separate(through_a_lane(known, records, TEMPLATE, FormatName.NATIVE_PROTOBUF))


class Topic:
    """A sink that keeps what it is sent."""

    def __init__(self) -> None:
        self.records: list[SourceRecord] = []

    def send(self, records: Iterable[OutgoingRecord]) -> None:
        for key, value, headers in records:
            sent = tuple((name, str(text).encode()) for name, text in headers.items())
            place = len(self.records)
            self.records.append(SourceRecord("requests", 0, place, key.encode() if key else None, value, 1, sent))

    def wait(self, seconds: float) -> None:
        raise AssertionError

    def finish(self) -> int:
        return len(self.records)


@every_format
@pytest.mark.parametrize("way", ["event", "raw", "binary"])
@pytest.mark.parametrize("template", [TEMPLATE, "{another|x}", None])
def test_published_with_a_template(name: FormatName, way: str, template: str | None, known: Registry) -> None:
    """The id is the key, and stays the id whatever the template of the reader."""
    topic = Topic()
    naming = Naming(InstanceTemplate.parse(TEMPLATE))
    publish_trace(
        windows_of(enumerate(lines(name), 1)),
        topic,
        formats.get(name, naming),
        source="trace",
        raw=way == "raw",
        binary=way == "binary",
        named=True,
    )
    assert [(record.key or b"").decode() for record in topic.records] == [*IDS, *IDS]
    assert all(dict(record.headers)[INSTANCE_HEADER] == record.key for record in topic.records)
    assert_separate(through_a_lane(known, topic.records, template, FormatName.NATIVE))


@every_format
def test_a_record_without_the_field_is_a_dead_letter_that_names_it(name: FormatName, known: Registry) -> None:
    record = SAMPLES[name].record(Plain([1, 2], 0, 1, BLOCK)) | {"model": "llama"}
    source = SourceRecord("requests", 0, 0, b"llama", json.dumps(record).encode(), 1, ((FORMAT_HEADER, name.encode()),))
    lane = Lane(0, known, LaneTargets("facts", "dead", 1_000_000))
    read = read_records(formats.of_topic(FormatName.NATIVE, TEMPLATE), SourceRecords.of([source]))
    (letter,) = lane.process(read).dead_letters
    headers = dict(letter.headers)
    assert headers[REASON_HEADER] == b"instance-field-missing"
    assert b"metadata is absent or null" in (headers["litehit-error"] or b"")


@every_format
@pytest.mark.parametrize("way", ["event", "raw", "binary"])
def test_published_without_the_field_is_a_dead_letter_whatever_it_states(
    name: FormatName, way: str, known: Registry
) -> None:
    of = SAMPLES[name]
    stated = {"model": "llama", "instance_id": "llama", "source": "llama"}
    records = [
        of.record(Plain([1, 2], 0, place, BLOCK)) | stated | {"metadata": metadata}
        for place, metadata in enumerate(({"tenant": "acme"}, None, {"tenant": [1]}))
    ]
    topic = Topic()
    published = publish_trace(
        windows_of(enumerate((json.dumps(record).encode() for record in records), 1)),
        topic,
        formats.get(name, Naming(InstanceTemplate.parse("{model}/{metadata.tenant}"))),
        source="trace",
        raw=way == "raw",
        binary=way == "binary",
        instance_id="llama",
        named=True,
    )
    assert published.unreadable == 2
    lane = Lane(0, known, LaneTargets("facts", "dead", 1_000_000))
    processed = lane.process(
        read_records(formats.of_topic(FormatName.NATIVE, default_instance="llama"), SourceRecords.of(topic.records))
    )
    assert [record.key for record in processed.facts] == [b"llama/acme"]
    headers = [dict(letter.headers) for letter in processed.dead_letters]
    assert [one[REASON_HEADER] for one in headers] == [b"instance-field-missing"] * 2
    assert b"header litehit-instance is empty: the record's publisher found no instance" in (
        headers[0]["litehit-error"] or b""
    )


@pytest.mark.parametrize(
    ("told", "reason"),
    [(b"", b"instance-field-missing"), (None, b"instance-field-missing"), (b"\xff", b"invalid-field")],
)
def test_a_header_that_names_no_instance_is_a_dead_letter(told: bytes | None, reason: bytes, known: Registry) -> None:
    source = SourceRecord("requests", 0, 0, b"llama", lines(FormatName.NATIVE)[0], 1, ((INSTANCE_HEADER, told),))
    lane = Lane(0, known, LaneTargets("facts", "dead", 1_000_000))
    (letter,) = lane.process(read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of([source]))).dead_letters
    assert dict(letter.headers)[REASON_HEADER] == reason
    assert b"litehit-instance" in (dict(letter.headers)["litehit-error"] or b"")
