"""From a lane's facts to records of the facts topic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from litehit.curves import Int64Array
from litehit.facts import FactBatch
from schemas.dead_letter import SOURCE_HEADER
from service.records import OutputRecord, SourceRecords


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


def render(topic: str, sources: SourceRecords, parts: Sequence[Computed]) -> tuple[OutputRecord, ...]:
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
    start, offsets, timestamps_ms = sources.source_start.encode(), sources.offsets, sources.timestamps_ms
    of_facts, in_order = rows[order].tolist(), order.tolist()
    columns = zip(
        repeat(topic),
        repeat(sources.partition),
        [keys[instance_ids[at]] for at in in_order],
        [values[at] for at in in_order],
        [((SOURCE_HEADER, b"%b%d" % (start, offsets[row])),) for row in of_facts],
        # The request record's own, never the trace's: a broker expires by this time, and refuses one that lies ahead
        # of its clock. The request's time is in the value.
        [timestamps_ms[row] or 0 for row in of_facts],
    )
    # As `OutputRecord._make`, which is a Python function for each.
    return tuple(map(tuple.__new__, repeat(OutputRecord), columns))
