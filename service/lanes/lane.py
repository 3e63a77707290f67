"""The ordered executor of one partition: records in, facts and dead letters out. It knows no Kafka client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from litehit.errors import (
    LengthMismatch,
    PromptTooLong,
    RegistrationNeedsReset,
    RegistrationRefused,
    TraceBlockMismatch,
    UnknownInstance,
)
from litehit.facts import FactBatch
from litehit.fan_out import EngineGroup
from litehit.registration import Registration
from litehit.registry import Registry
from litehit.request import Request, RequestBatch
from litehit.targets import AS_NAMED, Routing
from schemas.dead_letter import SOURCE_HEADER, Reason
from service.errors import TooManyDeadLetters
from service.lanes.counts import Ignored, LaneCounts
from service.lanes.dead_letters import dead_letter
from service.lanes.instances import FrozenLane, LaneInstances
from service.lanes.poison_limit import NO_LIMITS, PoisonLimits, PoisonWatch
from service.lanes.reading import Poison, ReadRecord
from service.lanes.snapshot import Snapshot
from service.lanes.status import InstanceStatus
from service.records import OutputRecord, SourceRecord


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


@dataclass(frozen=True, slots=True)
class LaneOutput:
    """What a batch of records became.

    Attributes:
        facts: in offset order.
        dead_letters: in offset order.
        counts: the batch's ledger.
    """

    facts: tuple[OutputRecord, ...]
    dead_letters: tuple[OutputRecord, ...]
    counts: LaneCounts


@dataclass(slots=True)
class _Share:
    """The requests of a batch for engines that take them alike, with the records they came in."""

    rows: list[int] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


class _Computed(NamedTuple):
    """Facts of one engine, with the rows of their requests' records and their place among the requests' facts."""

    rows: Sequence[int]
    place: int
    facts: FactBatch


@dataclass(slots=True)
class _Stretch:
    """Records between two registrations, after parsing and before any core has seen them."""

    end: int = 0

    shares: dict[EngineGroup, _Share] = field(default_factory=dict)

    def by_engines(self) -> Iterator[tuple[EngineGroup, list[int], RequestBatch]]:
        """Engines, the rows of their requests' records, and the requests; made into columns all at once."""
        shares = self.shares.values()
        columns = RequestBatch.from_requests([request for share in shares for request in share.requests])
        first = 0
        for group, share in self.shares.items():
            end = first + len(share.rows)
            yield group, share.rows, columns[first:end]
            first = end


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

    def process(self, records: Sequence[ReadRecord]) -> LaneOutput:
        """Turn records, which must follow those before in offset order, into facts and dead letters.

        Raises:
            TooManyDeadLetters: they exceed the limits; nothing of the batch may be handed over.
        """
        ledger = _Ledger()
        parts: list[_Computed] = []
        clamped = 0
        for stretch in self._stretches(records, ledger):
            if ledger.too_many is not None:
                raise ledger.too_many
            for group, rows, requests in stretch.by_engines():
                # All engines of a request see its time; the first one counts it.
                counting = group.engines[0].core if group.places[0] == 0 else None
                clamped -= 0 if counting is None else counting.clamped_requests()
                parts += (_Computed(rows, place, one) for place, one in self._instances.process(group, requests))
                clamped += 0 if counting is None else counting.clamped_requests()
        if ledger.too_many is not None:  # a registration was one too many
            raise ledger.too_many
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
        facts = self._render(records, parts)
        counts = LaneCounts(
            consumed=len(records),
            facts=ledger.with_facts,
            ignored=ledger.ignored,
            dead_letters=Counter(poison.reason for _, poison in ledger.poison),
            times_clamped=clamped,
            fact_records=len(facts),
        )
        return LaneOutput(facts, dead_letters, counts)

    def replay(self, records: Sequence[ReadRecord]) -> None:
        """`process` with the output suppressed: the cores end in the same state, nothing is rendered."""
        for stretch in self._stretches(records, _Ledger()):
            for group, _, requests in stretch.by_engines():
                for _ in self._instances.process(group, requests):
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

    def _stretches(self, records: Sequence[ReadRecord], ledger: _Ledger) -> Iterator[_Stretch]:
        """The records cut at registrations: each takes effect when what came before it was processed."""
        first = 0
        while True:
            stretch = self._sort(records, first, ledger)
            yield stretch
            if stretch.end == len(records):
                return
            record, registration = records[stretch.end]
            if isinstance(registration, Registration):
                self._note(record, self._register(registration), ledger)
            first = stretch.end + 1

    def _sort(self, records: Sequence[ReadRecord], first: int, ledger: _Ledger) -> _Stretch:
        """The records from a row on, up to the next registration."""
        stretch = _Stretch(end=len(records))
        for row in range(first, len(records)):
            record, read = records[row]
            self._own(record)
            if isinstance(read, Registration):
                stretch.end = row
                break
            content = self._admit(read, row, stretch) if isinstance(read, Request) else read
            if content is None:
                ledger.with_facts += 1
                self._poison.count(dead=False)
            else:
                self._note(record, content, ledger)
        return stretch

    def _note(self, record: SourceRecord, content: Ignored | Poison, ledger: _Ledger) -> None:
        """Enter a record that gives no fact."""
        if isinstance(content, Ignored):  # it says nothing of whether the others are bad
            ledger.ignored[content] += 1
            return
        exceeded = self._poison.count(dead=True)
        ledger.poison.append((record, content))
        if exceeded is not None and ledger.too_many is None:
            ledger.too_many = TooManyDeadLetters(record.source, exceeded, content.sentence)

    def _register(self, registration: Registration) -> Ignored | Poison:
        try:
            self._instances.register(registration)
        except RegistrationNeedsReset as error:
            return Poison(Reason.REGISTRATION_NEEDS_RESET, str(error))
        except RegistrationRefused as error:
            return Poison(Reason.REGISTRATION_REFUSED, str(error))
        return Ignored.REGISTRATION

    def _own(self, record: SourceRecord) -> None:
        if record.partition != self.partition or record.offset < self._next_offset:
            raise AssertionError(
                f"the lane of partition {self.partition}, at offset {self._next_offset}, was given {record.source}"
            )
        self._next_offset = record.offset + 1

    def _admit(self, request: Request, row: int, stretch: _Stretch) -> Ignored | Poison | None:
        """Let a request wait for its engines, all or none; None where it does."""
        try:
            found = self._instances.admit(request)
        except UnknownInstance as error:
            return Poison(Reason.UNKNOWN_INSTANCE, str(error))
        except TraceBlockMismatch as error:
            return Poison(Reason.TRACE_BLOCK_MISMATCH, str(error))
        except LengthMismatch as error:
            return Poison(Reason.LENGTH_MISMATCH, str(error))
        except PromptTooLong as error:
            return Poison(Reason.INVALID_FIELD, str(error))
        if found is None:
            return Ignored.REPEAT
        fan_out, admitted = found
        for group, one in zip(fan_out.groups, admitted, strict=True):
            share = stretch.shares.get(group)
            if share is None:
                share = stretch.shares[group] = _Share()
            share.rows.append(row)
            share.requests.append(one)
        return None

    def _render(self, records: Sequence[ReadRecord], parts: Sequence[_Computed]) -> tuple[OutputRecord, ...]:
        """Facts as records, in order of their requests, and of their places among a request's facts."""
        if not parts:
            return ()
        facts = FactBatch.concatenate([part.facts for part in parts])
        places = [(row, part.place) for part in parts for row in part.rows]
        values = facts.to_json()
        topic, partition = self._targets.facts_topic, self.partition
        rendered = []
        for index in sorted(range(len(places)), key=places.__getitem__):
            record = records[places[index][0]].source
            rendered.append(
                OutputRecord(
                    topic,
                    partition,
                    facts.instance_ids[index].encode(),
                    values[index],
                    ((SOURCE_HEADER, record.source.encode()),),
                    # The request record's own, never the trace's: a broker expires by this time, and refuses one that
                    # lies ahead of its clock. The request's time is in the value.
                    record.timestamp_ms or 0,
                )
            )
        return tuple(rendered)
