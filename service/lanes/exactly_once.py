"""Kafka transactions (EOS v2): one transactional producer a process, one transaction a micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

from confluent_kafka import KafkaException, Producer

from service.crash_points import CrashPoint, crash_point
from service.errors import BatchAborted
from service.lanes.membership import GroupIdentity
from service.lanes.producing import CALL_SECONDS, Deliveries, call_by_flag, produce, producer_config
from service.lanes.transaction import MicroBatch
from service.settings import Settings

T = TypeVar("T")


class ExactlyOnce:
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
        properties = {
            "transactional.id": settings.transactional_id,
            "transaction.timeout.ms": int(settings.transaction_timeout_seconds * 1000),
        }
        self._producer = Producer(producer_config(settings, bootstrap, **properties))

    def open(self) -> None:
        """Fence every older producer of the transactional id and abort what it left open."""
        self._call(lambda: self._producer.init_transactions(CALL_SECONDS))

    def commit(self, batch: MicroBatch) -> None:
        """Hand over a batch in one transaction; the numbered steps are those of docs/GUARANTEES.md."""
        self._deliveries.clear()
        self._call(self._producer.begin_transaction)
        try:
            for record in batch.outputs:  # 2.
                produce(self._producer, record, self._deliveries)
            crash_point(CrashPoint.MID_TRANSACTION)
            group = self._membership.metadata()  # 3.
            self._call(lambda: self._producer.send_offsets_to_transaction(batch.offsets(), group, CALL_SECONDS))
            crash_point(CrashPoint.BEFORE_COMMIT)
            self._call(lambda: self._producer.commit_transaction(CALL_SECONDS))  # 4.
        except BatchAborted as cause:
            self._abort(cause)

    def close(self) -> None:
        """Purge the producer and abort what is open."""
        self._producer.purge()
        with suppress(KafkaException):  # after a fatal error there is nothing left to abort
            self._producer.close()

    def _abort(self, cause: BatchAborted) -> NoReturn:
        self._call(lambda: self._producer.abort_transaction(CALL_SECONDS))
        # A refused record shows as a failed delivery; the call that stumbled over it knows only that one failed.
        raise self._deliveries.failure() or cause

    def _call(self, call: Callable[[], T]) -> T:
        return call_by_flag(call, self._producer, self._stopping)
