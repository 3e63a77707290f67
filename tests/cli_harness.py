"""What end-to-end tests share: the command line and the service as processes of their own."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

SECONDS = 120  # patience with one command or one event


def environment(**settings: str) -> dict[str, str]:
    """This environment without the settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LITEHIT_")}
    return kept | {"COLUMNS": "200"} | settings


def litehit(
    *arguments: str | Path,
    stdin: bytes = b"",
    cwd: Path | None = None,
    check: bool = True,
    settings: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; without `check` its exit code is the caller's to look at."""
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        cwd=cwd,
        env=environment(**(settings or {})),
        check=False,
    )
    if check and done.returncode:
        pytest.fail(f"litehit {arguments[0]} ended with {done.returncode}: {done.stderr.decode()}")
    return done


class RunningService:
    """A `litehit serve` in a process of its own, on a free port, with JSON log lines.

    Attributes:
        process: it.
        events: its log lines, as far as they were waited for.
        url: of its API.
    """

    def __init__(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        settings: Mapping[str, str] | None = None,
        module: str = "service.cli",
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "serve", "--port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE,
            env=environment(LITEHIT_LOG_FORMAT="json", **(settings or {})),
            cwd=cwd,
        )
        self.events: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ""

    def ready(self) -> RunningService:
        """Wait until /readyz says so."""
        self.url = self.wait_for_event("http_listening")["url"]
        self.wait_until(lambda: self.get("/readyz")["ready"])
        return self

    def wait_for_event(self, name: str) -> dict[str, Any]:
        """The next log line of that event."""
        while (line := self._lines.get(timeout=SECONDS)) is not None:
            event: dict[str, Any] = json.loads(line)
            self.events.append(event)
            if event["event"] == name:
                return event
        pytest.fail(f"the service ended with {self.process.wait()} before {name}: {self.events[-3:]}")

    def saw(self, name: str) -> bool:
        """Whether a log line of that event has come; without waiting for it."""
        while not self._lines.empty():
            line = self._lines.get()
            if line is None:
                self._lines.put(None)  # the end, for whoever waits for it
                break
            self.events.append(json.loads(line))
        return any(event["event"] == name for event in self.events)

    def wait_until(self, condition: Callable[[], Any]) -> Any:
        """Ask again until the answer is true; it is returned."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            answer = condition()
            if answer:
                return answer
            time.sleep(0.05)
        pytest.fail(f"the condition did not come true; exit code {self.process.poll()}, last events {self.events[-3:]}")

    def get(self, path: str) -> Any:
        """The JSON that a GET answers, whatever its status."""
        try:
            with urlopen(f"{self.url}{path}", timeout=10) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                return json.load(error)

    def query(self, capacity_gb: Sequence[float], **parameters: str) -> Any:
        """The answer of /query."""
        pairs = [*(("capacity_gb", repr(capacity)) for capacity in capacity_gb), *parameters.items()]
        return self.get(f"/query?{urlencode(pairs)}")

    def query_when(self, requests: int, capacity_gb: Sequence[float]) -> Any:
        """The answer of /query once it counts so many requests."""

        def answer() -> Any:
            given = self.query(capacity_gb)
            return given if given.get("total", {}).get("requests") == requests else None

        return self.wait_until(answer)

    def stop(self, number: int) -> int:
        """Send a signal and wait for the end; the exit code. All log lines are in `events` afterwards."""
        self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        while (line := self._lines.get()) is not None:
            self.events.append(json.loads(line))
        return code

    def close(self) -> None:
        """Kill it if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join(SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            # The last line of a failed process is for a person, that of a killed one may be torn.
            whole = line.startswith(b"{") and line.endswith(b"}\n")
            text = {"event": "text", "text": line.decode(errors="replace")}
            self._lines.put(line if whole else json.dumps(text).encode())
        self._lines.put(None)


@contextmanager
def serving(*arguments: str | Path, cwd: Path | None = None) -> Iterator[RunningService]:
    """A service that is ready."""
    service = RunningService(*arguments, cwd=cwd)
    try:
        yield service.ready()
    finally:
        service.close()


def summaries(lines: bytes) -> dict[str, Any]:
    """The summaries of `litehit query` by instance; the total is under the empty name."""
    rows = map(json.loads, lines.splitlines())
    return {row.get("instance_id", ""): row for row in rows if "summary" in row}
