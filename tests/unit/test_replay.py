from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litehit.errors import OptionError, TraceError, UnknownInstance
from litehit.facts_csv import HEADER
from litehit.registry import InstanceConfig, Registry
from litehit.replay import MAX_WORKERS, ReplayOptions, ReplaySummary, replay
from litehit.targets import AS_NAMED, Routing
from litehit.window import WINDOW_BYTES, windows_of
from litehit.workload import WorkloadSpec, generate
from service import formats
from service.event_json import event_json
from service.formats.window_reader import window_reader


def config(instance_id: str, block: int = 4, trace_block: int = 4, ttl_ns: int = 0) -> InstanceConfig:
    return InstanceConfig(instance_id, "g", block, trace_block, 1024, False, ttl_ns, ())


REGISTRY = Registry([config("a"), config("b", block=8), config("g-*")])


def line(instance_id: str | None, time: int, keys: list[int], length: int = 0, **fields: Any) -> bytes:
    event = {
        "type": "request",
        "instance_id": instance_id,
        "trace_id": f"t{time}",
        "timestamp_ns": time,
        "keys": keys,
        "input_len": length,
    }
    return json.dumps(event | fields).encode()


def run(
    lines: list[bytes],
    out: Path,
    registry: Registry = REGISTRY,
    format_name: str = "native",
    window_bytes: int = WINDOW_BYTES,
    **options: Any,
) -> list[str]:
    """The rows of the facts file."""
    chosen = ReplayOptions(**options)
    read = window_reader(formats.get(format_name), chosen.default_instance(registry))
    summary = replay(
        windows_of(enumerate(lines, 1), window_bytes), read, registry, out, source="x.jsonl", options=chosen
    )
    assert summary.path == out / "litehit_facts.csv"
    header, *rows = summary.path.read_text().splitlines()
    assert header == HEADER
    assert summary.facts == len(rows)
    assert list(out.iterdir()) == [summary.path]
    return rows


def failure(lines: list[bytes], out: Path, registry: Registry = REGISTRY, **options: Any) -> str:
    with pytest.raises(TraceError) as caught:
        run(lines, out, registry, **options)
    assert list(out.iterdir()) == []
    return str(caught.value)


def test_the_worked_example(tmp_path: Path) -> None:
    requests = [([1, 2, 3], 13), ([1, 2, 4], 12), ([1, 2, 3], 13), ([1, 5], 8), ([1, 5], 8)]
    rows = run([line("a", time, keys, length) for time, (keys, length) in enumerate(requests)], tmp_path)
    assert rows == [
        't0,a,0,13,4,1024,"[]"',
        't1,a,1,12,4,1024,"[[1,2]]"',
        't2,a,2,13,4,1024,"[[1,2],[4,1]]"',
        't3,a,3,8,4,1024,"[[1,1]]"',
        't4,a,4,8,4,1024,"[[1,2]]"',
    ]


def test_a_derived_length_is_written(tmp_path: Path) -> None:
    assert run([line("a", 0, [1, 2]), line("a", 0, [], 3)], tmp_path) == [
        't0,a,0,8,4,1024,"[]"',
        't0,a,0,3,4,1024,"[]"',
    ]


def test_instances_keep_apart_and_rows_keep_their_order(tmp_path: Path) -> None:
    lines = [line(name, time, [1, 2]) for time, name in enumerate(["a", "g-1", "a", "g-2", "g-1"])]
    rows = run(lines, tmp_path)
    assert [row.split(",")[1] for row in rows] == ["a", "g-1", "a", "g-2", "g-1"]
    assert [row.split(",", 6)[6] for row in rows] == ['"[]"', '"[]"', '"[[1,2]]"', '"[]"', '"[[1,2]]"']


def test_write_events_and_blank_lines_are_left_out(tmp_path: Path) -> None:
    lines = [b"", line("a", 1, [1]) + b"\n", b'{"type":"write","keys":[1]}\n', b" \r\n", line("a", 2, [1]) + b"\r\n"]
    read = window_reader(formats.get("native"), None)
    seen: list[int] = []
    summary = replay(windows_of(enumerate(lines, 1)), read, REGISTRY, tmp_path, progress=seen.append)
    assert summary == ReplaySummary(tmp_path / "litehit_facts.csv", lines=5, requests=2, ignored=1, facts=2, first_ns=1)
    assert seen == [5]


