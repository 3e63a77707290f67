"""A service in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.http_clients import answer


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A running service.

    Attributes:
        url: where it answers.
        start_s: seconds from its start until it was ready.
        pid: the process.
    """

    url: str
    start_s: float
    pid: int

    def memory_mb(self, field: str) -> float:
        """A field of the process's status, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024 / 1e6


@contextmanager
def serving(
    store: Path, roles: str = "api", *options: str, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Sidecar]:
    """Run `litehit serve` until the block ends.

    Args:
        store: its store; its log goes beside that.
        roles: as `--roles` takes them.
        options: further ones.
        settings: variables of its environment, beside those of this process.
    """
    log = store.with_name(f"{store.name}-{roles}.log")
    begin = time.perf_counter()
    command = [sys.executable, "-m", "service.cli", "serve", "--roles", roles, "--store", str(store), "--port", "0"]
    with log.open("wb") as stderr:
        environment = {**os.environ, "LITEHIT_LOG_FORMAT": "json", **settings}
        process = subprocess.Popen([*command, *options], stderr=stderr, env=environment)
        try:
            url = _when_ready(log, process)
            yield Sidecar(url, time.perf_counter() - begin, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _when_ready(log: Path, process: subprocess.Popen[bytes]) -> str:
    while process.poll() is None:
        listening = [line for line in log.read_text(encoding="utf-8").splitlines() if "http_listening" in line]
        if listening:
            url: str = json.loads(listening[0])["url"]
            try:
                answer(url, "/readyz")
            except RuntimeError:  # 503: it loads
                pass
            else:
                return url
        time.sleep(0.02)
    raise RuntimeError(f"the service ended: {log.read_text(encoding='utf-8')}")
