"""From a lane's facts to records of the facts topic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from litehit.curves import Int64Array
from litehit.facts import FactBatch
from schemas.dead_letter import SOURCE_HEADER
from service.records import OutputRecord, SourceRecord


class Computed(NamedTuple):
    """Facts of one engine.

    Attributes:
        rows: int64[R], the rows of their requests' records.
        place: theirs among the facts of a request.
        facts: R facts.
    """

    rows: Int64Array
    place: int
    facts: FactBatch


def render(topic: str, sources: Sequence[SourceRecord], parts: Sequence[Computed]) -> tuple[OutputRecord, ...]:
    """Facts as records, in order of their requests, and of their places among a request's facts.

    Args:
        topic: the facts topic.
        sources: records of one partition.
        parts: facts of requests that stand in them.
    """
    if not parts:
        return ()
    facts = FactBatch.concatenate([part.facts for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    places = np.repeat([part.place for part in parts], [len(part.rows) for part in parts])
    order = np.lexsort((places, rows))
    keys = {instance_id: instance_id.encode() for instance_id in set(facts.instance_ids)}
    instance_ids, values = facts.instance_ids, facts.to_json()
    of_facts = [sources[row] for row in rows[order].tolist()]
    in_order = order.tolist()
    return tuple(
        map(
            OutputRecord,
            repeat(topic),
            repeat(sources[0].partition),
            [keys[instance_ids[at]] for at in in_order],
            [values[at] for at in in_order],
            [((SOURCE_HEADER, record.source.encode()),) for record in of_facts],
            # The request record's own, never the trace's: a broker expires by this time, and refuses one that lies
            # ahead of its clock. The request's time is in the value.
            [record.timestamp_ms or 0 for record in of_facts],
        )
    )
