"""Every Prometheus metric of the service, each with its meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.api.index import IndexSize
from service.archive.status import ArchiveStatus
from service.lanes.counts import LaneCounts
from service.lanes.status import LanesStatus, LaneState

_FILE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Buckets of the time that making a file takes."""


class _AtScrape(Collector):
    """Collects at each scrape, and at no registration: the names can't clash with others of this file."""

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it asks for nothing."""
        return ()


class LanesMetrics:
    """Metrics of the role `lanes`. Counters count what is handed over; an aborted batch leaves no trace in them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        # Records consumed, by what became of them; the three outcomes add up to the records consumed.
        self._records = Counter(
            "litehit_lane_records",
            "Records handed over, by outcome: fact, dead_letter or ignored",
            ["partition", "outcome"],
            registry=registry,
        )
        # Dead letters by their reason; the sum is the outcome dead_letter above.
        self._dead_letters = Counter(
            "litehit_lane_dead_letters", "Dead letters, by reason", ["partition", "reason"], registry=registry
        )
        # Ignored records by kind; the sum is the outcome ignored above.
        self._ignored = Counter(
            "litehit_lane_ignored",
            "Records ignored, by kind: write, registration or repeat",
            ["partition", "kind"],
            registry=registry,
        )
        # Requests older than one before them in their instance; a TTL clock does not go back for them.
        self._times_clamped = Counter(
            "litehit_lane_times_clamped",
            "Requests whose time lies behind an earlier one's of their instance",
            ["partition"],
            registry=registry,
        )
        # How full micro-batches are.
        self._batch_records = Histogram(
            "litehit_lane_batch_records",
            "Records of a micro-batch",
            buckets=(1, 3, 10, 30, 100, 300, 1000, 3000, 10000),
            registry=registry,
        )
        # From the lanes' begin with a batch, that was read ahead by then, to where its commit is seen.
        self._batch_seconds = Histogram(
            "litehit_lane_batch_seconds",
            "Seconds from a micro-batch's first request in a lane to its commit",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        # Batches that were not handed over; each makes its lanes replay.
        self._aborts = Counter("litehit_lane_aborts", "Micro-batches aborted", registry=registry)

        # Facts of the outcome fact above: one a request, and one more for each variant of its instance.
        self._facts = Counter("litehit_lane_facts", "Facts handed over", ["partition"], registry=registry)
        # What the lane waits for a snapshot: the copy of its state.
        self._snapshot_pause = Histogram(
            "litehit_snapshot_pause_seconds",
            "Seconds a lane waits while its state is copied for a snapshot",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1),
            registry=registry,
        )
        # From the copy to a file that outlives a crash, in the background.
        self._snapshot_seconds = Histogram(
            "litehit_snapshot_write_seconds",
            "Seconds to make and write a snapshot",
            buckets=_FILE_SECONDS,
            registry=registry,
        )
        # The size of a lane's newest snapshot.
        self._snapshot_bytes = Gauge(
            "litehit_snapshot_bytes", "Bytes of the newest snapshot written", ["partition"], registry=registry
        )
        # Snapshots that could not be written; the one before stays, and another is tried later.
        self._snapshot_failures = Counter(
            "litehit_snapshot_failures", "Snapshots that could not be written", ["partition"], registry=registry
        )

    def begun(self, partition: int) -> None:
        """A lane begins: its counters are there before they count, or nobody would see the first one of each rise."""
        self.handed_over(partition, LaneCounts())
        self._snapshot_failures.labels(str(partition))

    def handed_over(self, partition: int, counts: LaneCounts) -> None:
        """A lane's share of a micro-batch is in Kafka."""
        label = str(partition)
        self._records.labels(label, "fact").inc(counts.facts)
        self._facts.labels(label).inc(counts.fact_records)
        self._records.labels(label, "ignored").inc(sum(counts.ignored.values()))
        self._records.labels(label, "dead_letter").inc(sum(counts.dead_letters.values()))
        for reason, count in counts.dead_letters.items():
            self._dead_letters.labels(label, reason.value).inc(count)
        for kind, count in counts.ignored.items():
            self._ignored.labels(label, kind.value).inc(count)
        self._times_clamped.labels(label).inc(counts.times_clamped)

    def batch(self, records: int, seconds: float) -> None:
        """A micro-batch is in Kafka."""
        self._batch_records.observe(records)
        self._batch_seconds.observe(seconds)

    def aborted(self) -> None:
        """A micro-batch was aborted."""
        self._aborts.inc()

    def snapshot_taken(self, pause_seconds: float) -> None:
        """A lane's state was copied."""
        self._snapshot_pause.observe(pause_seconds)

    def snapshot_written(self, partition: int, size_bytes: int, seconds: float) -> None:
        """A snapshot is in the store."""
        self._snapshot_seconds.observe(seconds)
        self._snapshot_bytes.labels(str(partition)).set(size_bytes)

    def snapshot_failed(self, partition: int) -> None:
        """A snapshot is not in the store."""
        self._snapshot_failures.labels(str(partition)).inc()

    def watch(self, status: Callable[[], LanesStatus]) -> None:
        """Show the lanes' state at each scrape."""
        self._registry.register(_LanesCollector(status))


