"""The ordered executor of one partition: records in, facts and dead letters out. It knows no Kafka client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from litehit.errors import RegistrationNeedsReset, RegistrationRefused
from litehit.registration import Registration
from litehit.registry import Registry
from litehit.targets import AS_NAMED, Routing
from schemas.dead_letter import Reason
from service.errors import TooManyDeadLetters
from service.lanes.admission import Share, admit
from service.lanes.counts import Ignored, LaneCounts
from service.lanes.dead_letters import dead_letter
from service.lanes.frozen_lane import FrozenLane
from service.lanes.instances import LaneInstances
from service.lanes.poison_limit import NO_LIMITS, PoisonLimits, PoisonWatch
from service.lanes.read_records import Poison, ReadRecords
from service.lanes.rendering import Computed, render
from service.lanes.snapshot import Snapshot
from service.lanes.status import InstanceStatus
from service.records import OutputRecord, SourceRecord, SourceRecords


@dataclass(frozen=True, slots=True)
class LaneTargets:
    """Where a lane's output goes.

    Attributes:
        facts_topic, dead_letters_topic: names of topics.
        dead_letter_max_bytes: limit of a dead letter's key, value and headers.
    """

    facts_topic: str
    dead_letters_topic: str
    dead_letter_max_bytes: int


@dataclass(frozen=True)
class LaneOutput:
    """What a batch of records became.

    Attributes:
        facts_topic: name of the facts topic.
        sources: where the records stand.
        computed: their facts, of each engine.
        dead_letters: in offset order.
        counts: the batch's ledger.
    """

    facts_topic: str
    sources: SourceRecords
    computed: Sequence[Computed]
    dead_letters: tuple[OutputRecord, ...]
    counts: LaneCounts

    @cached_property
    def facts(self) -> tuple[OutputRecord, ...]:
        """In offset order; rendered when they are first asked for, in any thread: the lane may go on meanwhile."""
        return render(self.facts_topic, self.sources, self.computed)


@dataclass(slots=True)
class _Ledger:
    """What became of a batch's records."""

    with_facts: int = 0
    poison: list[tuple[SourceRecord, Poison]] = field(default_factory=list)
    ignored: Counter[Ignored] = field(default_factory=Counter)
    too_many: TooManyDeadLetters | None = None


