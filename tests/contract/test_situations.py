"""What users of such tools have met comes out right, out of a file and off the topic."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from litehit.errors import LiteHitError, RegistryError, TraceError
from litehit.facts_csv import read_facts
from litehit.projector import HitCurveProjector
from litehit.registry import Registry
from litehit.replay import ReplayOptions, replay
from litehit.window import windows_of
from schemas.dead_letter import ERROR_HEADER, FORMAT_HEADER
from service import formats
from service.embedded import EmbeddedBroker
from service.formats.window_reader import window_reader
from service.settings import Settings
from service.topics import prepare_topics
from tests import lanes_harness as harness

PARTITIONS = 4


@dataclass(frozen=True)
class Situation:
    """Records of one instance, and what they must become.

    Attributes:
        format_name: of the records.
        lines: the good ones.
        facts: of each its input length and its hit curve.
        bad: a line that is refused, in their midst; b"": none.
        words: of the refusal.
        block, trace_block: as registered, in tokens.
        ttl_seconds: of its group.
    """

    format_name: str
    lines: Sequence[bytes]
    facts: Sequence[tuple[int, list[list[int]]]]
    bad: bytes = b""
    words: str = ""
    block: int = 512
    trace_block: int = 512
    ttl_seconds: float = 0


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def get(keys: Sequence[Any], length: int, time_ns: int = 0) -> bytes:
    return line(type="get", trace_id="t", timestamp_ns=time_ns, keys=list(keys), input_len=length)


def bailian(keys: Sequence[int], length: int) -> bytes:
    return line(chat_id=1, timestamp=0.0, input_length=length, type="text", hash_ids=list(keys))


LONGEST = range(10**15, 10**15 + 13_974)
GOOD = line(timestamp=0, input_length=1000, hash_ids=[1, 2])

SITUATIONS = {
    "partial-block": Situation("mooncake", [GOOD, GOOD], [(1000, []), (1000, [[1, 1]])]),
    "no-keys": Situation("tair", [get([], 7)], [(7, [])]),
    "too-many-keys": Situation(
        "mooncake",
        [GOOD, GOOD],
        [(1000, []), (1000, [[1, 1]])],
        bad=line(timestamp=0, input_length=20, hash_ids=[0, 1]),
        words="hash_ids has 2 keys, but input_length 20 has 1 block of 512 tokens (rounded up); send one key for",
    ),
    "signs": Situation(
        "tair", [get([-1], 512), get([18446744073709551615], 512)], [(512, []), (512, [[1, 1]])], block=512
    ),
    "no-double": Situation("tair", [get([2**53], 512), get([2**53 + 1], 512)], [(512, []), (512, [])]),
    "as-text": Situation(
        "tair",
        [get(["9007199254740992", "-1"], 1024), get([2**53, 2**64 - 1], 1024), get(["9007199254740993"], 512)],
        [(1024, []), (1024, [[1, 2]]), (512, [])],
    ),
    "weights": Situation(
        "tair",
        [get([1], 10), get([1], 10), get(range(100, 199), 990)],
        [(10, []), (10, [[1, 1]]), (990, [])],
        block=10,
        trace_block=10,
    ),
    "ttl": Situation(
        "tair",
        [get([1], 512, 0), get([1], 512, 900_000_000), get([1], 512, 1_900_000_000)],
        [(512, []), (512, [[1, 1]]), (512, [])],
        ttl_seconds=1,
    ),
    "coarser": Situation(
        "tair",
        [get([1, 2, 3], 200), get([9, 2], 128), get([1, 4], 128)],
        [(200, []), (128, [[1, 1]]), (128, [])],
        block=128,
        trace_block=64,
    ),
    "another-block": Situation(
        "mooncake",
        [line(timestamp=0, input_length=100, hash_ids=[1, 2], block_size=64)],
        [(100, [])],
        bad=line(timestamp=0, input_length=600, hash_ids=[1, 2]),
        words="blocks have 512 tokens, but instance 'another-block' is registered with trace_block_size_tokens 64",
        block=64,
        trace_block=64,
    ),
    "same-instant": Situation("tair", [get([1], 512, 5), get([1], 512, 5)], [(512, []), (512, [[1, 1]])]),
    "longest": Situation(
        "tair",
        [get(LONGEST, 13_974 * 16 + 3), get(LONGEST, 13_974 * 16 + 3)],
        [(223_587, []), (223_587, [[1, 13_974]])],
        block=16,
        trace_block=16,
    ),
    "per-block-hashes": Situation(
        "bailian",
        [bailian([1, 2], 32), bailian([3, 2], 32), bailian([1, 2, 5], 33)],
        [(32, []), (32, []), (33, [[3, 2]])],
        block=16,
        trace_block=16,
    ),
    "configured-block": Situation(
        "litellm",
        [line(startTime=1.5, prompt_tokens=20, prefix_block_hashes=["00000000000000aa", "1234567890123456"])] * 2,
        [(20, []), (20, [[1, 1]])],
        bad=line(startTime=1.5, prompt_tokens=20, prefix_block_hashes=["00000000000000aa"]),
        words="1 key, but an input of 20 tokens has 2 blocks of 16 tokens (rounded up)",
        block=16,
        trace_block=16,
    ),
}

by_name = pytest.mark.parametrize("name", SITUATIONS)
Facts = Mapping[str, list[tuple[int, list[list[int]]]]]


def registry_text(situations: Mapping[str, Situation]) -> str:
    lines = ["groups:"]
    lines += [f"  - {{name: g-{name}, ttl_seconds: {one.ttl_seconds:g}}}" for name, one in situations.items()]
    lines += ["instances:"]
    lines += [
        f"  - {{instance_id: {name}, group: g-{name}, block_size_tokens: {one.block}, "
        f"trace_block_size_tokens: {one.trace_block}, block_bytes: 1024}}"
        for name, one in situations.items()
    ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    path = tmp_path_factory.mktemp("situations") / "registry.yaml"
    path.write_text(registry_text(SITUATIONS), encoding="utf-8")
    return Registry.load(path)


def from_file(name: str, lines: Sequence[bytes], known: Registry, out: Path) -> list[tuple[int, list[list[int]]]]:
    options = ReplayOptions(instance_id=name)
    read = window_reader(formats.get(SITUATIONS[name].format_name), name)
    done = replay(windows_of(enumerate(lines, 1)), read, known, out, source="trace", options=options)
    with done.path.open("rb") as file:
        return [
            (fact.input_token_len, [list(segment) for segment in fact.hit_curve])
            for batch in read_facts(file, "facts")
            for fact in batch
        ]


@pytest.fixture(scope="module")
def off_the_topic(known: Registry, tmp_path_factory: pytest.TempPathFactory) -> tuple[Facts, Mapping[str, list[str]]]:
    """The facts and the refusals of each instance, all of them through one service at once, as they are."""
    settings = Settings(embedded=True, store=str(tmp_path_factory.mktemp("topic") / "store"))
    records: list[tuple[str, bytes]] = []
    headers: list[dict[str, str]] = []
    for name, one in SITUATIONS.items():
        lines = [one.lines[0], one.bad, *one.lines[1:]]
        records += [(name, each) for each in lines if each]
        headers += [{FORMAT_HEADER: one.format_name} for each in lines if each]
    with EmbeddedBroker(Path(settings.store)) as broker:
        layout = prepare_topics(settings, broker.bootstrap, broker.generation)
        with harness.RunningWorker(settings, broker.bootstrap, layout, known) as worker:
            places = harness.send(broker.bootstrap, settings.requests_topic, records, headers)
            worker.wait_until(harness.caught_up(places))
        facts: defaultdict[str, list[tuple[int, list[list[int]]]]] = defaultdict(list)
        for record in harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS):
            fact = json.loads(record.value or b"")
            facts[fact["instance_id"]].append((fact["input_token_len"], fact["hit_curve"]))
        letters: defaultdict[str, list[str]] = defaultdict(list)
        for record in harness.read_topic(broker.bootstrap, settings.dead_letters_topic, PARTITIONS):
            letters[(record.key or b"").decode()].append(record.header(ERROR_HEADER))
            assert record.header(FORMAT_HEADER) == SITUATIONS[(record.key or b"").decode()].format_name
    return facts, letters


@by_name
def test_through_a_file(name: str, known: Registry, tmp_path: Path) -> None:
    one = SITUATIONS[name]
    assert from_file(name, one.lines, known, tmp_path) == list(one.facts)
    if one.bad:
        with pytest.raises(TraceError) as caught:
            from_file(name, [one.lines[0], one.bad], known, tmp_path)
        assert "trace: line 2: " in str(caught.value)
        assert one.words in str(caught.value)


@by_name
def test_through_the_topic(name: str, off_the_topic: tuple[Facts, Mapping[str, list[str]]]) -> None:
    """One bad record disturbs neither its own instance's next ones nor other instances."""
    one = SITUATIONS[name]
    facts, letters = off_the_topic
    assert facts[name] == list(one.facts)
    refused = letters.get(name, [])
    assert len(refused) == bool(one.bad)
    assert all(one.words in sentence for sentence in refused)


def test_a_rate_is_weighed_by_tokens(off_the_topic: tuple[Facts, Mapping[str, list[str]]]) -> None:
    facts = off_the_topic[0]["weights"][1:]  # 10 tokens that all hit, 990 that do not
    hits = sum(HitCurveProjector.project_infinite([(start, run) for start, run in curve]) for _, curve in facts)
    assert hits * 10 / sum(length for length, _ in facts) == 0.01


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"block": 16, "trace_block": 64},
            "trace_block_size_tokens = 64: must divide block_size_tokens 16: blocks can only be made coarser",
        ),
        ({"block": 0, "trace_block": 0}, "block_size_tokens"),
        ({"ttl_seconds": -1}, "ttl_seconds"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(registry_text({"a": Situation("tair", [], [], **change)}), encoding="utf-8")
    with pytest.raises(RegistryError, match=words):
        Registry.load(path)


@pytest.mark.parametrize("workers", [0, 10**9])
def test_a_number_of_workers_that_cannot_be_is_refused(workers: int) -> None:
    check: Callable[..., ReplayOptions] = ReplayOptions
    with pytest.raises(LiteHitError, match=f"workers {workers} is out of range"):
        check(workers=workers)
