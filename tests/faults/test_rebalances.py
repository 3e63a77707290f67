"""Workers that join and leave while requests pour in."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from service.settings import Role
from tests import lanes_harness as harness
from tests.faults.deployment import Deployment

Deploy = Callable[..., Deployment]


class Pouring:
    """Publishes requests from a thread until the end of the `with` block.

    Attributes:
        places: where they stand.
    """

    def __init__(self, deployment: Deployment, seed: int) -> None:
        self.places: list[tuple[int, int]] = []
        self._deployment = deployment
        self._seed = seed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pour, daemon=True)
        self._error: BaseException | None = None

    def _pour(self) -> None:
        try:
            while not self._stop.wait(0.1):
                self._seed += 1
                self.places += self._deployment.publish(harness.make_requests(20, self._seed))
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive()
        assert self._error is None, self._error


def test_a_storm_of_rebalances(deploy: Deploy) -> None:
    """Two join at once, take lanes over and leave, again and again; one stays."""
    deployment = deploy(batch_records=10)
    moved = 0
    with deployment.worker(0) as stays, Pouring(deployment, seed=50_000) as pouring:
        stays.wait_until(lambda now: len(now.lanes) == 4)
        for _ in range(6):
            with deployment.worker(1) as first, deployment.worker(2) as second:
                first.wait_until(lambda now: len(now.lanes) > 0)
                second.wait_until(lambda now: len(now.lanes) > 0)
                moved += len(first.worker.status().lanes) + len(second.worker.status().lanes)
    with deployment.worker(0) as last:
        last.wait_until(harness.caught_up(pouring.places))
    assert moved >= 12
    deployment.assert_exact()


def test_a_rolling_restart_of_two_workers(deploy: Deploy) -> None:
    deployment = deploy(batch_records=10)
    with ExitStack() as stack:
        pouring = stack.enter_context(Pouring(deployment, seed=60_000))
        workers = [deployment.serve(Role.LANES, number) for number in range(2)]
        for worker in workers:
            worker.wait_for_event("lane_begun")
        for number in (0, 1, 0, 1):
            assert workers[number].stop(signal.SIGTERM) == 0
            workers[number] = deployment.serve(Role.LANES, number)
            workers[number].wait_for_event("lane_begun")
    deployment.await_processed(pouring.places)
    assert [worker.stop(signal.SIGTERM) for worker in workers] == [0, 0]
    deployment.assert_exact()