def test_a_ttl_runs_by_the_traces_time(tmp_path: Path) -> None:
    registry = Registry([config("a", ttl_ns=2000)])
    rows = run([line(None, time, [1, 2, 3]) for time in (1000, 2999, 4999)], tmp_path, registry)
    assert [row.split(",", 6)[6] for row in rows] == ['"[]"', '"[[1,3]]"', '"[]"']


def test_fanout_sends_each_request_to_every_exact_instance(tmp_path: Path) -> None:
    registry = Registry([config("fine"), config("glob-*"), config("coarse", block=8)])
    lines = [line(None, time, [1, 2, 3], 13) for time in range(2)]
    assert run(lines, tmp_path, registry, routing=Routing(fanout_all_instances=True)) == [
        't0,fine,0,13,4,1024,"[]"',
        't0,coarse,0,13,8,1024,"[]"',
        't1,fine,1,13,4,1024,"[[1,3]]"',
        't1,coarse,1,13,8,1024,"[[1,1]]"',
    ]


def test_override_pools_the_trace_into_one_instance(tmp_path: Path) -> None:
    lines = [line("a", 0, [1, 2]), line("nobody", 1, [1, 2]), line(None, 2, [1])]
    rows = run(lines, tmp_path, routing=Routing(override_instance_id="g-pool"))
    assert [row.split(",")[1] for row in rows] == ["g-pool"] * 3
    assert [row.split(",", 6)[6] for row in rows] == ['"[]"', '"[[1,2]]"', '"[[1,1]]"']


@pytest.mark.parametrize(("routing", "kept"), [(AS_NAMED, 2), (Routing(override_instance_id="g-pool"), 1)])
def test_a_repeat_is_one_of_the_instance_that_a_request_counts_for(tmp_path: Path, routing: Routing, kept: int) -> None:
    lines = [line("a", 0, [1], trace_id="t"), line("b", 1, [2, 3], trace_id="t"), line("a", 2, [1], trace_id="t")]
    assert len(run(lines, tmp_path, routing=routing, repeats_window=9)) == kept


def test_the_named_instance_takes_lines_that_name_none(tmp_path: Path) -> None:
    rows = run([line(None, 0, [1]), line("b", 1, [])], tmp_path, instance_id="a")
    assert [row.split(",")[1] for row in rows] == ["a", "b"]


GOOD = [line("a", time, [1]) for time in range(10, 13)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (
            line("a", 11, [1]),
            "timestamp_ns 11 of instance 'a' goes back behind 12; sort the trace by time, or let",
        ),
        (line("nobody", 13, [1]), "instance_id 'nobody' is not registered"),
        (line("a", 13, [1, 2], 13), "2 block keys, but input_token_len 13 has 3 full blocks of 4 tokens"),
        (line("a", 13, [True]), "keys[0] = True is a bool"),
        (line(None, 13, [1]), "names no instance_id"),
        (line("a", 13, [1], timestamp_ns=None), "timestamp_ns is absent"),
        (b"{", "the record is not valid JSON"),
    ],
)
def test_any_fault_fails_the_whole_run(tmp_path: Path, workers: int, bad: bytes, reason: str) -> None:
    message = failure([*GOOD, bad, line("a", 99, [1])], tmp_path, workers=workers)
    assert message.startswith("x.jsonl: line 4: ")
    assert reason in message


def test_a_run_that_fails_leaves_the_facts_of_an_earlier_one(tmp_path: Path) -> None:
    rows = run(GOOD, tmp_path)
    with pytest.raises(TraceError):
        run([*GOOD, b"{"], tmp_path)
    assert (tmp_path / "litehit_facts.csv").read_text().splitlines()[1:] == rows
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("window_bytes", [1, 10_000, 2**30])
def test_the_lowest_line_at_fault_is_named(tmp_path: Path, workers: int, window_bytes: int) -> None:
    lines = [line("a", time, [1]) for time in range(900)]
    lines[700], lines[650], lines[640], lines[601] = b"{", line("nobody", 650, []), b"[]", line("a", 3, [])
    assert failure(lines, tmp_path, window_bytes=window_bytes, workers=workers).startswith(
        "x.jsonl: line 602: timestamp_ns 3"
    )
    lines[600] = b"x"
    assert failure(lines, tmp_path, window_bytes=window_bytes, workers=workers).startswith(
        "x.jsonl: line 601: the record is not valid JSON"
    )


