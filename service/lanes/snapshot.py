"""A lane at one offset, and the file it becomes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from litehit.aggregate import AggregateCurve
from litehit.errors import StateError
from litehit.frozen import State
from litehit.registration import Registration
from litehit.registry import InstanceConfig
from litehit.repeats import NO_DIGESTS, Digests
from litehit.targets import AS_NAMED, Routing
from service import tensor_file
from service.errors import SnapshotDamaged
from service.lanes.committed import RequestsTopic
from service.lanes.counters import Charge, ChargeSums

SNAPSHOTS_FOLDER = "snapshots"
FORMAT_VERSION = 2

_READABLE = ("1", str(FORMAT_VERSION))  # 1 knows neither registrations nor repeats

_NAME = re.compile(rf"{SNAPSHOTS_FOLDER}/([^/]+)/([^/]+)/(\d{{5}})/(\d{{20}})\.safetensors")
_TRACES = "traces"
# Keys of the file's metadata.
_VERSION, _DESCRIPTION, _BYTES, _CHECKSUM = "format_version", "litehit", "bytes", "crc32"


@dataclass(frozen=True, slots=True)
class Reset:
    """An operator's choice of where a lane that can't restore goes on.

    Attributes:
        group: the consumer group it is meant for.
        committed: the group's offset when it was chosen; once the group has gone on, it counts no more.
    """

    group: str
    committed: int | None


@dataclass(frozen=True, slots=True)
class InstanceSnapshot:
    """One instance.

    Attributes:
        config: how it was analysed.
        core: what `LiteHit.from_state` takes.
        sums: the facts so far.
        traces: what `RecentTraces` begins with.
        is_variant: it is no instance of its own but a variant.
    """

    config: InstanceConfig
    core: State
    sums: Mapping[Charge, ChargeSums]
    traces: Digests = field(default_factory=lambda: NO_DIGESTS)
    is_variant: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A lane after every record below an offset.

    Attributes:
        topic: what it read.
        partition: of the topic.
        next_offset: of the record it goes on with.
        history: see `Committed.history`.
        reset: set where an operator made it.
        taken_at: when, in seconds since 1970.
        instances: by instance id.
        registrations: what the stream has registered, one an instance.
        repeats_window: trace ids an instance by which repeats were told; 0: they were not.
        routing: where requests went.
    """

    topic: RequestsTopic
    partition: int
    next_offset: int
    history: int
    reset: Reset | None
    taken_at: float
    instances: Sequence[InstanceSnapshot]
    registrations: Sequence[Registration] = ()
    repeats_window: int = 0
    routing: Routing = AS_NAMED

    @property
    def path(self) -> str:
        """Its name in the store."""
        folder = snapshot_folder(self.topic, self.partition)
        return f"{folder}/{self.next_offset:020d}.safetensors"


class _Sums(BaseModel):
    block_size_tokens: int
    block_bytes: int
    requests: int
    input_tokens: int


class _Instance(BaseModel):
    config: InstanceConfig
    sums: list[_Sums]
    is_variant: bool = False


