from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litehit.errors import LengthMismatch, TraceBlockMismatch, TraceError
from litehit.fan_out import FanOut
from litehit.instance import InstanceEngine
from litehit.prepared import Prepared
from litehit.registry import InstanceConfig, Registry
from litehit.replay import ReplayOptions, replay
from litehit.request import Request, RequestBatch
from litehit.targets import AS_NAMED, Routing
from litehit.window import windows_of
from service import formats
from service.event_json import event_json
from service.formats.window_reader import window_reader

CONFIG = InstanceConfig("a", "g", 8, 4, 1024, False, 0, ())
COARSE = replace(CONFIG, instance_id="a@coarse", block_size_tokens=16)
OTHER = replace(CONFIG, instance_id="b", trace_block_size_tokens=8)


def request(keys: int, length: int, stated: int | None = None) -> Request:
    return Request("a", "t", 0, np.arange(keys), length, stated)


def test_engines_of_one_trace_block_size_are_a_group() -> None:
    fan_out = FanOut(map(InstanceEngine, [CONFIG, OTHER, COARSE]))
    assert fan_out.size == 3
    assert [group.places for group in fan_out.groups] == [(0, 2), (1,)]
    assert [one.config for group in fan_out.groups for one in group.engines] == [CONFIG, COARSE, OTHER]


def test_a_request_is_taken_by_all_or_none() -> None:
    fan_out = FanOut(map(InstanceEngine, [CONFIG, OTHER]))
    assert [len(one.block_keys) for one in fan_out.admit(request(0, 3))] == [0, 0]
    with pytest.raises(
        LengthMismatch, match=r"2 block keys, but input_token_len 9 has 1 full block of 8 .* 'b', which"
    ):
        fan_out.admit(request(2, 9))
    with pytest.raises(TraceBlockMismatch, match="instance 'b' is registered with trace_block_size_tokens 8"):
        fan_out.admit(request(2, 0, stated=4))
    with pytest.raises(LengthMismatch) as caught:
        fan_out.admit(request(3, 9))
    assert "which the request goes to" not in str(caught.value)  # it is the instance that it names


def test_what_engines_need_alike_is_made_once() -> None:
    prepared = Prepared(RequestBatch.from_requests([request(4, 17)]))
    chained = replace(CONFIG, enable_prefix_hash=True, block_size_tokens=4)
    fine, again = prepared.normalized(chained), prepared.normalized(replace(chained, ttl_ns=5, block_bytes=7))
    assert fine is again
    assert prepared.normalized(replace(chained, block_size_tokens=8)).keys.tolist() == fine.keys[1::2].tolist()
    assert prepared.normalized(CONFIG).keys.tolist() == [1, 3]


def rows(registry: Registry, lines: list[bytes], out: Path, routing: Routing = AS_NAMED) -> list[str]:
    options = ReplayOptions(workers=2, routing=routing)
    read = window_reader(formats.get("native"), options.default_instance(registry))
    replay(windows_of(enumerate(lines, 1)), read, registry, out, options=options)
    return (out / "litehit_facts.csv").read_text().splitlines()[1:]


def of(rows: list[str], instance_id: str) -> list[str]:
    return [row for row in rows if row.split(",")[1] == instance_id]


analyses = st.builds(
    lambda factor, charge, ttl: (4 * factor, charge, ttl),
    st.integers(1, 4),
    st.integers(1, 2**40),
    st.sampled_from([0, 3, 10]),
)
traces = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.lists(st.integers(0, 5), max_size=12), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(variants=st.lists(analyses, max_size=4), trace=traces, chained=st.booleans(), pooled=st.booleans())
def test_each_has_the_facts_that_it_would_have_alone(
    tmp_path_factory: pytest.TempPathFactory,
    variants: list[tuple[int, int, int]],
    trace: list[tuple[str, int, list[int], int]],
    chained: bool,
    pooled: bool,
) -> None:
    base = InstanceConfig("*", "g", 4, 4, 512, chained, 0, ())
    described = [
        replace(base, instance_id=f"v{n}", block_size_tokens=block, block_bytes=charge, ttl_ns=ttl)
        for n, (block, charge, ttl) in enumerate(variants)
    ]
    times = np.cumsum([wait for _, wait, _, _ in trace]).tolist()

    def lines(to: dict[str, str]) -> list[bytes]:
        return [
            json.dumps(
                {
                    "type": "request",
                    "instance_id": to[instance_id],
                    "trace_id": f"t{n}",
                    "timestamp_ns": times[n],
                    "block_keys": keys,
                    "input_token_len": 4 * len(keys) + tail,
                }
            ).encode()
            for n, (instance_id, _, keys, tail) in enumerate(trace)
            if instance_id in to
        ]

    routing = Routing(override_instance_id="a") if pooled else AS_NAMED
    together = rows(
        Registry([base], {"*": described}), lines({"a": "a", "b": "b"}), tmp_path_factory.mktemp("x"), routing
    )
    assert len(together) == len(trace) * (1 + len(variants))
    # A request's facts stand together, in the order of the variants.
    names = ["", *(f"@v{n}" for n in range(len(variants)))]
    for n, (instance_id, *_) in enumerate(trace):
        facts = together[n * len(names) : (n + 1) * len(names)]
        assert [row.split(",")[:2] for row in facts] == [
            [f"t{n}", f"{'a' if pooled else instance_id}{name}"] for name in names
        ]
    for name, config in zip(names, [base, *described], strict=True):
        for one in ["a"] if pooled else sorted({instance_id for instance_id, *_ in trace}):
            alone_id = f"{one}{name}"
            named = {"a": alone_id, "b": alone_id} if pooled else {one: alone_id}
            alone = rows(Registry([replace(config, instance_id=alone_id)]), lines(named), tmp_path_factory.mktemp("y"))
            assert of(together, alone_id) == alone


def test_a_variant_named_by_a_line_fails_the_run(tmp_path: Path) -> None:
    registry = Registry([CONFIG], {"a": [replace(CONFIG, instance_id="v")]})
    line = b'{"type":"request","instance_id":"a@v","timestamp_ns":1,"block_keys":[]}'
    with pytest.raises(TraceError, match="line 1: instance_id 'a@v' is a variant of 'a' in the registry"):
        rows(registry, [line], tmp_path)


@pytest.mark.parametrize(("keys", "length"), [(512, 2**40 + 1), (513, 0)])
def test_a_window_of_too_long_a_prompt_fails_the_run(tmp_path: Path, keys: int, length: int) -> None:
    registry = Registry([replace(CONFIG, block_size_tokens=2**31, trace_block_size_tokens=2**31)])
    with pytest.raises(TraceError, match=r"line 2: input_token_len 1,\S+ is more than 1,099,511,627,776; send"):
        rows(registry, [event_json(request(1, 2**31)), event_json(request(keys, length))], tmp_path)
