"""`GET /instances`: what lanes and facts tell of each instance."""

from __future__ import annotations

from collections.abc import Callable

from litehit.registry import InstanceConfig
from litehit.totals import SlotTotals
from schemas.answers import InstancesAnswer
from service.api.index import FactIndex
from service.archive.segment import ChainKey
from service.lanes.counts import LaneCounts
from service.lanes.status import InstanceStatus, LanesStatus, LaneState, LaneStatus
from tests.api_doubles import Client
from tests.histories import QUARTER_GB, fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)
FACTS = [fact(10, (1, 4)), fact(20, (2, 3), (9, 2)), fact(30, instance="code", block=16), fact(40, (6, 1))]


def core(instance_id: str, blocks: int, capacities: tuple[float, ...] = (1.0, -1.0)) -> InstanceStatus:
    config = InstanceConfig(instance_id, "all", 4, 2, QUARTER_GB, False, 1_500_000_000, capacities)
    return InstanceStatus(config, blocks, 100 * blocks, SlotTotals(capacities))


def lanes(*held: tuple[InstanceStatus, ...]) -> LanesStatus:
    return LanesStatus(
        True,
        tuple(
            LaneStatus(partition, LaneState.RUNNING, 5, 5, None, LaneCounts(), instances)
            for partition, instances in enumerate(held)
        ),
    )


def test_an_instance_of_a_lane_here(index: FactIndex, connect: Callable[..., Client]) -> None:
    index.appended(CHAIN, rows_of(FACTS, 0))
    client = connect(index, lanes=lambda: lanes((core("chat", 7),), (core("chat", 2), core("new", 1))))
    answer = client.get("/instances").json()
    InstancesAnswer.model_validate(answer)
    assert answer["lanes_in_this_process"] is True
    chat, code, new = answer["instances"]
    assert chat["registration"] == {
        "group": "all",
        "block_size_tokens": 4,
        "trace_block_size_tokens": 2,
        "block_bytes": QUARTER_GB,
        "enable_prefix_hash": False,
        "ttl_seconds": 1.5,
        "capacity_gb": [1.0, -1.0],
    }
    assert (chat["unique_blocks"], chat["memory_bytes"]) == (9, 900)
    assert [one["partition"] for one in chat["lanes"]] == [0, 1]
    query = client.get("/query", [("capacity_gb", 1), ("capacity_gb", -1), ("instance_id", "chat")]).json()
    assert chat["summary"] == query["total"]
    assert chat["charges"] == [{"block_size_tokens": 4, "block_bytes": QUARTER_GB, "requests": 3}]
    # Ten hits: one more from each capacity of 1, 2, 2, 3, 3, 4, 4 blocks on, then at 6, 9 and 10.
    distance = chat["reuse_distance"]
    assert distance["of_ceiling"] == [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 1.0]
    assert distance["capacity_blocks"] == [1, 2, 3, 6, 9, 10, 10, 10, 10]
    assert distance["capacity_gb"] == [blocks / 4 for blocks in distance["capacity_blocks"]]
    assert (code["registration"], code["unique_blocks"], code["lanes"]) == (None, None, None)
    assert (new["instance_id"], new["unique_blocks"], new["summary"]["requests"]) == ("new", 1, 0)


def test_lanes_elsewhere_leave_what_the_facts_tell(index: FactIndex, client: Client) -> None:
    index.appended(CHAIN, rows_of(FACTS, 0))
    answer = client.get("/instances", [("instance_id", "chat"), ("to", 20), ("block_bytes", 2**30)]).json()
    assert answer["lanes_in_this_process"] is False
    (chat,) = answer["instances"]
    assert chat["registration"] is chat["unique_blocks"] is chat["memory_bytes"] is None
    assert chat["summary"]["capacity_gb"] == []
    assert chat["summary"]["ceiling"] == {"hit_blocks": 4, "hit_tokens": 16, "hit_rate": 0.16}
    assert chat["reuse_distance"]["capacity_gb"][-1] == 4.0


def test_a_change_of_the_lanes_is_a_new_answer(index: FactIndex, connect: Callable[..., Client]) -> None:
    index.appended(CHAIN, rows_of(FACTS, 0))
    held = [core("chat", 7)]
    client = connect(index, lanes=lambda: lanes(tuple(held)))
    tag = {"If-None-Match": client.get("/instances").headers["etag"]}
    assert client.get("/instances", headers=tag).status_code == 304
    held[0] = core("chat", 8)
    assert client.get("/instances", headers=tag).status_code == 200
