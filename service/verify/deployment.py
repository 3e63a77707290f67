"""The audit of a whole deployment, running or stopped, one partition after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Self

from litehit.counted import counted
from litehit.registry import Registry
from service import formats
from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.open_store import open_store
from service.archive.segment import ChainKey
from service.errors import CannotRestore, Difference
from service.lanes.committed import Committed, RequestsTopic
from service.lanes.lane import Lane, LaneTargets
from service.lanes.restore import Standing
from service.lanes.restorer import Restorer
from service.lanes.snapshot import Snapshot
from service.lanes.snapshots import Snapshots
from service.settings import Settings
from service.topic_reader import Bounds, TopicReader
from service.topics import TopicLayout
from service.verify.found import of_segments, of_topic
from service.verify.partition import Audited, Cut, Streams, audit_partition


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """What the audit of one partition came to.

    Attributes:
        partition: of the requests topic.
        start, consumed: requests `start:consumed` were recomputed.
        audited: what was seen.
        segments: files that were read.
        unchecked: what could not be checked, a sentence each.
    """

    partition: int
    start: int
    consumed: int
    audited: Audited
    segments: int
    unchecked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Moment:
    """One partition at the moment of the audit."""

    consumed: Committed
    archived: int | None
    requests: Bounds
    facts: Bounds
    dead_letters: Bounds
    consumed_later: int | None


class Verification:
    """Reads the topics as a read_committed reader does, and the store; writes nothing.

    The numbered steps are those of docs/GUARANTEES.md.

    Args:
        settings: topics, groups and the store, as the lanes and the archive have them.
        bootstrap: the broker's address.
        layout: the topics as they were found.
        registry: the lanes' own.

    Raises:
        StoreError: the store can't be read.
        TopicUnreadable: a topic can't be.
        Difference: a chain of segments has a hole, an overlap or a file that can't be read.
    """

    def __init__(self, settings: Settings, bootstrap: str, layout: TopicLayout, registry: Registry) -> None:
        self._settings = settings
        self._layout = layout
        self._registry = registry
        self._store = open_store(settings.store, for_writing=False)
        topic = RequestsTopic(settings.requests_topic, layout.requests_generation, layout.partitions)
        self._restorer = Restorer(
            Snapshots(self._store, topic), settings.group_id, registry, self._lane, settings.routing
        )
        self._catalog = Catalog(self._store, settings.facts_topic)
        with ExitStack() as opened:

            def reader(topic: str, group_id: str) -> TopicReader:
                return opened.enter_context(TopicReader(settings, bootstrap, topic, group_id))

            self._requests = reader(settings.requests_topic, settings.group_id)
            self._facts = reader(settings.facts_topic, settings.archive_group_id)
            self._dead_letters = reader(settings.dead_letters_topic, settings.group_id)
            self._moments = self._look()
            # 4. The chains of every generation, without a hole, an overlap or a damaged file.
            self._catalog.refresh()
            view = self._catalog.view
            for fault in (*(error for chain in view.chains.values() for error in chain.damaged), *view.faults):
                raise Difference(str(fault))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def requests(self) -> int:
        """Offsets of requests up to the cut, for a progress bar."""
        return sum((moment.consumed.offset or 0) - moment.requests.low for moment in self._moments)

    def partitions(self, progress: Callable[[int], object] = lambda _: None) -> Iterator[PartitionReport]:
        """Audit one partition after another.

        Args:
            progress: told the number of records of each batch.

        Raises:
            Difference: the first that is found.
            SegmentError: a segment is damaged.
            TopicUnreadable: a topic can't be read; or what was to be read expired meanwhile, then try again.
        """
        for partition, moment in enumerate(self._moments):
            yield self._audit(partition, moment, progress)

    def _lane(self, partition: int, restored: Snapshot | None) -> Lane:
        settings = self._settings
        targets = LaneTargets(settings.facts_topic, settings.dead_letters_topic, settings.dead_letter_max_bytes)
        return Lane(
            partition,
            self._registry,
            targets,
            repeats_window=settings.repeats_window,
            restored=restored,
            routing=settings.routing,
        )

    def _look(self) -> list[_Moment]:
        """The cut. The order of the questions is what makes it one."""
        numbers = range(self._layout.partitions)
        # 1. What is consumed, and archived. All it became was sent before that was committed, so it stands before
        #    the ends asked for next, decided or not.
        consumed = [self._consumed(partition) for partition in numbers]
        archived = [self._archived(partition) for partition in numbers]
        # 2. The ends of the topics.
        requests, facts, dead_letters = (
            [reader.bounds(partition) for partition in numbers]
            for reader in (self._requests, self._facts, self._dead_letters)
        )
        # 3. What is consumed now: whatever is committed before the stable ends of step 2 comes from such requests.
        later = [None if self._settings.at_least_once else self._consumed(at).offset or 0 for at in numbers]
        return list(map(_Moment, consumed, archived, requests, facts, dead_letters, later))

    def _consumed(self, partition: int) -> Committed:
        return Committed.read(*self._requests.committed(partition))

    def _archived(self, partition: int) -> int | None:
        """Up to where the archive says it has published; on the embedded broker it says another thing."""
        return None if self._settings.embedded else max(0, self._facts.committed(partition)[0])

    def _audit(self, partition: int, moment: _Moment, progress: Callable[[int], object]) -> PartitionReport:
        settings = self._settings
        chain = self._chain(partition, moment.archived)
        source = f"{settings.requests_topic}/{partition}"
        consumed = moment.consumed.offset or 0
        unchecked: list[str] = []
        standing = Standing(moment.consumed, moment.requests.low, moment.requests.stable)
        try:
            restored = self._restorer.restore_earliest(partition, standing)
            start, lane = restored.plan.start, restored.lane
            if start:
                unchecked.append(
                    f"what the requests before {start} became is not recomputed: they have expired, or the lane was "
                    f"reset; the caches come from a snapshot"
                )
        except CannotRestore as error:
            unchecked.append(f"nothing is recomputed: {error}")
            start, lane = consumed, self._lane(partition, None)
        facts, letters = moment.facts, moment.dead_letters
        cut = Cut(start, consumed, moment.consumed_later, facts.low, facts.stable, letters.stable)
        with (
            closing(self._requests.records(partition, start, consumed)) as requests,
            closing(self._facts.records(partition, facts.low, facts.end)) as fact_records,
            closing(self._dead_letters.records(partition, letters.low, letters.end)) as letter_records,
        ):
            streams = Streams(
                requests,
                of_topic(fact_records, facts.low, source),
                of_topic(letter_records, letters.low, source),
                of_segments(self._catalog, chain),
                chain,
            )
            # 5. and 6.
            audited = audit_partition(
                lane,
                formats.of_topic(
                    settings.requests_format, settings.instance_template, settings.routing.pooled(self._registry)
                ),
                streams,
                cut,
                repeats=self._settings.at_least_once,
                progress=progress,
            )
        unchecked += _unchecked(audited, chain)
        if moment.archived is None and chain.next_offset < facts.stable:
            unchecked.append(
                f"whether the facts from offset {chain.next_offset} on had a segment: on the embedded broker the "
                f"archive does not say how far it has published"
            )
        return PartitionReport(partition, start, consumed, audited, len(chain.segments), tuple(unchecked))

    def _chain(self, partition: int, archived: int | None) -> Chain:
        key = ChainKey(self._settings.facts_topic, self._layout.facts_generation, partition)
        chain = self._catalog.view.chain(key)
        if archived is not None and chain.next_offset < archived:
            raise Difference(
                f"{key}: the archive has published the facts before offset {archived} "
                f"(group {self._settings.archive_group_id}), but the segments end at {chain.next_offset}: "
                f"the last ones are missing"
            )
        # Asked again: a running archive may have gone past the cut.
        if chain.segments and chain.next_offset > (end := self._facts.bounds(partition).end):
            raise Difference(f"{chain.segments[-1].path} ends at offset {chain.next_offset}, the topic at {end}")
        return chain


def _unchecked(audited: Audited, chain: Chain) -> Iterator[str]:
    if chain.expired:
        yield (
            f"the archive begins at offset {chain.start_offset}: retention has removed "
            f"{counted(chain.expired_facts, 'fact')} before it"
        )
    for gap in chain.gaps:
        yield f"the facts at offsets {gap.base_offset} to {gap.end_offset} were never archived, which was accepted"
    if audited.facts_nowhere:
        yield (
            f"{counted(audited.facts_nowhere, 'fact')} neither on the facts topic nor in a segment: expired before "
            f"being archived, or removed"
        )
    if audited.dead_letters_expired:
        yield f"{counted(audited.dead_letters_expired, 'dead letter')}, expired from the topic"
    if audited.before_start:
        yield f"{audited.before_start} facts, rows and dead letters come from requests that are not recomputed"
    if audited.repeated:
        yield (
            f"{audited.repeated} facts, rows and dead letters stand there again, as batches that are handed over "
            f"at least once may"
        )