class _Description(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topic: RequestsTopic
    partition: int
    next_offset: int
    history: int
    reset: Reset | None
    taken_at: float
    instances: list[_Instance]
    registrations: tuple[Registration, ...] = ()
    repeats_window: int = 0
    routing: Routing = AS_NAMED


def snapshot_folder(topic: RequestsTopic, partition: int) -> str:
    """`snapshots/<requests topic>/<generation>/<partition, 5 digits>`."""
    return f"{generation_folder(topic)}/{partition:05d}"


def generation_folder(topic: RequestsTopic) -> str:
    """The folder of all snapshots of a generation of a topic."""
    return f"{snapshots_of_topic(topic.name)}/{topic.generation}"


def snapshots_of_topic(requests_topic: str) -> str:
    """The folder of all snapshots of a topic, of every generation."""
    return f"{SNAPSHOTS_FOLDER}/{requests_topic}"


def offset_of(path: str) -> int | None:
    """The next offset of a snapshot's name; None for any other file."""
    match = _NAME.fullmatch(path)
    return None if match is None else int(match[4])


def encode(snapshot: Snapshot) -> memoryview:
    """The file."""
    arrays: tensor_file.Arrays = {}
    instances = []
    for number, instance in enumerate(snapshot.instances):
        arrays |= {f"{number}.core.{name}": array for name, array in instance.core.items()}
        if len(instance.traces):
            arrays[f"{number}.{_TRACES}"] = instance.traces
        sums = []
        for place, (charge, group) in enumerate(instance.sums.items()):
            arrays |= {f"{number}.sums.{place}.{name}": array for name, array in group.curve.state().items()}
            sums.append(_Sums(**charge._asdict(), requests=group.requests, input_tokens=group.input_tokens))
        instances.append(_Instance(config=instance.config, sums=sums, is_variant=instance.is_variant))
    description = _Description(
        topic=snapshot.topic,
        partition=snapshot.partition,
        next_offset=snapshot.next_offset,
        history=snapshot.history,
        reset=snapshot.reset,
        taken_at=snapshot.taken_at,
        instances=instances,
        registrations=tuple(snapshot.registrations),
        repeats_window=snapshot.repeats_window,
        routing=snapshot.routing,
    ).model_dump_json()
    metadata = {
        _VERSION: str(FORMAT_VERSION),
        _DESCRIPTION: description,
        _BYTES: str(sum(array.nbytes for array in arrays.values())),
        _CHECKSUM: _checksum(description, arrays),
    }
    return tensor_file.encode(arrays, metadata)


def decode(path: str, content: bytes) -> Snapshot:
    """Read a file back, with views of its bytes for arrays.

    Raises:
        SnapshotDamaged: it is not what was written, or not what its name says.
    """
    try:
        arrays, metadata = tensor_file.decode(content)
        if metadata[_VERSION] not in _READABLE:
            raise SnapshotDamaged(
                path,
                f"format version {metadata[_VERSION]}, but this program reads {FORMAT_VERSION}; "
                f"use the release that wrote it or a newer one",
            )
        text = metadata[_DESCRIPTION]
        if metadata[_BYTES] != str(sum(array.nbytes for array in arrays.values())):
            raise SnapshotDamaged(path, f"its arrays should have {metadata[_BYTES]} bytes")
        if metadata[_CHECKSUM] != _checksum(text, arrays):
            raise SnapshotDamaged(path, f"its content does not give its checksum {metadata[_CHECKSUM]}")
        description = _Description.model_validate_json(text)
    except KeyError as error:
        raise SnapshotDamaged(path, f"its metadata has no {error}, so it is no snapshot of a lane") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SnapshotDamaged(path, f"{where} is {first['input']!r}: {first['msg']}") from None
    except ValueError as error:
        raise SnapshotDamaged(path, str(error)) from None
    snapshot = Snapshot(
        description.topic,
        description.partition,
        description.next_offset,
        description.history,
        description.reset,
        description.taken_at,
        [_instance(path, number, one, arrays) for number, one in enumerate(description.instances)],
        description.registrations,
        description.repeats_window,
        description.routing,
    )
    if snapshot.path != path:
        raise SnapshotDamaged(path, f"its metadata says it is {snapshot.path}; it was renamed, so move it back")
    return snapshot


def _instance(path: str, number: int, described: _Instance, arrays: tensor_file.Arrays) -> InstanceSnapshot:
    try:
        sums = {
            Charge(one.block_size_tokens, one.block_bytes): ChargeSums(
                one.requests, one.input_tokens, AggregateCurve.from_state(_below(f"{number}.sums.{place}.", arrays))
            )
            for place, one in enumerate(described.sums)
        }
    except StateError as error:
        raise SnapshotDamaged(path, f"the sums of {described.config.instance_id!r}: {error}") from None
    traces = arrays.get(f"{number}.{_TRACES}", NO_DIGESTS)
    return InstanceSnapshot(described.config, _below(f"{number}.core.", arrays), sums, traces, described.is_variant)


def _below(prefix: str, arrays: tensor_file.Arrays) -> State:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _checksum(description: str, arrays: Mapping[str, np.ndarray]) -> str:
    """CRC-32 of the description and of each array's name, type and content, by name."""
    crc = zlib.crc32(description.encode())
    for name, array in sorted(arrays.items()):
        crc = zlib.crc32(f"\n{name} {array.dtype.str}\n".encode(), crc)
        crc = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, crc)
    return f"{crc:08x}"