@pytest.mark.parametrize("fanout", [False, True])
def test_too_many_blocks_name_their_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fanout: bool) -> None:
    monkeypatch.setattr("litehit.core.MAX_BLOCKS", 70)
    lines = [line("a", 0, list(range(60))), b"", line("b", 1, list(range(100, 230)))]
    lines += [line(name, 2, list(range(300, 450))) for name in ("b", "a")]
    message = failure(lines, tmp_path, workers=2, routing=Routing(fanout_all_instances=fanout))
    assert message.startswith(f"x.jsonl: line {3 if fanout else 4}: the request may bring the instance to ")
    assert "more than the engine's limit of 70; analyse with larger blocks or set a TTL" in message


@pytest.mark.parametrize("lines", [[], [b"", b"\n"], [b'{"type":"write"}']])
def test_a_trace_without_requests_fails(tmp_path: Path, lines: list[bytes]) -> None:
    assert failure(lines, tmp_path) == f"x.jsonl: none of its {len(lines)} lines is a request; is it of another format?"


def test_a_block_size_that_is_not_the_registered_one_fails(tmp_path: Path) -> None:
    lines = [b'{"timestamp":0,"input_length":100,"hash_ids":[1]}']
    message = failure(lines, tmp_path, format_name="mooncake", instance_id="a")
    assert "blocks have 512 tokens, but instance 'a' is registered with trace_block_size_tokens 4" in message
    assert "line 1: " in message


def test_a_file_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield line("a", 0, [1])
        raise TraceError("x", None, "truncated")

    with pytest.raises(TraceError, match="x: truncated"):
        replay(
            windows_of(enumerate(broken(), 1)),
            window_reader(formats.get("native"), None),
            REGISTRY,
            tmp_path,
            source="x",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [0, -1, MAX_WORKERS + 1, 10**9])
def test_a_senseless_number_of_workers_is_refused(workers: int) -> None:
    with pytest.raises(OptionError, match=rf"workers {workers} is out of range; give 1 to {MAX_WORKERS}"):
        ReplayOptions(workers=workers)


@pytest.mark.parametrize("instance_id", ["", "a\udcff"])
def test_an_instance_that_no_file_could_carry_is_refused(instance_id: str) -> None:
    with pytest.raises(OptionError, match="is empty or no UTF-8; give an instance's id"):
        ReplayOptions(instance_id=instance_id)


def test_fanout_needs_exact_instances(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="needs instances that are registered by exact id"):
        run(GOOD, tmp_path, Registry([config("*")]), routing=Routing(fanout_all_instances=True))


def test_an_unknown_override_is_refused_before_reading(tmp_path: Path) -> None:
    with pytest.raises(UnknownInstance):
        run(GOOD, tmp_path, routing=Routing(override_instance_id="nobody"))


def test_no_thread_outlives_a_run(tmp_path: Path) -> None:
    before = threading.active_count()
    run(GOOD, tmp_path, workers=8)
    assert threading.active_count() == before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), requests=st.integers(1, 900), fanout=st.booleans())
def test_any_number_of_workers_and_any_windows_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, requests: int, fanout: bool
) -> None:
    spec = WorkloadSpec(
        requests=requests,
        seed=seed,
        instances=("x", "y", "z"),
        block_size_tokens=16,
        system_prompt_tokens=100,
        turn_tokens=60,
    )
    registry = Registry([config("x", 16, 16), config("y", 32, 16), config("z", 48, 16, ttl_ns=10**10)])
    lines = [event_json(request) for request in generate(spec).requests()]
    results = [
        run(
            lines,
            tmp_path_factory.mktemp("out"),
            registry,
            workers=workers,
            window_bytes=window_bytes,
            routing=Routing(fanout_all_instances=fanout),
        )
        for workers, window_bytes in ((1, 2**30), (2, 50_000), (4, 1_000))
    ]
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == requests * (3 if fanout else 1)
