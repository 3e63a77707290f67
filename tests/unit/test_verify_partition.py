"""An undisturbed partition passes the audit; each kind of disturbance is found and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from litehit.registry import Registry
from schemas.dead_letter import REASON_HEADER, SOURCE_HEADER
from service import formats
from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.decode import FetchedFacts, decode, source_header
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, describe, segment_path
from service.archive.segment_writer import encode
from service.archive.store import Store
from service.errors import Difference
from service.format_names import FormatName
from service.lanes.counts import Ignored
from service.lanes.lane import Lane, LaneTargets
from service.records import OutputRecord, SourceRecord
from service.verify.found import GAP, FoundOrGap, of_segments, of_topic
from service.verify.partition import Audited, Cut, Streams, audit_partition
from tests import lanes_harness as harness

NATIVE = formats.of_topic(FormatName.NATIVE)
KEY = ChainKey("facts", "generation", 2)
SEGMENT_FACTS = 40
COUNT = 150


def as_stored(output: OutputRecord, offset: int) -> SourceRecord:
    return SourceRecord(
        output.topic, output.partition, offset, output.key, output.value, output.timestamp_ms, output.headers
    )


@dataclass
class World:
    """A partition as it should be, to be disturbed."""

    registry: Registry
    store: Store
    requests: list[SourceRecord]
    facts: list[SourceRecord] = field(default_factory=list)
    letters: list[SourceRecord] = field(default_factory=list)
    consumed: int = 0
    consumed_later: int | None = 0
    start: int = 0
    facts_low: int = 0
    letters_low: int = 0
    repeats: bool = False

    def lane(self) -> Lane:
        return Lane(2, self.registry, LaneTargets("facts", "dead", 2000))

    def catalog(self) -> Catalog:
        catalog = Catalog(self.store)
        catalog.refresh()
        return catalog

    def chain(self) -> Chain:
        return self.catalog().view.chain(KEY)

    def publish(self, facts: list[SourceRecord], base: int, end: int, gap_end: int | None = None) -> None:
        fetched = FetchedFacts(
            [fact.offset for fact in facts], [fact.value for fact in facts], [source_header(f.headers) for f in facts]
        )
        table = decode(fetched, 2).table
        info = describe(KEY, base, end, table, gap_end)
        self.store.create(info.path, encode(info, table))

    def audit(self) -> Audited:
        catalog = self.catalog()
        chain = catalog.view.chain(KEY)
        lane = self.lane()
        lane.replay(harness.read([one for one in self.requests if one.offset < self.start]))
        cut = Cut(
            self.start, self.consumed, self.consumed_later, self.facts_low, self.facts[-1].offset + 1, len(self.letters)
        )
        streams = Streams(
            [one for one in self.requests if self.start <= one.offset < self.consumed],
            of_topic([one for one in self.facts if one.offset >= self.facts_low], self.facts_low, "requests/2"),
            of_topic([one for one in self.letters if one.offset >= self.letters_low], self.letters_low, "requests/2"),
            of_segments(catalog, chain),
            chain,
        )
        return audit_partition(lane, NATIVE, streams, cut, repeats=self.repeats)


@pytest.fixture
def world(tmp_path: Path) -> World:
    values: list[bytes | None] = [harness.event(one) for one in harness.make_requests(COUNT, seed=31)]
    for place, value in ((10, b"{"), (11, b"}"), (12, b'{"type":"write"}'), (90, b"[" * 5000), (91, None)):
        values[place] = value
    # Every seventh offset holds a transaction's marker.
    requests = [
        SourceRecord("requests", 2, number + number // 6, b"chat-a", value, 1_700_000_000_000, (("tap", b"1"),))
        for number, value in enumerate(values)
    ]
    world = World(harness.registry(tmp_path), open_store(str(tmp_path / "store")), requests)
    output = world.lane().process(harness.read(requests))
    world.facts = [as_stored(fact, number + number // 10) for number, fact in enumerate(output.facts)]
    world.letters = [as_stored(letter, number) for number, letter in enumerate(output.dead_letters)]
    world.consumed = world.consumed_later = requests[-1].offset + 1
    base = 0
    for low in range(0, 3 * SEGMENT_FACTS, SEGMENT_FACTS):
        part = world.facts[low : low + SEGMENT_FACTS]
        world.publish(part, base, part[-1].offset + 1)
        base = part[-1].offset + 1
    return world


def test_an_undisturbed_partition_has_no_difference(world: World) -> None:
    audited = world.audit()
    counts = audited.counts
    assert (counts.consumed, counts.facts, counts.ignored) == (COUNT, COUNT - 5, {Ignored.WRITE: 1})
    assert (audited.facts, audited.rows, audited.dead_letters) == (COUNT - 5, 3 * SEGMENT_FACTS, 4)
    assert (audited.facts_nowhere, audited.dead_letters_expired, audited.before_start, audited.repeated) == (0,) * 4


def test_what_lies_behind_the_cut_does_not_count(world: World) -> None:
    world.consumed = world.requests[100].offset
    assert world.audit().counts.consumed == 100


def drop(what: list[SourceRecord], place: int) -> None:
    del what[place]


def double(what: list[SourceRecord], place: int) -> None:
    what.insert(place + 1, what[place])


def flip(what: list[SourceRecord], place: int) -> None:
    value = bytearray(what[place].value or b"")
    value[len(value) // 2] ^= 1
    what[place] = what[place]._replace(value=bytes(value))


def rekey(what: list[SourceRecord], place: int) -> None:
    what[place] = what[place]._replace(key=b"another")


def bare(what: list[SourceRecord], place: int) -> None:
    what[place] = what[place]._replace(headers=())


def reason(what: list[SourceRecord], place: int) -> None:
    headers = tuple((name, b"other" if name == REASON_HEADER else value) for name, value in what[place].headers)
    what[place] = what[place]._replace(headers=headers)


def add_header(what: list[SourceRecord], place: int) -> None:
    what[place] = what[place]._replace(headers=(*what[place].headers, ("more", b"")))


def swap(what: list[SourceRecord], place: int) -> None:
    what[place], what[place + 1] = what[place + 1], what[place]


Disturb = Callable[[list[SourceRecord], int], None]


@pytest.mark.parametrize("place", [0, 60, COUNT - 7])
@pytest.mark.parametrize(
    ("disturb", "words"),
    [
        (drop, "must have a fact on the topic, but it is missing"),
        (double, "stands there twice"),
        (flip, "of the value differs"),
        (rekey, "the key is b'another'"),
        (bare, f"the header {SOURCE_HEADER} is None"),
        (add_header, "the headers are"),
        (swap, "must have a fact on the topic"),
    ],
)
def test_a_disturbed_fact_is_found(world: World, disturb: Disturb, words: str, place: int) -> None:
    disturb(world.facts, place)
    with pytest.raises(Difference, match=words):
        world.audit()


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("disturb", "words"),
    [
        (drop, "must have a dead letter, but it is missing"),
        (double, "stands there twice"),
        (flip, "of the value differs|the value is"),
        (rekey, "the key is b'another'"),
        (reason, "the headers are"),
        (swap, "must have a dead letter"),
    ],
)
def test_a_disturbed_dead_letter_is_found(world: World, disturb: Disturb, words: str, place: int) -> None:
    disturb(world.letters, place)
    with pytest.raises(Difference, match=words):
        world.audit()


@pytest.mark.parametrize("stream", ["facts", "letters"])
def test_what_is_left_over_behind_the_last_request_is_found(world: World, stream: str) -> None:
    """Nothing that is recomputed stands behind it to be held against it."""
    there: list[SourceRecord] = getattr(world, stream)
    there.append(there[-1]._replace(offset=there[-1].offset + 1))
    with pytest.raises(Difference, match=f"/{there[-1].offset}: request .* stands there twice"):
        world.audit()


def test_a_dead_letter_of_a_request_that_gives_a_fact_is_found(world: World) -> None:
    forged = world.letters[0]
    headers = ((SOURCE_HEADER, world.requests[50].source.encode()), *forged.headers[1:])
    world.letters.insert(2, forged._replace(headers=headers))
    with pytest.raises(Difference, match=rf"request {world.requests[50].offset} must not have a dead letter"):
        world.audit()


def test_facts_of_requests_that_are_not_consumed_are_found(world: World) -> None:
    world.consumed = world.consumed_later = world.requests[100].offset
    with pytest.raises(Difference, match=rf"has consumed only the requests before {world.consumed}"):
        world.audit()


def test_requests_counted_as_consumed_that_gave_nothing_are_found(world: World) -> None:
    extra = world.requests[5]._replace(offset=world.consumed)
    world.requests.append(extra)
    world.consumed = world.consumed_later = extra.offset + 1
    with pytest.raises(Difference, match=rf"{extra.source} must have a fact on the topic, but .* nothing follows"):
        world.audit()


def republish(world: World, segment: int, change: Callable[[list[SourceRecord]], list[SourceRecord]]) -> None:
    """A segment again, of other facts."""
    info = world.chain().segments[segment]
    part = [fact for fact in world.facts if info.base_offset <= fact.offset < info.end_offset]
    world.store.delete(segment_path(KEY, info.base_offset))
    world.publish(change(part), info.base_offset, info.end_offset)


@pytest.mark.parametrize("segment", [1, 2])
@pytest.mark.parametrize("place", [0, 17, SEGMENT_FACTS - 1])
def test_a_row_that_is_missing_or_altered_is_found(world: World, segment: int, place: int) -> None:
    """Behind the last segment nothing is archived yet, which does not excuse what is missing at its own end."""
    republish(world, segment, lambda part: part[:place] + part[place + 1 :])
    with pytest.raises(Difference, match=r"in the segments, but it is missing|lacks facts/2"):
        world.audit()

    def retell(part: list[SourceRecord]) -> list[SourceRecord]:
        value = (part[place].value or b"").replace(b'"trace_id":"trace-', b'"trace_id":"trick-')
        return [*part[:place], part[place]._replace(value=value), *part[place + 1 :]]

    republish(world, segment, retell)
    with pytest.raises(Difference, match=r"parquet, offset \d+, recomputed .* byte 15 of the value differs"):
        world.audit()


def test_a_row_under_another_offset_is_found(world: World) -> None:
    """Offset 54 holds a transaction's marker, so that no row stands there."""
    assert [fact.offset for fact in world.facts[48:51]] == [52, 53, 55]
    republish(world, 1, lambda part: [*part[:9], part[9]._replace(offset=54), *part[10:]])
    with pytest.raises(Difference, match="the offsets must be the same"):
        world.audit()


