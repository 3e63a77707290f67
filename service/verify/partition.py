"""The audit of one partition: recompute, and hold everything against it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from service.archive.chain import Chain
from service.archive.decode import source_header
from service.errors import Difference
from service.formats import TopicFormats
from service.lanes.counts import LaneCounts
from service.lanes.lane import Lane
from service.lanes.reading import read_records
from service.records import OutputRecord, SourceRecord, SourceRecords
from service.verify.follower import Follower, Wanted
from service.verify.found import Found, FoundOrGap

_BATCH_RECORDS = 500


@dataclass(frozen=True, slots=True)
class Cut:
    """Up to where a partition is audited, all of it asked for at one moment.

    Attributes:
        start: first request that is recomputed.
        consumed: requests before it were consumed by then: all they became must be there.
        consumed_later: the same, asked for after the two below; None where output comes before the consumed offsets.
        facts_low: first offset that the facts topic still holds.
        facts_stable, dead_letters_stable: last stable offsets.
    """

    start: int
    consumed: int
    consumed_later: int | None
    facts_low: int
    facts_stable: int
    dead_letters_stable: int


@dataclass(frozen=True, slots=True)
class Streams:
    """What a partition holds, each in offset order.

    Attributes:
        requests: from the cut's start to what is consumed.
        facts, dead_letters: of their topics.
        rows: of the segments.
        chain: the segments.
    """

    requests: Iterable[SourceRecord]
    facts: Iterator[FoundOrGap]
    dead_letters: Iterator[FoundOrGap]
    rows: Iterator[FoundOrGap]
    chain: Chain


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit without a difference has seen.

    Attributes:
        counts: what the requests become: the ledger.
        facts, rows, dead_letters: found as they must be, on the facts topic, in segments, on the dead-letter topic.
        facts_nowhere: facts that are neither on the topic nor in a segment, where something has expired.
        dead_letters_expired: dead letters that are not on their topic, where something has expired.
        before_start: facts and dead letters of requests that are not recomputed.
        repeated: facts and dead letters that stand there again (at least once).
    """

    counts: LaneCounts
    facts: int
    rows: int
    dead_letters: int
    facts_nowhere: int
    dead_letters_expired: int
    before_start: int
    repeated: int


def audit_partition(
    lane: Lane,
    topic_formats: TopicFormats,
    streams: Streams,
    cut: Cut,
    *,
    repeats: bool,
    progress: Callable[[int], object] = lambda _: None,
) -> Audited:
    """Audit one partition.

    Args:
        lane: as it was before the cut's first request.
        topic_formats: how requests are read.
        streams: what is there.
        cut: up to where.
        repeats: output may stand there twice (at least once).
        progress: told the number of records of each batch.

    Raises:
        Difference: the first that is found.
    """

    def follow(what: str, found: Iterator[FoundOrGap]) -> Follower:
        return Follower(what, found, cut.start, cut.consumed, repeats=repeats)

    facts = follow("a fact on the topic", streams.facts)
    rows = follow("a fact in the segments", streams.rows)
    letters = follow("a dead letter", streams.dead_letters)
    counts = LaneCounts()
    nowhere = 0
    for batch in _batches(streams.requests):
        output = lane.process(read_records(topic_formats, SourceRecords.of(batch)))
        counts += output.counts
        for wanted in map(_wanted, output.facts):
            on_topic, row = facts.expect(wanted), rows.expect(wanted)
            _check_places(wanted, on_topic, row, streams.chain, cut.facts_low)
            nowhere += on_topic is None and row is None
        for wanted in map(_wanted, output.dead_letters):
            letters.expect(wanted)
        progress(len(batch))
    facts.finish(cut.consumed_later, cut.facts_stable)
    rows.finish(cut.consumed_later, cut.facts_stable)
    letters.finish(cut.consumed_later, cut.dead_letters_stable)
    followers = (facts, rows, letters)
    return Audited(
        counts,
        facts.matched,
        rows.matched,
        letters.matched,
        nowhere,
        letters.unchecked,
        sum(one.before_start for one in followers),
        sum(one.repeated for one in followers),
    )


def _check_places(wanted: Wanted, on_topic: Found | None, row: Found | None, chain: Chain, facts_low: int) -> None:
    """A fact's offset is the same on the topic and in the segments, and it is in each of them that holds the offset."""
    if on_topic is not None and row is not None and on_topic.offset != row.offset:
        raise Difference(
            f"{row.place} is the fact of {wanted.source}, which is at {on_topic.place}: the offsets must be the same"
        )
    if on_topic is None and row is not None and row.offset >= facts_low:
        raise Difference(
            f"{row.place}: the fact of {wanted.source} is missing on the topic, which begins at {facts_low}"
        )
    if on_topic is not None and row is None:
        covering = chain.covering(on_topic.offset)
        if covering is not None:
            raise Difference(f"{covering.path} lacks {on_topic.place}, the fact of {wanted.source}")


def _wanted(output: OutputRecord) -> Wanted:
    source = (source_header(output.headers) or b"").decode()
    return Wanted(source, int(source.rpartition("/")[2]), output)


def _batches(records: Iterable[SourceRecord]) -> Iterator[list[SourceRecord]]:
    left = iter(records)
    while batch := list(itertools.islice(left, _BATCH_RECORDS)):
        yield batch
