"""`make demo`: a trace through the whole service and through the offline replay, and the same numbers from both."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import typer
from rich.console import Console
from rich.table import Table

from litehit.errors import LiteHitError
from service.embedded import find_embedded
from service.errors import EmbeddedBrokerError

FOLDER = Path("demo")
REQUESTS = 20_000
INSTANCES = ("chat", "agents")
CAPACITIES_GB = (1, 8, 32, 128, 512, -1)
_START_SECONDS = 60
_COUNT_SECONDS = 120

REGISTRY = """\
# 64 tokens a block, 128 KiB a token: about a 70B model with grouped-query attention in FP8.
groups:
  - name: demo
    capacity_gb: [1, 8, 32, 128, 512]
instances:
  - instance_id: chat
    group: demo
    block_size_tokens: 64
    block_bytes: 8388608
    # What if keys and values were kept in BF16? The same requests, analysed in the same pass.
    variants: [{name: bf16, block_bytes: 16777216}]
  - instance_id: agents
    group: demo
    block_size_tokens: 64
    block_bytes: 8388608
    # What if a block held eight times the tokens?
    variants: [{name: b512, block_size_tokens: 512, block_bytes: 67108864}]
"""

console = Console()


class DemoFailed(LiteHitError):
    """A step of the demo did not do what it should."""


def litehit(*arguments: str | Path) -> list[str]:
    """The command line of `litehit` in this environment."""
    return [sys.executable, "-m", "service.cli", *map(str, arguments)]


def step(*arguments: str | Path) -> None:
    """Show a command and run it to its end; its progress bar goes to the terminal."""
    console.print(f"[bold]$ litehit {shlex.join(map(str, arguments))}[/bold]", soft_wrap=True, highlight=False)
    done = subprocess.run(litehit(*arguments), check=False)
    if done.returncode:
        raise DemoFailed(f"litehit {arguments[0]} ended with exit code {done.returncode}")


@contextmanager
def serving(*arguments: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`litehit serve` as a process of its own, stopped at the end."""
    console.print(f"[bold]$ litehit serve {shlex.join(map(str, arguments))}[/bold]", soft_wrap=True, highlight=False)
    with log.open("wb") as sink:
        # A session of its own: Ctrl-C reaches only this process, which then stops the other in good order.
        process = subprocess.Popen(litehit("serve", *arguments), stdout=sink, stderr=sink, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        with suppress(KeyboardInterrupt):
            process.wait()


def ask(url: str) -> Any:
    """The JSON that a GET answers."""
    with urlopen(url, timeout=10) as answer:
        return json.load(answer)


def wait_until_ready(process: subprocess.Popen[bytes], store: Path, log: Path) -> str:
    """The API's URL, once the service is ready."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(EmbeddedBrokerError, URLError):
            url = find_embedded(store).http
            if url is not None and ask(f"{url}/readyz")["ready"]:
                return url
        time.sleep(0.1)
    raise DemoFailed(f"the service did not become ready; its log is {log}")


def wait_until_counted(url: str, requests: int) -> dict[str, Any]:
    """The API's answer, once it counts every request."""
    parameters = urlencode([("capacity_gb", capacity) for capacity in CAPACITIES_GB])
    deadline = time.monotonic() + _COUNT_SECONDS
    counted = 0
    while time.monotonic() < deadline:
        answer: dict[str, Any] = ask(f"{url}/query?{parameters}")
        counted = answer["total"]["requests"]
        if counted == requests:
            return answer
        time.sleep(0.1)
    raise DemoFailed(f"{url}/query counts {counted} of {requests} requests after {_COUNT_SECONDS} s")


def offline_summaries(path: Path) -> dict[str, Any]:
    """The summaries of a facts query by instance; the total is under the empty name."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {line.get("instance_id", ""): line for line in lines if "total_hit_blocks" in line}


def parts(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The instances of an answer, each before its variants, which are no part of the total, and the total."""
    listed = [*answer["instances"], *answer["variants"]]
    return [*sorted(listed, key=lambda part: part["instance_id"]), answer["total"]]


def show(answer: dict[str, Any]) -> None:
    """The table that the demo is about."""
    table = Table(title=f"{answer['total']['requests']:,} requests", title_justify="left")
    for heading in ("instance", "capacity GB", "hit rate", "share of the ceiling"):
        table.add_column(heading, justify="left" if heading == "instance" else "right")
    for part in parts(answer):
        ceiling = part["ceiling"]["hit_tokens"]
        for capacity, tokens, rate in zip(CAPACITIES_GB, part["total_hit_tokens"], part["hit_rates"], strict=True):
            name = part.get("instance_id", "total") if capacity == CAPACITIES_GB[0] else ""
            gigabytes = "infinite" if capacity < 0 else f"{capacity:,}"
            table.add_row(name, gigabytes, f"{rate:.2%}", f"{tokens / ceiling:.1%}", end_section=capacity < 0)
    console.print(table)


def differences(answer: dict[str, Any], offline: dict[str, Any]) -> list[str]:
    """Where the API's integers are not those of the offline replay."""
    online = {part.get("instance_id", ""): part for part in parts(answer)}
    if online.keys() != offline.keys():
        return [f"instances {sorted(online)} online, {sorted(offline)} offline"]
    return [
        f"{name or 'total'}: {field} {online[name][field]} online, {offline[name][field]} offline"
        for name in online
        for field in ("requests", "total_input_tokens", "total_hit_blocks", "total_hit_tokens")
        if online[name][field] != offline[name][field]
    ]


def free_port(preferred: int = 8080) -> int:
    """The preferred port if nobody listens there, else 0, which lets the system choose."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            return 0
    return preferred


def demo(once: bool) -> None:
    """All steps, in order."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    registry, trace, store, log = (FOLDER / name for name in ("registry.yaml", "trace.jsonl", "store", "serve.log"))
    registry.write_text(REGISTRY, encoding="utf-8")
    instances = [part for name in INSTANCES for part in ("--instance", name)]
    step("generate", "--requests", str(REQUESTS), "--seed", "1", *instances, "--out", trace)
    place = ("--embedded", "--store", store)
    with serving(*place, "--registry", registry, "--port", str(free_port()), log=log) as process:
        url = wait_until_ready(process, store, log)
        step("publish", trace, "--format", "native", *place)
        answer = wait_until_counted(url, REQUESTS)
        show(answer)
        console.print("The same trace without Kafka and without the service:")
        step("replay", trace, "--format", "native", "--registry", registry, "--out", FOLDER)
        query = FOLDER / "query.jsonl"
        capacities = [str(capacity) for capacity in CAPACITIES_GB]
        step("query", FOLDER / "litehit_facts.csv", "--capacity-gb", *capacities, "--out", query)
        wrong = differences(answer, offline_summaries(query))
        if wrong:
            raise DemoFailed("the offline replay differs: " + "; ".join(wrong))
        console.print("[green]Equal:[/green] requests, tokens and hit blocks of all that is listed, at each capacity.")
        if not once:
            console.print(f"The page: {url}   the API: {url}/docs   the log: {log}   Ctrl-C ends it.", highlight=False)
            process.wait()
            raise DemoFailed(f"the service ended by itself; its log is {log}")


def main(
    once: Annotated[bool, typer.Option("--once", help="End instead of leaving the API running.")] = False,
) -> None:
    """Show the whole of LiteHit on a generated trace."""
    # A closed terminal and a kill end the service too, like Ctrl-C: it would hold the port and the store.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    try:
        demo(once)
    except KeyboardInterrupt:
        console.print("stopped")
    except (LiteHitError, OSError) as error:
        Console(stderr=True).print(f"error: {error}", soft_wrap=True, highlight=False)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(main)
