"""The same requests in every format that can hold them give the same facts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit.aggregate import AggregateCurve
from litehit.facts import FactBatch
from litehit.instance import InstanceEngine
from litehit.registry import InstanceConfig
from litehit.request import Request, RequestBatch
from service import formats
from service.format_names import LINE_FORMATS, FormatName
from service.formats.base import RecordContext
from tests.format_samples import SAMPLES, Plain
from tests.strategies import contract_requests

# Hit blocks of the whole traces at those capacities, in blocks.
CAPACITIES = (15, 253, 1013, 4053, 8106, 16213, 32427, 64854, -1)
REFERENCE = {
    "conversation": [12030, 12096, 13020, 26252, 53887, 77790, 97541, 103775, 105592],
    "synthetic": [178, 2947, 10441, 30686, 46890, 65740, 77121, 77740, 77740],
}
INPUT_TOKENS = {"conversation": 144_793_823, "synthetic": 61_194_628}


def config(block: int) -> InstanceConfig:
    return InstanceConfig("i", "g", block, block, 1024, enable_prefix_hash=False, ttl_ns=0, capacity_gb=())


def read_all(name: FormatName, plain: Iterator[Plain], block: int) -> list[Request]:
    requests = []
    for position, one in enumerate(plain, 1):
        record = json.dumps(SAMPLES[name].record(one)).encode()
        request = formats.get(name).parse(record, RecordContext("i", position, None))
        assert isinstance(request, Request)
        requests.append(request.at_block(block))
    return requests


def facts_of(requests: Sequence[Request], block: int) -> FactBatch:
    return InstanceEngine(config(block)).process(RequestBatch.from_requests(requests))


def comparable(facts: FactBatch) -> list[tuple[Any, ...]]:
    return list(zip(facts.timestamps_ns.tolist(), facts.hit_curves, strict=True))


@pytest.mark.parametrize("name", [name for name in LINE_FORMATS if name is not FormatName.NATIVE])
@settings(max_examples=40)
@given(paths=contract_requests(max_requests=8), tails=st.lists(st.integers(0, 15), min_size=8, max_size=8))
def test_requests_in_any_format_give_the_same_facts(name: FormatName, paths: list[list[int]], tails: list[int]) -> None:
    block = 16
    tails = [tail if path else max(tail, 1) for path, tail in zip(paths, tails, strict=False)]
    # A prefix names the blocks of its path; what is hashed block by block is chained, and gives other keys alike.
    plain = [
        Plain(path, tail, time, block, partial=zlib.crc32(bytes(path)))
        for time, (path, tail) in enumerate(zip(paths, tails, strict=True))
    ]
    expected = comparable(facts_of(read_all(FormatName.NATIVE, iter(plain), block), block))
    assert comparable(facts_of(read_all(name, iter(plain), block), block)) == expected


def reencoded(trace: Path) -> Iterator[Plain]:
    for line in trace.read_bytes().splitlines():
        fields = json.loads(line)
        full, tail = divmod(fields["input_length"], 512)
        ids = fields["hash_ids"]
        yield Plain(ids[:full], tail, fields["timestamp"], 512, partial=ids[-1] if tail else 0)


def hexadecimal(plain: Iterator[Plain]) -> Iterator[Plain]:
    for one in plain:
        keys = [f"{key:016x}" for key in one.keys]
        yield Plain(keys, one.tail, one.time_ms, one.block, partial=f"{one.partial:016x}")


@pytest.mark.parametrize("trace", REFERENCE)
@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.any_block])
def test_real_traces_give_the_reference_answers(
    mooncake_trace: Callable[[str], Path], name: FormatName, trace: str
) -> None:
    plain = reencoded(mooncake_trace(trace))
    requests = read_all(name, hexadecimal(plain) if name is FormatName.LITELLM else plain, 512)
    facts = facts_of(requests, 512)
    curve = AggregateCurve()
    curve.add(facts.hit_curves)
    assert curve.hits(np.array(CAPACITIES)).tolist() == REFERENCE[trace]
    if SAMPLES[name].states_length:
        assert facts.input_token_lens.sum() == INPUT_TOKENS[trace]
