"""`litehit generate`: a realistic session-shaped trace."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

_TOGETHER = 1_000  # requests written at once


def generate(
    requests: Annotated[int, typer.Option("--requests", metavar="N", help="Number of requests.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="The same seed gives the same trace.")] = 1,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write; - is standard output.")] = Path(
        "-"
    ),
    instances: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="An instance; repeat for several. [default: demo]"),
    ] = None,
    block_size_tokens: Annotated[int | None, typer.Option(help="Tokens of one block.")] = None,
    system_prompts: Annotated[int | None, typer.Option(help="Number of shared system prompts.")] = None,
    system_prompt_tokens: Annotated[int | None, typer.Option(help="Mean length of a system prompt.")] = None,
    prompt_zipf: Annotated[float | None, typer.Option(help="Exponent of the prompts' popularity; 0 is even.")] = None,
    mean_turns: Annotated[float | None, typer.Option(help="Mean turns of a session.")] = None,
    turn_tokens: Annotated[float | None, typer.Option(help="Mean tokens that a turn adds.")] = None,
    max_prompt_tokens: Annotated[int | None, typer.Option(help="A session ends before it is longer.")] = None,
    regenerate: Annotated[float | None, typer.Option(help="Share of turns that ask the same prompt again.")] = None,
    branch: Annotated[float | None, typer.Option(help="Share of turns that branch off an earlier point.")] = None,
    sub_agent: Annotated[float | None, typer.Option(help="Share of turns that call a sub-agent.")] = None,
    sessions_per_second: Annotated[float | None, typer.Option(help="Sessions that start in a second.")] = None,
    think_seconds: Annotated[float | None, typer.Option(help="Mean seconds between two turns.")] = None,
) -> None:
    """Generate a trace: multi-turn chats, shared system prompts, forks, sub-agents; JSON Lines, format `native`."""
    from litehit.window_requests import WindowRequests
    from litehit.workload import WorkloadSpec
    from litehit.workload import generate as generate_columns
    from service.cli.output import open_output
    from service.event_json import events_json

    shape: dict[str, Any] = {
        "block_size_tokens": block_size_tokens,
        "system_prompts": system_prompts,
        "system_prompt_tokens": system_prompt_tokens,
        "prompt_zipf": prompt_zipf,
        "mean_turns": mean_turns,
        "turn_tokens": turn_tokens,
        "max_prompt_tokens": max_prompt_tokens,
        "regenerate": regenerate,
        "branch": branch,
        "sub_agent": sub_agent,
        "sessions_per_second": sessions_per_second,
        "think_seconds": think_seconds,
        "instances": tuple(instances) if instances else None,
    }
    given = {name: value for name, value in shape.items() if value is not None}
    trace = generate_columns(WorkloadSpec(requests=requests, seed=seed, **given))
    coming = trace.requests()
    with open_output(out) as sink:
        while some := list(islice(coming, _TOGETHER)):
            written = events_json(WindowRequests.from_requests(range(len(some)), some))
            sink.write(b"\n".join((*written, b"")))
