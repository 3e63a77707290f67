"""A disk that is full under the archive: a real one of half a megabyte."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.archive.errors import StoreError
from service.archive.open_store import open_store
from service.embedded import EmbeddedBroker
from service.settings import Settings
from service.topics import prepare_topics
from tests.archiver_harness import FactsTopic, RunningArchiver, archived
from tests.archiver_stores import LeapingClock

DISK_BYTES = 512 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted tmpfs; only root may mount, so otherwise the test is skipped."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Path:
    """A file that leaves no byte free."""
    ballast = folder / "ballast"
    free = os.statvfs(folder)
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize))
    return ballast


def test_a_segment_that_does_not_fit_leaves_nothing_behind(small_disk: Path) -> None:
    store = open_store(str(small_disk / "store"))
    store.create("facts/first", b"x" * 1000)
    with pytest.raises(StoreError, match="facts/large: No space left on device"):
        store.create("facts/large", b"x" * DISK_BYTES)
    assert sorted(path.name for path in (small_disk / "store/facts").iterdir()) == ["first"]
    store.create("facts/second", b"x" * (DISK_BYTES // 2))
    assert [file.size for file in store.list("facts")] == [1000, DISK_BYTES // 2]


def test_the_archive_waits_for_room_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    settings = Settings(embedded=True, store=str(small_disk / "store"), segment_rows=50)
    clock = LeapingClock()
    with EmbeddedBroker(tmp_path / "broker") as broker:
        layout = prepare_topics(settings, broker.bootstrap, broker.generation)
        topic = FactsTopic(settings, broker.bootstrap)
        topic.send(0, 60)
        with RunningArchiver(settings, broker.bootstrap, layout, clock=clock) as running:
            running.wait_consumed([60, 0, 0, 0])
            running.wait_for(0, lambda one: one.published_end == 50)
            ballast = fill(small_disk)
            topic.send(0, 200)
            held = running.wait_for(0, lambda one: one.trouble is not None)
            assert "No space left on device" in str(held.trouble)
            assert held.published_end == 50
            assert 50 <= held.tail_rows <= 100, "what is written, and at most as much behind it"
            (waiting,) = running.archiver.status().waiting
            assert "can't publish and tries again" in waiting
            assert archived(settings.store, layout.facts_generation) == {0: list(range(50))}
            clock.leap(30.0)
            running.wait_until(lambda _: running.metric("publish_failures_total", partition="0") == 2)
            ballast.unlink()
            clock.leap(30.0)
            running.wait_consumed([260, 0, 0, 0])
            assert running.archiver.status().waiting == ()
    assert archived(settings.store, layout.facts_generation) == {0: list(range(260))}
