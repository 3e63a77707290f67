"""The demo runs from its first to its last step and ends well; where the numbers differ it does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
    for part in ("20,000 requests", "share of the ceiling", "infinite", "chat@bf16", "agents@b512", "Equal:"):
        assert part in shown


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_ended_ends_its_service(tmp_path: Path, ending: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "service.demo"], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"$ litehit publish"):  # the service is ready
                break
        address = json.loads((tmp_path / "demo" / "store" / "embedded-broker.json").read_text(encoding="utf-8"))
        process.send_signal(ending)
        assert b"stopped" in process.stdout.read()
        assert process.wait(SECONDS) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(address["pid"], 0)


def test_a_difference_of_one_block_is_found() -> None:
    summary = {"requests": 1, "total_input_tokens": 9, "total_hit_blocks": [2], "total_hit_tokens": [8]}
    answer = {"total": summary, "instances": [summary | {"instance_id": "a"}]}
    answer["variants"] = [summary | {"instance_id": "a@v"}]
    same = {"": summary, "a": summary, "a@v": summary}
    assert differences(answer, same) == []
    wrong = summary | {"total_hit_blocks": [3]}
    for name in ("a", "a@v"):
        assert differences(answer, same | {name: wrong}) == [f"{name}: total_hit_blocks [2] online, [3] offline"]
    assert differences(answer, {"": summary}) == ["instances ['', 'a', 'a@v'] online, [''] offline"]