def test_what_expired_is_counted_and_the_rest_is_held_to_the_segments(world: World) -> None:
    world.facts_low, world.letters_low = world.facts[50].offset, 1
    audited = world.audit()
    assert (audited.facts, audited.rows) == (COUNT - 55, 3 * SEGMENT_FACTS)
    assert (audited.facts_nowhere, audited.dead_letters_expired) == (0, 1)
    drop(world.facts, 50)
    with pytest.raises(Difference, match="is missing on the topic"):
        world.audit()


def test_what_expired_before_it_was_archived_is_counted(world: World) -> None:
    world.facts_low = world.facts[3 * SEGMENT_FACTS + 7].offset
    assert world.audit().facts_nowhere == 7


def test_an_accepted_gap_is_counted_and_what_surrounds_it_is_checked(world: World) -> None:
    last = world.chain().segments[2]
    kept = [fact for fact in world.facts if last.base_offset <= fact.offset < last.end_offset][5:]
    world.store.delete(last.path)
    world.publish(kept, last.base_offset, last.end_offset, gap_end=kept[0].offset)
    world.facts_low = kept[0].offset
    audited = world.audit()
    assert (audited.rows, audited.facts_nowhere) == (3 * SEGMENT_FACTS - 5, 5)
    assert world.chain().covering(kept[0].offset - 1) is None
    world.facts_low = 0  # the archive said that they had expired, and here they are: no difference
    assert world.audit().facts_nowhere == 0
    drop(world.facts, 2 * SEGMENT_FACTS + 2)
    with pytest.raises(Difference, match="must have a fact on the topic"):
        world.audit()


