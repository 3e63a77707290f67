"""How an archiver begins: which topic there is, and where each of its partitions goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import structlog

from service.archive.catalog import Catalog
from service.archive.chain_end import Held, find_end
from service.archive.errors import ArchiveError, StoreError
from service.archive.facts_offsets import FactsOffsets
from service.archive.listener import FactListener
from service.archive.partition import PartitionArchive
from service.archive.seat import Seat
from service.archive.segment import ChainKey
from service.archive.store import Store
from service.archive.tail import SegmentLimits
from service.metrics import ArchiveMetrics
from service.settings import Settings
from service.topics import FoundTopic

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Opening:
    """Makes the seats of all partitions.

    Attributes:
        settings: topic, limits of a segment, whether gaps are accepted.
        store: where segments go.
        offsets: tells what the topic holds.
        listener: is told of facts and segments.
        metrics: counts them.
        writer: what segments are written by.
        clock: seconds that never go back.
    """

    settings: Settings
    store: Store
    offsets: FactsOffsets
    listener: FactListener
    metrics: ArchiveMetrics
    writer: Executor
    clock: Callable[[], float]

    def open(self, topic: FoundTopic) -> tuple[dict[int, Seat], dict[int, int]]:
        """The seat of each partition, stopped where it can't go on, and the partitions' last stable offsets.

        The numbered steps are those of a beginning in docs/GUARANTEES.md.

        Raises:
            StoreError: the store can't be used.
            KafkaException: the broker does not answer.
        """
        catalog = Catalog(self.store, self.settings.facts_topic)
        catalog.refresh()
        for fault in catalog.view.faults:
            _log.warning("chain_faulty", fault=fault)
        lows = self.offsets.begins(range(topic.partitions))
        ends = self.offsets.ends(range(topic.partitions))
        chains = {
            partition: ChainKey(self.settings.facts_topic, topic.generation, partition) for partition in sorted(lows)
        }
        seats = {
            partition: self._seat(catalog, chain, Held(lows[partition], ends[partition]))
            for partition, chain in chains.items()
        }
        return seats, ends

    def _seat(self, catalog: Catalog, chain: ChainKey, held: Held) -> Seat:
        self.metrics.begun(chain.partition)
        broken: ArchiveError | None = None
        begin = 0  # not known
        try:
            # 2.
            begin = find_end(catalog, chain, held, accept_gap=self.settings.accept_gap)
        except StoreError:
            raise
        except ArchiveError as error:
            broken = error
        limits = SegmentLimits.of(self.settings)
        archive = PartitionArchive(chain, begin, limits, catalog, self.listener, self.metrics, self.writer, self.clock)
        seat = Seat(archive, self.metrics, self.clock, end_known=broken is None)
        if broken is not None:
            seat.stop(broken)
        else:
            # 3.
            seat.check(held, accept_gap=self.settings.accept_gap)
        if seat.error is None:
            _log.info("archive_partition_begins", chain=str(chain), offset=archive.next_offset)
        return seat
