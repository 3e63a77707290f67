"""Tells once a partition of requests' times that are hardly meant."""

from __future__ import annotations

import time

import structlog

from litehit.time_units import NS_PER_MS, other_unit
from service.lanes.lane import LaneOutput

log = structlog.get_logger()


class TimeLog:
    """Warns of the first time of a partition where it is in another unit, and of the first one that goes back."""

    def __init__(self) -> None:
        self._looked: set[int] = set()
        self._told: set[int] = set()

    def note(self, partition: int, output: LaneOutput) -> None:
        """A lane's output was handed over."""
        if partition not in self._looked and output.computed:
            self._looked.add(partition)
            computed = output.computed[0]
            record = output.sources[int(computed.rows[0])]
            now_ns = (record.timestamp_ms or 0) * NS_PER_MS or time.time_ns()
            if (told := other_unit(int(computed.facts.timestamps_ns[0]), now_ns, years=1)) is not None:
                log.warning("time_unit", partition=partition, record=record.source, error=told)
        if output.counts.times_clamped and partition not in self._told:
            self._told.add(partition)
            log.warning(
                "times_go_back",
                partition=partition,
                requests=output.counts.times_clamped,
                among=output.sources[0].source,
                effect="a time to live counts from the newest time before; see litehit_lane_times_clamped_total",
            )