class Lane:
    """One partition's instances, each with a core of its own, fed in offset order.

    The same records give the same bytes, however they are cut into batches. An exception that is no poison of a
    record is a bug: it leaves through `process`, after which the lane must not be used any more.

    Args:
        partition: of the requests topic; records of another are refused.
        registry: the instances that are known.
        targets: where the output goes.
        limits: how many dead letters are taken for single bad records.
        repeats_window: a request is ignored whose trace id is among so many last ones of its instance; 0: none is.
        restored: where it goes on; None: with empty caches from the start of the log.
        routing: whether requests go to other instances than the one they name.

    Raises:
        StateError: a core of the snapshot is none.
    """

    def __init__(
        self,
        partition: int,
        registry: Registry,
        targets: LaneTargets,
        limits: PoisonLimits = NO_LIMITS,
        repeats_window: int = 0,
        restored: Snapshot | None = None,
        routing: Routing = AS_NAMED,
    ) -> None:
        self.partition = partition
        self._targets = targets
        self._poison = PoisonWatch(limits)
        self._instances = LaneInstances(registry, repeats_window, restored, routing)
        self.history = 0 if restored is None else restored.history
        self._next_offset = 0 if restored is None else restored.next_offset

    @property
    def next_offset(self) -> int:
        """One past the last record processed; where it was restored, before the first one."""
        return self._next_offset

    def process(self, records: ReadRecords) -> LaneOutput:
        """Turn records, which must follow those before in offset order, into facts and dead letters.

        Raises:
            TooManyDeadLetters: they exceed the limits; nothing of the batch may be handed over.
        """
        ledger = _Ledger()
        parts: list[Computed] = []
        clamped = 0
        for shares in self._stretches(records, ledger):
            if ledger.too_many is not None:
                raise ledger.too_many
            for share in shares:
                # All engines of a request see its time; the first one counts it.
                counting = share.group.engines[0].core if share.group.places[0] == 0 else None
                clamped -= 0 if counting is None else counting.clamped_requests()
                facts = self._instances.process(share.group, share.requests)
                parts += (Computed(share.rows, place, one) for place, one in facts)
                clamped += 0 if counting is None else counting.clamped_requests()
        dead_letters = tuple(
            dead_letter(
                record,
                poison.reason,
                poison.sentence,
                topic=self._targets.dead_letters_topic,
                max_bytes=self._targets.dead_letter_max_bytes,
            )
            for record, poison in ledger.poison
        )
        counts = LaneCounts(
            consumed=len(records),
            facts=ledger.with_facts,
            ignored=ledger.ignored,
            dead_letters=Counter(poison.reason for _, poison in ledger.poison),
            times_clamped=clamped,
            fact_records=sum(len(part.rows) for part in parts),
        )
        return LaneOutput(self._targets.facts_topic, records.sources.places(), parts, dead_letters, counts)

    def replay(self, records: ReadRecords) -> None:
        """`process` with the output suppressed: the cores end in the same state, nothing is rendered."""
        for shares in self._stretches(records, _Ledger()):
            for share in shares:
                for _ in self._instances.process(share.group, share.requests):
                    pass  # nobody asks for the facts

    @property
    def is_recharged(self) -> bool:
        """Whether it is live under other settings than those of its snapshot, which no later one says yet."""
        return self._instances.is_recharged

    def go_live(self) -> None:
        """The replay is over: what follows is charged as the registry says now.

        Raises:
            CoreChanged: caches are not of the registry's configuration; the lane must not go on.
        """
        self._instances.go_live()

    def instances(self) -> tuple[InstanceStatus, ...]:
        """The cores held, by instance id."""
        return self._instances.status()

    def freeze(self) -> FrozenLane:
        """A copy of its state after the last record processed, quickly made."""
        return self._instances.freeze(self.partition, self._next_offset, self.history)

    def _stretches(self, records: ReadRecords, ledger: _Ledger) -> Iterator[Sequence[Share]]:
        """The requests cut at registrations: each takes effect when what came before it was processed."""
        self._own(records.sources)
        first = 0
        for row, other in records.others:
            if isinstance(other, Registration):
                yield self._admit(records, first, row, ledger)
                self._note(records.sources[row], self._register(other), ledger)
                first = row + 1
        yield self._admit(records, first, len(records), ledger)

    def _admit(self, records: ReadRecords, first: int, end: int, ledger: _Ledger) -> Sequence[Share]:
        """The requests of some rows, without a registration among them, for their engines; all else is noted."""
        stretch = records.part(first, end)
        admitted = admit(self._instances, stretch.requests)
        others = [(row, other) for row, other in stretch.others if not isinstance(other, Registration)]
        done = 0
        for row, why in sorted(others + admitted.refused, key=itemgetter(0)):
            self._pass(row - done, ledger)
            self._note(stretch.sources[row], why, ledger)
            done = row + 1
        self._pass(len(stretch) - done, ledger)
        # Rows are those of all the records.
        return [replace(share, rows=share.rows + first) for share in admitted.shares] if first else admitted.shares

    def _pass(self, requests: int, ledger: _Ledger) -> None:
        """Enter the next requests, which give facts."""
        ledger.with_facts += requests
        self._poison.passed(requests)

    def _note(self, record: SourceRecord, why: Ignored | Poison, ledger: _Ledger) -> None:
        """Enter a record that gives no fact."""
        if isinstance(why, Ignored):  # it says nothing of whether the others are bad
            ledger.ignored[why] += 1
            return
        exceeded = self._poison.died()
        ledger.poison.append((record, why))
        if exceeded is not None and ledger.too_many is None:
            ledger.too_many = TooManyDeadLetters(record.source, exceeded, why.sentence)

    def _register(self, registration: Registration) -> Ignored | Poison:
        try:
            self._instances.register(registration)
        except RegistrationNeedsReset as error:
            return Poison(Reason.REGISTRATION_NEEDS_RESET, str(error))
        except RegistrationRefused as error:
            return Poison(Reason.REGISTRATION_REFUSED, str(error))
        return Ignored.REGISTRATION

    def _own(self, records: SourceRecords) -> None:
        """Check that records are of this lane, and follow those before."""
        if not records:
            return
        offsets = np.array([self._next_offset - 1, *records.offsets], np.int64)
        goes_back = np.diff(offsets) <= 0
        if records.partition != self.partition or goes_back.any():
            raise AssertionError(
                f"the lane of partition {self.partition}, at offset {self._next_offset}, was given "
                f"{records[int(np.argmax(goes_back))].source}"
            )
        self._next_offset = int(offsets[-1]) + 1
