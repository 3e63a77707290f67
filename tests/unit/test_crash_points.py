"""A crash point kills its process at the pass that was asked for, and at no other."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from service.crash_points import VARIABLE, CrashPoint, crash_point
from tests.cli_harness import environment

SCRIPT = """
from service.crash_points import CrashPoint, crash_point
for number in range(1, 4):
    for point in CrashPoint:
        print(number, point, flush=True)
        crash_point(point)
"""


def run(planted: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(**{VARIABLE: planted}),
    )


@pytest.mark.parametrize("point", [CrashPoint.BEFORE_PRODUCE, CrashPoint.AFTER_PUBLISH])
def test_the_process_dies_at_that_pass(point: CrashPoint) -> None:
    done = run(f"{point}:2")
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.splitlines()[-1] == f"2 {point}"


def test_a_pass_that_never_comes_changes_nothing() -> None:
    assert run("mid-snapshot:4").returncode == 0


def test_without_the_variable_nothing_happens() -> None:
    for point in CrashPoint:
        crash_point(point)


@pytest.mark.parametrize("planted", ["", "mid-snapshot", "mid-snapshot:0", "mid-snapshot:x", "nowhere:1"])
def test_a_wrong_value_is_told(planted: str) -> None:
    done = run(planted)
    assert done.returncode == 1
    assert f"{VARIABLE} is {planted!r}" in done.stderr