def test_what_comes_from_requests_that_are_not_recomputed_is_only_counted(world: World) -> None:
    world.start = world.requests[70].offset
    audited = world.audit()
    assert audited.counts.consumed == COUNT - 70
    assert audited.before_start == 67 + 67 + 2  # facts, rows, dead letters
    double(world.facts, 20)
    with pytest.raises(Difference, match="stands there twice"):
        world.audit()


def test_a_batch_may_stand_twice_where_it_is_handed_over_at_least_once(world: World) -> None:
    def twice() -> Iterator[SourceRecord]:
        rewound = [*world.facts[:130], *world.facts[120:]]
        for offset, fact in enumerate(rewound):
            yield fact._replace(offset=offset)

    facts = list(twice())
    world.facts, world.repeats, world.consumed_later = facts, True, None
    for info in world.chain().segments:
        world.store.delete(info.path)
    audited = world.audit()
    assert (audited.facts, audited.repeated) == (COUNT - 5, 10)
    flip(world.facts, 135)
    with pytest.raises(Difference, match="of the value differs"):
        world.audit()
    world.facts, world.repeats = facts, False
    with pytest.raises(Difference, match="stands there twice"):
        world.audit()


def test_the_streams_are_read_only_as_far_as_they_are_compared(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory does not grow with the topic."""
    monkeypatch.setattr("service.verify.partition._BATCH_RECORDS", 10)
    taken = 0
    ahead: list[int] = []

    def counted(found: Iterator[FoundOrGap]) -> Iterator[FoundOrGap]:
        nonlocal taken
        for item in found:
            taken += 1
            yield item

    def requests() -> Iterator[SourceRecord]:
        for number, record in enumerate(world.requests):
            ahead.append(taken - number)
            yield record

    letters = of_topic(world.letters, 0, "requests/2")
    streams = Streams(requests(), counted(of_topic(world.facts, 0, "requests/2")), letters, iter([GAP]), Chain(KEY))
    cut = Cut(0, world.consumed, world.consumed, 0, world.facts[-1].offset + 1, 4)
    assert audit_partition(world.lane(), NATIVE, streams, cut, repeats=False).facts == taken
    assert max(ahead) <= 1
