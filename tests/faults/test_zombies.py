"""A worker that is paused amid a transaction while its partitions move, and wakes up."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from service.crash_points import VARIABLE, CrashPoint
from service.settings import Role
from tests import lanes_harness as harness
from tests.cli_harness import RunningService
from tests.faults.deployment import Deployment

Deploy = Callable[..., Deployment]


def paused_amid_a_transaction(deployment: Deployment, point: CrashPoint) -> RunningService:
    """A worker that holds all partitions and sleeps in its third transaction."""
    zombie = deployment.serve(Role.LANES, 0, module="tests.faults.pausing", **{VARIABLE: f"{point}:3"})
    for _ in range(deployment.layout.partitions):
        zombie.wait_for_event("lane_begun")
    deployment.publish(harness.make_requests(200, seed=41))
    stat = Path(f"/proc/{zombie.process.pid}/stat")
    harness.wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    return zombie


def heir_with_all_partitions(deployment: Deployment) -> RunningService:
    """Another worker, once the group has given the zombie up."""
    heir = deployment.serve(Role.LANES, 1)
    held: set[int] = set()
    while len(held) < deployment.layout.partitions:
        held.update(heir.wait_for_event("partitions_assigned")["partitions"])
    return heir


def wake(zombie: RunningService) -> None:
    zombie.process.send_signal(signal.SIGCONT)


def test_a_zombie_whose_partitions_moved_commits_nothing(deploy: Deploy) -> None:
    """Its transaction is still open, but the group does not take its offsets any more."""
    deployment = deploy(batch_records=20, transaction_timeout_seconds=300)
    zombie = paused_amid_a_transaction(deployment, CrashPoint.MID_TRANSACTION)
    heir = heir_with_all_partitions(deployment)
    places = deployment.publish(harness.make_requests(200, seed=42))
    deployment.await_processed(places)
    wake(zombie)
    zombie.wait_for_event("batch_aborted")
    deployment.await_processed(deployment.publish(harness.make_requests(100, seed=43)))
    assert (zombie.stop(signal.SIGTERM), heir.stop(signal.SIGTERM)) == (0, 0)
    deployment.assert_exact()


def test_a_zombie_whose_transaction_timed_out_is_fenced(deploy: Deploy) -> None:
    """Facts and offsets were sent; Kafka aborted them, and the heir did the records once more."""
    deployment = deploy(batch_records=20, transaction_timeout_seconds=4)
    zombie = paused_amid_a_transaction(deployment, CrashPoint.BEFORE_COMMIT)
    heir = heir_with_all_partitions(deployment)
    places = deployment.publish(harness.make_requests(200, seed=44))
    deployment.await_processed(places)
    wake(zombie)
    assert zombie.process.wait(60) == 1
    assert zombie.saw("role_failed")
    assert heir.stop(signal.SIGTERM) == 0
    deployment.assert_exact()


def test_an_heir_waits_for_a_transaction_that_is_not_decided(deploy: Deploy) -> None:
    """The zombie's facts and offsets are complete, so it may still commit them: until then nobody does them again."""
    deployment = deploy(batch_records=20, transaction_timeout_seconds=300)
    zombie = paused_amid_a_transaction(deployment, CrashPoint.BEFORE_COMMIT)
    heir = heir_with_all_partitions(deployment)
    heir.wait_for_event("lane_waits")
    before = deployment.committed()
    places = deployment.publish(harness.make_requests(200, seed=45))
    wake(zombie)
    deployment.await_processed(places)
    # What the zombie processed beside it is refused, as nobody's of the group; what was sent is not.
    assert (zombie.stop(signal.SIGTERM), heir.stop(signal.SIGTERM)) == (0, 0)
    partitions = deployment.layout.partitions
    begun = [[event for event in service.events if event["event"] == "lane_begun"] for service in (zombie, heir)]
    later = sorted(begun[0][partitions:] + begun[1], key=lambda event: str(event["timestamp"]), reverse=True)
    firsts = {event["partition"]: event["target"] for event in later}  # where it went on, whoever got the partition
    assert len(firsts) == partitions
    assert sum(firsts.values()) > before
    deployment.assert_exact()
