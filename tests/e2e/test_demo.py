"""The demo runs from its first to its last step and ends well; where the numbers differ it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from service.demo import differences
from tests.cli_harness import SECONDS, environment


def test_the_demo_runs_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "service.demo", "--once"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    shown = done.stdout.decode()
    for part in ("20,000 requests", "share of the ceiling", "infinite", "Equal:"):
        assert part in shown


def test_a_difference_of_one_block_is_found() -> None:
    summary = {"requests": 1, "total_input_tokens": 9, "total_hit_blocks": [2], "total_hit_tokens": [8]}
    answer = {"total": summary, "instances": [summary | {"instance_id": "a"}]}
    offline = {"": summary, "a": summary | {"total_hit_blocks": [3]}}
    assert differences(answer, {"": summary, "a": summary}) == []
    assert differences(answer, offline) == ["a: total_hit_blocks [2] online, [3] offline"]
    assert differences(answer, {"": summary}) == ["instances ['', 'a'] online, [''] offline"]
