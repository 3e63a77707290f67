"""Requests go to their engines in columns as they would one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit.errors import InvalidRequest, UnknownInstance
from litehit.fan_out import EngineGroup
from litehit.registry import InstanceConfig, Registry
from litehit.request import Request
from litehit.targets import AS_NAMED, Routing
from litehit.window_requests import WindowRequests
from service.lanes.admission import admit
from service.lanes.counts import Ignored
from service.lanes.instances import LaneInstances

CONFIG = InstanceConfig("a", "g", 8, 4, 1024, False, 0, ())
KNOWN = Registry(
    [CONFIG, replace(CONFIG, instance_id="b", trace_block_size_tokens=8), replace(CONFIG, instance_id="c")]
)
ROUTINGS = [AS_NAMED, Routing(fanout_all_instances=True), Routing(override_instance_id="c")]

requests = st.lists(
    st.builds(
        lambda instance, trace, keys, length, stated, rounded: Request(
            instance, trace, 5, np.arange(keys), length, stated, rounded
        ),
        st.sampled_from(["a", "a", "b", "c", "nobody"]),
        st.sampled_from(["", "t", "u", "v"]),
        st.integers(0, 3),
        st.sampled_from([0, 3, 4, 8, 9, 12, 16, 24, 2**41]),
        st.sampled_from([None, None, 4, 8]),
        st.booleans(),
    ),
    max_size=12,
)


def plain(request: Request) -> tuple[object, ...]:
    return request.trace_id, request.timestamp_ns, request.input_token_len, request.block_keys.tolist()


@settings(max_examples=400, deadline=None)
@given(listed=requests, routing=st.sampled_from(ROUTINGS), window=st.sampled_from([0, 2]), first=st.integers(0, 3))
def test_columns_go_where_requests_go_one_by_one(
    listed: list[Request], routing: Routing, window: int, first: int
) -> None:
    rows = [first + 2 * place for place in range(len(listed))]
    refused: dict[int, str] = {}
    taken: dict[tuple[tuple[str, ...], int], tuple[object, ...]] = {}
    reference = LaneInstances(KNOWN, window, None, routing)
    for row, request in zip(rows, listed, strict=True):
        ((_, routed),) = reference.routed(WindowRequests.from_requests([row], [request])).requests()
        try:
            fan_out = reference.fan_out(routed.instance_id)
            as_taken = fan_out.admit(routed)
        except (InvalidRequest, UnknownInstance) as error:
            refused[row] = str(error)
            continue
        if any(reference.repeats(routed.instance_id, [routed.trace_id])):
            refused[row] = Ignored.REPEAT
            continue
        for group, one in zip(fan_out.groups, as_taken, strict=True):
            taken[_named(group), row] = plain(one)
    admitted = admit(LaneInstances(KNOWN, window, None, routing), WindowRequests.from_requests(rows, listed))
    found: dict[tuple[tuple[str, ...], int], tuple[object, ...]] = {}
    for share in admitted.shares:
        columns = share.requests
        assert share.rows.tolist() == sorted(share.rows.tolist())
        for at, row in enumerate(share.rows.tolist()):
            found[_named(share.group), row] = (
                columns.trace_ids[at],
                int(columns.timestamps_ns[at]),
                int(columns.input_token_lens[at]),
                columns.keys[columns.offsets[at] : columns.offsets[at + 1]].tolist(),
            )
    assert found == taken
    assert {row: why if isinstance(why, Ignored) else why.sentence for row, why in admitted.refused} == refused


def _named(group: EngineGroup) -> tuple[str, ...]:
    return tuple(engine.config.instance_id for engine in group.engines)
