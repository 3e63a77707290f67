"""Kafka transactions (EOS v2): one transactional producer a process, one transaction a micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any, NoReturn, TypeVar

import structlog
from confluent_kafka import KafkaException, Producer

from service.crash_points import CrashPoint, crash_point
from service.errors import BatchAborted, TransactionUnknown
from service.lanes.bounded_call import NotReturned, bounded
from service.lanes.membership import GroupIdentity
from service.lanes.producing import CALL_SECONDS, Deliveries, call_by_flag, produce, producer_config
from service.lanes.transaction import MicroBatch, Transaction
from service.settings import Settings

log = structlog.get_logger()
T = TypeVar("T")

_PATIENCE_SECONDS = CALL_SECONDS + 2.0


class ExactlyOnce(Transaction):
    """Facts, dead letters and consumed offsets appear together or not at all.

    Args:
        settings: transactional id and time-out.
        bootstrap: Kafka's bootstrap servers.
        membership: vouches for the group metadata in the transaction.
        stopping: True once the process is asked to stop.
    """

    def __init__(
        self, settings: Settings, bootstrap: str, membership: GroupIdentity, stopping: Callable[[], bool]
    ) -> None:
        self._membership = membership
        self._stopping = stopping
        self._deliveries = Deliveries()
        # How far aborted batches went, by partition of the requests topic. The deliveries of what is made of records
        # before that are reported, so that one that Kafka refuses is known when it comes again. Elsewhere the commit
        # tells whether all was delivered, for half the cost of producing less.
        self._aborted: dict[int, int] = {}
        properties = {
            "transactional.id": settings.transactional_id,
            "transaction.timeout.ms": int(settings.transaction_timeout_seconds * 1000),
        }
        self._config = producer_config(settings, bootstrap, **properties)
        self._producer = Producer(self._config)
        self._group: Any = None

    def open(self) -> None:
        """Fence every older producer of the transactional id and abort what it left open."""
        self._call(lambda: self._producer.init_transactions(CALL_SECONDS))

    def prepare(self) -> None:
        """Take the group's metadata; a broker refuses it, should the partitions be another member's by the time."""
        self._group = self._membership.metadata()

    def hand_over(self, batch: MicroBatch) -> None:
        """Hand over a batch in one transaction; the numbered steps are those of docs/GUARANTEES.md."""
        self._deliveries.clear()
        self._call(self._producer.begin_transaction)
        try:
            for record in batch.outputs:  # 2.
                produce(self._producer, record, self._deliveries if record.partition in self._aborted else None)
            crash_point(CrashPoint.MID_TRANSACTION)
            self._send_offsets(batch)  # 3.
            crash_point(CrashPoint.BEFORE_COMMIT)
            self._call(lambda: self._producer.commit_transaction(CALL_SECONDS))  # 4.
        except BatchAborted as cause:
            self._abort(batch, cause)
        except NotReturned:
            self._note_aborted(batch)
            self._replace_producer(f"librdkafka did not send the offsets in {_PATIENCE_SECONDS:g} s")
        for partition, position in batch.positions.items():
            if self._aborted.get(partition, inf) <= position.offset:
                del self._aborted[partition]

    def finish(self, batch: MicroBatch) -> None:
        """Nothing: the offsets are in the transaction."""

    def close(self) -> None:
        """Purge the producer and abort what is open."""
        self._producer.purge()
        with suppress(KafkaException):  # after a fatal error there is nothing left to abort
            self._producer.close()

    def _send_offsets(self, batch: MicroBatch) -> None:
        group, offsets, producer = self._group, batch.offsets(), self._producer
        # librdkafka heeds no time-out here, and waits for ever where the group's coordinator was a broker that has left
        # the cluster's metadata, as each does that is restarted (confluentinc/librdkafka#5456 and #5511).
        self._call(
            lambda: bounded(
                lambda: producer.send_offsets_to_transaction(offsets, group, CALL_SECONDS), _PATIENCE_SECONDS
            )
        )

    def _replace_producer(self, reason: str) -> NoReturn:
        """Go on with a new producer, which fences the one that is left behind and aborts its transaction."""
        log.warning("producer_replaced", reason=reason)
        self._deliveries = Deliveries()
        self._producer = Producer(self._config)
        self.open()
        raise BatchAborted(f"{reason}; a new producer goes on")

    def _abort(self, batch: MicroBatch, cause: BatchAborted) -> NoReturn:
        self._note_aborted(batch)
        try:
            self._call(lambda: self._producer.abort_transaction(CALL_SECONDS))
        except TransactionUnknown as error:
            # While the coordinator still ends the transaction before, it puts off beginning this one; librdkafka asks
            # to end it all the same (confluentinc/librdkafka#4849).
            self._replace_producer(f"{cause}, and the abort was refused: {error}")
        # A refused record shows as a failed delivery; the call that stumbled over it knows only that one failed.
        raise self._deliveries.failure() or cause

    def _note_aborted(self, batch: MicroBatch) -> None:
        for partition, position in batch.positions.items():
            self._aborted[partition] = max(position.offset, self._aborted.get(partition, 0))

    def _call(self, call: Callable[[], T]) -> T:
        return call_by_flag(call, self._producer, self._stopping)