class _LanesCollector(_AtScrape):
    def __init__(self, status: Callable[[], LanesStatus]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        # 1 for the state a lane is in, 0 for the others.
        state = GaugeMetricFamily("litehit_lane_state", "1 for the state the lane is in", labels=["partition", "state"])
        # The next record the lane processes.
        next_offset = GaugeMetricFamily("litehit_lane_next_offset", "Next offset to process", labels=["partition"])
        # Records between the lane and the last stable offset.
        lag = GaugeMetricFamily(
            "litehit_lane_lag_records", "Records up to the last stable offset", labels=["partition"]
        )
        # The size of an instance's LRU state.
        blocks = GaugeMetricFamily(
            "litehit_instance_unique_blocks", "Blocks an instance's core holds", labels=["partition", "instance_id"]
        )
        memory = GaugeMetricFamily(
            "litehit_instance_memory_bytes", "Bytes of an instance's core", labels=["partition", "instance_id"]
        )
        # The next offset of the snapshot that the lane's caches were restored from; absent from the start of the log.
        restored_from = GaugeMetricFamily(
            "litehit_lane_restored_from_offset", "Next offset of the snapshot restored from", labels=["partition"]
        )
        # Records read again, with their output suppressed, when the caches were last restored.
        replayed = GaugeMetricFamily(
            "litehit_lane_replayed_records", "Records replayed by the last restore", labels=["partition"]
        )
        # How old what a restart would go on from is; it grows while nothing comes in, too.
        age = GaugeMetricFamily("litehit_snapshot_age_seconds", "Age of the newest snapshot", labels=["partition"])
        # An instance's facts so far, and their hits at each configured capacity and at infinite capacity (+Inf): what
        # /query answers over all of them.
        of_instance = ["partition", "instance_id"]
        of_slot = [*of_instance, "capacity_gb"]
        requests = CounterMetricFamily("litehit_instance_requests", "Requests with a fact", labels=of_instance)
        tokens = CounterMetricFamily("litehit_instance_input_tokens", "Tokens of their prompts", labels=of_instance)
        hit_blocks = CounterMetricFamily("litehit_instance_hit_blocks", "Hit blocks at a capacity", labels=of_slot)
        hit_tokens = CounterMetricFamily("litehit_instance_hit_tokens", "Hit tokens at a capacity", labels=of_slot)
        # How long nothing was heard of Kafka: it is away, or the lanes' loop hangs.
        silence = GaugeMetricFamily(
            "litehit_lanes_kafka_silence_seconds", "Seconds since the lanes last heard of a connected broker"
        )
        # Instances whose records lie on several partitions: each lane's cache sees only a part of their requests.
        split = GaugeMetricFamily("litehit_split_instances", "Instances that several lanes of this process hold")
        status = self._status()
        split.add_metric([], len(status.split_instances))
        silence.add_metric([], max(0.0, time.monotonic() - status.heard_at))
        for lane in status.lanes:
            label = str(lane.partition)
            for known in LaneState:
                state.add_metric([label, known.value], float(lane.state is known))
            if lane.next_offset is not None:
                next_offset.add_metric([label], lane.next_offset)
            if lane.lag is not None:
                lag.add_metric([label], lane.lag)
            for instance in lane.instances:
                labels = [label, instance.config.instance_id]
                blocks.add_metric(labels, instance.unique_blocks)
                memory.add_metric(labels, instance.memory_bytes)
                totals = instance.totals
                requests.add_metric(labels, totals.requests)
                tokens.add_metric(labels, totals.input_tokens)
                shown = dict(zip(map(_capacity_label, totals.capacity_gb), totals.hit_blocks, strict=True))
                for capacity, hits in {**shown, _INFINITE: totals.ceiling_blocks}.items():
                    hit_blocks.add_metric([*labels, capacity], hits)
                shown = dict(zip(map(_capacity_label, totals.capacity_gb), totals.hit_tokens, strict=True))
                for capacity, hits in {**shown, _INFINITE: totals.ceiling_tokens}.items():
                    hit_tokens.add_metric([*labels, capacity], hits)
            replayed.add_metric([label], lane.replayed)
            if lane.restored_from is not None:
                restored_from.add_metric([label], lane.restored_from)
            if lane.snapshot is not None:
                age.add_metric([label], max(0.0, time.time() - lane.snapshot.taken_at))
        lanes = (state, next_offset, lag, blocks, memory, restored_from, replayed, age)
        return *lanes, silence, split, requests, tokens, hit_blocks, hit_tokens


_INFINITE = "+Inf"


def _capacity_label(capacity_gb: float) -> str:
    return _INFINITE if capacity_gb < 0 else repr(float(capacity_gb)).removesuffix(".0")


class ArchiveMetrics:
    """Metrics of the role `archive`. Counters are of this process; the store itself is the record of what is kept."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        # Facts consumed from the topic; more than are archived where another archiver publishes too.
        self._facts = Counter("litehit_archive_facts", "Facts consumed", ["partition"], registry=registry)
        # Segments this process published, and their bytes as files.
        self._segments = Counter("litehit_archive_segments", "Segments published", ["partition"], registry=registry)
        self._bytes = Counter("litehit_archive_bytes", "Bytes of published segments", ["partition"], registry=registry)
        # From an open tail to a file that outlives a crash; the partition's next segment waits for it.
        self._publish_seconds = Histogram(
            "litehit_archive_publish_seconds",
            "Seconds to write and publish a segment",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        # Segments that another archiver, or a try of this one whose answer was lost, had published already.
        self._lost_races = Counter(
            "litehit_archive_lost_races", "Segments found published already", ["partition"], registry=registry
        )
        # Tries to publish that the store refused; each is repeated.
        self._failures = Counter(
            "litehit_archive_publish_failures", "Tries to publish that failed", ["partition"], registry=registry
        )

        # Offsets that expired before they were archived and that the operator accepted as missing (accept_gap).
        self._gaps = Counter(
            "litehit_archive_gap_offsets", "Offsets given up as missing", ["partition"], registry=registry
        )

    def begun(self, partition: int) -> None:
        """A partition begins: its counters are there before they count, see `LanesMetrics.begun`."""
        for counter in (self._facts, self._segments, self._bytes, self._lost_races, self._failures, self._gaps):
            counter.labels(str(partition))

    def consumed(self, partition: int, facts: int) -> None:
        """Facts were consumed."""
        self._facts.labels(str(partition)).inc(facts)

    def published(self, partition: int, size_bytes: int, seconds: float) -> None:
        """A segment was written and published."""
        self._segments.labels(str(partition)).inc()
        self._bytes.labels(str(partition)).inc(size_bytes)
        self._publish_seconds.observe(seconds)

    def race_lost(self, partition: int) -> None:
        """A segment was there already."""
        self._lost_races.labels(str(partition)).inc()

    def publishing_failed(self, partition: int) -> None:
        """The store refused a segment."""
        self._failures.labels(str(partition)).inc()

    def gap_accepted(self, partition: int, offsets: int) -> None:
        """Offsets expired unarchived, and the archive goes on behind them."""
        self._gaps.labels(str(partition)).inc(offsets)

    def watch(self, status: Callable[[], ArchiveStatus]) -> None:
        """Show the partitions' state at each scrape."""
        self._registry.register(_ArchiveCollector(status))


class _ArchiveCollector(_AtScrape):
    def __init__(self, status: Callable[[], ArchiveStatus]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        # Offsets between the archiver and the last stable offset.
        lag = GaugeMetricFamily(
            "litehit_archive_lag_records", "Records up to the last stable offset", labels=["partition"]
        )
        # Facts consumed and in no segment yet.
        tail = GaugeMetricFamily("litehit_archive_tail_facts", "Facts of the open tail", labels=["partition"])
        # Everything before it is in the store.
        end = GaugeMetricFamily("litehit_archive_end_offset", "End of the published segments", labels=["partition"])
        # 1 where the partition stopped with an error; the log and readiness say which.
        stopped = GaugeMetricFamily("litehit_archive_stopped", "1 if the partition stopped", labels=["partition"])
        # 1 while it waits for the store or the topic before it knows where its partitions go on.
        waiting = GaugeMetricFamily("litehit_archive_waiting", "1 if the archive can't begin yet")
        # How long Kafka has not answered, or the archive's loop hangs.
        silence = GaugeMetricFamily(
            "litehit_archive_kafka_silence_seconds", "Seconds since Kafka last answered the archive"
        )
        status = self._status()
        waiting.add_metric([], float(status.starting is not None))
        silence.add_metric([], max(0.0, time.monotonic() - status.heard_at))
        for one in status.partitions:
            label = [str(one.chain.partition)]
            if one.lag is not None:
                lag.add_metric(label, one.lag)
            if one.end_known:
                tail.add_metric(label, one.tail_rows)
                end.add_metric(label, one.published_end)
            stopped.add_metric(label, float(one.error is not None))
        return lag, tail, end, stopped, waiting, silence


class UpkeepMetrics:
    """Metrics of the archive's upkeep. Those of what the store holds are of all generations of the facts topic."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # Segments that count, and the bytes of their files.
        self._segments = Gauge(
            "litehit_store_segments", "Segments in the store, merged or not", ["partition"], registry=registry
        )
        self._bytes = Gauge("litehit_store_bytes", "Bytes of segments in the store", ["partition"], registry=registry)
        # Merges done by this process, the segments that went into them, and their facts.
        self._merges = Counter("litehit_compactions", "Merges of segments", ["partition"], registry=registry)
        self._parts = Counter(
            "litehit_compacted_segments", "Segments that were merged", ["partition"], registry=registry
        )
        self._facts = Counter("litehit_compacted_facts", "Facts that were merged", ["partition"], registry=registry)
        # From reading the first of them to the last one's deletion.
        self._seconds = Histogram(
            "litehit_compaction_seconds",
            "Seconds to merge some segments",
            buckets=_FILE_SECONDS,
            registry=registry,
        )
        # What retention removed.
        self._removed_segments = Counter(
            "litehit_retention_removed_segments", "Segments removed by age", ["partition"], registry=registry
        )
        self._removed_facts = Counter(
            "litehit_retention_removed_facts", "Facts removed by age", ["partition"], registry=registry
        )
        # Looks that could not be finished, by the store's fault or a segment's; each is repeated.
        self._failures = Counter("litehit_upkeep_failures", "Looks that failed", registry=registry)
        # 1 from a look that could not be finished to one that could.
        self._failing = Gauge("litehit_upkeep_failing", "1 if the last look failed", registry=registry)

    def stored(self, segments: Mapping[int, int], size_bytes: Mapping[int, int]) -> None:
        """So many segments and bytes of each partition are in the store."""
        for partition, count in segments.items():
            self._segments.labels(str(partition)).set(count)
            self._bytes.labels(str(partition)).set(size_bytes[partition])

    def merged(self, partition: int, parts: int, facts: int, seconds: float) -> None:
        """Segments were merged into one."""
        label = str(partition)
        self._merges.labels(label).inc()
        self._parts.labels(label).inc(parts)
        self._facts.labels(label).inc(facts)
        self._seconds.observe(seconds)

    def removed(self, partition: int, segments: int, facts: int) -> None:
        """Segments were removed."""
        self._removed_segments.labels(str(partition)).inc(segments)
        self._removed_facts.labels(str(partition)).inc(facts)

    def failed(self) -> None:
        """A look could not be finished, or not for all partitions."""
        self._failures.inc()

    def looked(self, *, well: bool) -> None:
        """A look has ended."""
        self._failing.set(not well)


class ApiMetrics:
    """Metrics of the role `api`; the index is asked for its size at each scrape."""

    def __init__(
        self,
        registry: CollectorRegistry,
        index_size: Callable[[], IndexSize],
        capacities: Callable[[], Mapping[str, Mapping[str, int]]],
    ) -> None:
        # Calls answered, by the route's path ("unmatched" where none fits) and the HTTP status.
        self._requests = Counter("litehit_http_requests", "HTTP calls answered", ["route", "status"], registry=registry)
        # From a call's arrival to the end of its answer, by the route's path.
        self._seconds = Histogram(
            "litehit_http_request_seconds",
            "Seconds to answer an HTTP call",
            ["route"],
            buckets=(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self._by_answer: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        # Facts summed by the index: those of published segments and those of the open tail.
        facts = Gauge("litehit_index_facts", "Facts summed by the index", registry=registry)
        facts.set_function(lambda: index_size().facts)
        # Facts of the open tail, held as rows until their segment is published.
        tail_facts = Gauge("litehit_index_tail_facts", "Facts held as rows in memory", registry=registry)
        tail_facts.set_function(lambda: index_size().tail_facts)
        # Segments the index has summed.
        segments = Gauge("litehit_index_segments", "Segments summed by the index", registry=registry)
        segments.set_function(lambda: index_size().segments)
        # Groups of facts that are summed together: of one instance, block size and block bytes.
        groups = Gauge("litehit_index_groups", "Groups of facts summed by the index", registry=registry)
        groups.set_function(lambda: index_size().groups)
        registry.register(_LacksCollector(index_size))
        registry.register(_CapacityCollector(capacities))

    def answered(self, route: str, status: int, seconds: float) -> None:
        """A call was answered."""
        known = self._by_answer.get((route, status))
        if known is None:  # finding them by their labels takes as long as counting
            known = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._by_answer[route, status] = known
        requests, taken = known
        requests.inc()
        taken.observe(seconds)


class _LacksCollector(_AtScrape):
    """What the store lacks; nothing before the index knows all of it, or a start would look as if all were there."""

    def __init__(self, index_size: Callable[[], IndexSize]) -> None:
        self._index_size = index_size

    def collect(self) -> Iterable[Metric]:
        # Segments at the ends of partitions that are damaged: their facts are not summed, and nobody knows how many.
        # Anything but 0 wants an operator; /query names the files, and why, in as_of.
        unreadable = GaugeMetricFamily("litehit_index_unreadable_files", "Files at the store's end that can't be read")
        # Offsets whose facts no segment holds though later ones do: given up, or in a file that can't be read.
        missing = GaugeMetricFamily(
            "litehit_index_missing_offsets", "Offsets before the store's end without a fact in it"
        )
        size = self._index_size()
        if size.loaded:
            unreadable.add_metric([], size.unreadable)
            missing.add_metric([], size.missing)
        return unreadable, missing


class FollowerMetrics:
    """Whether the index is level with the store."""

    def __init__(self, registry: CollectorRegistry, waiting: Callable[[], Collection[str]]) -> None:
        # 0 while the store, or a segment that has come, can't be read: answers stay as they were.
        following = Gauge("litehit_index_following", "1 if the last look at the store worked", registry=registry)
        following.set_function(lambda: float(not waiting()))


class _CapacityCollector(_AtScrape):
    """Args: by instance and share of its ceiling, the smallest capacity in bytes."""

    def __init__(self, capacities: Callable[[], Mapping[str, Mapping[str, int]]]) -> None:
        self._capacities = capacities

    def collect(self) -> Iterable[Metric]:
        # The smallest capacity that hits a share (0.95: 95 %) of what an infinite cache would hit, over all facts.
        gauge = GaugeMetricFamily(
            "litehit_instance_capacity_bytes",
            "Smallest capacity for a share of the ceiling",
            labels=["instance_id", "of_ceiling"],
        )
        for instance_id, shares in self._capacities().items():
            for share, capacity in shares.items():
                gauge.add_metric([instance_id, share], capacity)
        return [gauge]
