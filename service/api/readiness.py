"""What each role waits for, in sentences for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from schemas.answers import Waiting
from service.archive.segment import ChainKey
from service.archive.status import ArchiveStatus
from service.lanes.status import LanesStatus, LaneState, LaneStatus

StatusProvider: TypeAlias = Callable[[], Sequence[Waiting]]
"""What a role waits for, asked at each call; it answers at once, from any thread. Nothing means ready."""


def api_waiting(source: Callable[[], Sequence[str]]) -> StatusProvider:
    """What the API role waits for: `FactIndex.waiting` or `StoreFollower.waiting`."""
    return lambda: [Waiting(component="api", detail=detail) for detail in source()]


def lanes_waiting(status: Callable[[], LanesStatus]) -> StatusProvider:
    """What the lanes role waits for: partitions, caches being restored, and lanes that stopped with an error."""

    def waiting() -> list[Waiting]:
        now = status()
        if not now.assigned:
            return [Waiting(component="lanes", detail="the consumer group has not assigned partitions yet")]
        return [
            Waiting(component="lanes", detail=_describe(lane), stopped=lane.state is LaneState.STOPPED)
            for lane in now.lanes
            if lane.state is not LaneState.RUNNING
        ]

    return waiting


def archive_waiting(status: Callable[[], ArchiveStatus]) -> StatusProvider:
    """What the archive role waits for: its own troubles, and each partition's facts that stood there when it was met.

    Later lag is no reason not to be ready: an answer says in `as_of` how far behind it is.
    """
    targets: dict[ChainKey, int] = {}

    def waiting() -> list[Waiting]:
        now = status()
        waiting = [Waiting(component="archive", detail=detail, stopped=True) for detail in now.stopped]
        details = list(now.waiting)
        for one in now.partitions:
            if one.error is not None:  # told above
                continue
            if one.end_offset is None:
                details.append(f"partition {one.chain.partition} does not know yet where its facts end")
                continue
            target = targets.setdefault(one.chain, one.end_offset)
            if one.next_offset < target:
                details.append(f"partition {one.chain.partition} is behind: offset {one.next_offset} of {target}")
        return [*waiting, *(Waiting(component="archive", detail=detail) for detail in details)]

    return waiting


def _describe(lane: LaneStatus) -> str:
    if lane.state is LaneState.STOPPED:
        return f"partition {lane.partition} stopped: {lane.error}"
    done = "its next offset is not known yet" if lane.next_offset is None else f"next offset {lane.next_offset}"
    return f"partition {lane.partition} restores its caches: {done}"
