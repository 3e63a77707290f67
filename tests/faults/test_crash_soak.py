"""Kill -9 of any role at any moment: what is left is what an undisturbed run leaves, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schemas.dead_letter import REASON_HEADER, Reason
from service.settings import Role
from tests.faults.deployment import Deployment, Outputs, places_of
from tests.faults.soak import Victim, dooms, kill_until
from tests.faults.traffic import REGISTRY, Tap, messages, trace_requests

KILLS = int(os.environ.get("LITEHIT_SOAK_KILLS", "40"))
SEED = int(os.environ.get("LITEHIT_SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
RECORDS_A_SECOND = 120
CHUNK = 30
SETTINGS = {
    "batch_records": 25,
    "transaction_timeout_seconds": 5,
    "snapshot_seconds": 0.5,
    "segment_seconds": 0.5,
    "segment_rows": 400,
}


def pouring(tap: Tap) -> Iterator[None]:
    """Keeps the topic filling at an even rate; each step takes some milliseconds."""
    began, sent = time.monotonic(), 0
    while True:
        if sent < (time.monotonic() - began) * RECORDS_A_SECOND:
            tap.send(CHUNK)
            sent += CHUNK
        else:
            time.sleep(0.01)
        yield


@pytest.mark.timeout(300 + 20 * KILLS)
def test_forty_kills_change_nothing(deploy: Callable[..., Deployment], mooncake_trace: Callable[[str], Path]) -> None:
    """Two workers of one group and an archiver, each killed at planted points and at random times.

    The seed decides what is sent and how each process is to die; how the processes interleave, the machine does.
    LITEHIT_SOAK_KILLS makes it longer, LITEHIT_SOAK_SEED repeats it.
    """
    print(f"LITEHIT_SOAK_SEED={SEED} LITEHIT_SOAK_KILLS={KILLS}")
    chance = random.Random(SEED)
    deployment = deploy(REGISTRY, **SETTINGS)
    requests = trace_requests(mooncake_trace("conversation"), 4000)
    tap = Tap(deployment.settings, messages(requests, random.Random(SEED)), chance)
    lanes = dooms(Role.LANES, chance)
    victims = [Victim(deployment, Role.LANES, number, lanes) for number in range(2)]
    victims.append(Victim(deployment, Role.ARCHIVE, 0, dooms(Role.ARCHIVE, chance)))
    died = kill_until(victims, KILLS, pouring(tap))
    print(f"died: {dict(died)}")
    tap.send(CHUNK)
    tap.close()
    records = deployment.requests()
    assert {record.partition for record in records} == set(range(deployment.layout.partitions))
    deployment.await_processed(places_of(records), seconds=120)
    for victim in victims:
        assert victim.service.stop(signal.SIGTERM) == 0, victim.service.events[-5:]
    outputs = deployment.assert_exact(archived=True)
    # A record of a topic has a time, and no instance id is built from fields here.
    assert reasons(outputs) == set(Reason) - {Reason.TIME_MISSING, Reason.INSTANCE_FIELD_MISSING}
    facts, letters = (sum(len(getattr(one, kind)) for one in outputs.values()) for kind in ("facts", "dead_letters"))
    print(f"{len(records)} records, {facts} facts, {letters} dead letters")


def reasons(outputs: dict[int, Outputs]) -> set[Reason]:
    """Every reason that a dead letter has."""
    found = Counter(dict(headers)[REASON_HEADER] for one in outputs.values() for _, _, headers, _ in one.dead_letters)
    return {Reason((reason or b"").decode()) for reason in found}
