from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit.errors import OptionError
from litehit.workload import WorkloadSpec, generate

SMALL = WorkloadSpec(requests=300, system_prompts=4, block_size_tokens=16, system_prompt_tokens=100, turn_tokens=40)

specs = st.builds(
    WorkloadSpec,
    requests=st.integers(1, 400),
    seed=st.integers(0, 2**63 - 1),
    block_size_tokens=st.sampled_from([1, 7, 16]),
    system_prompts=st.integers(1, 5),
    system_prompt_tokens=st.integers(1, 200),
    prompt_zipf=st.floats(0, 3),
    mean_turns=st.floats(1, 20),
    turn_tokens=st.floats(1, 60),
    max_prompt_tokens=st.sampled_from([1, 50, 500, 100_000]),
    regenerate=st.floats(0, 0.4),
    branch=st.floats(0, 0.4),
    sub_agent=st.floats(0, 0.4),
    instances=st.sampled_from([("a",), ("a", "b", "c")]),
)


@settings(max_examples=60, deadline=None)
@given(specs)
def test_keys_keep_the_prefix_contract(spec: WorkloadSpec) -> None:
    columns = generate(spec)
    place_of: dict[int, tuple[int, int | None]] = {}
    for request in columns.requests():
        keys = request.block_keys.tolist()
        assert len(set(keys)) == len(keys)
        for depth, key in enumerate(keys):
            place = (depth, keys[depth - 1] if depth else None)
            assert place_of.setdefault(key, place) == place


@settings(max_examples=60, deadline=None)
@given(specs)
def test_columns_are_those_of_a_trace(spec: WorkloadSpec) -> None:
    columns = generate(spec)
    assert len(columns) == spec.requests
    assert (np.diff(columns.timestamps_ns) >= 0).all()
    assert columns.timestamps_ns[0] >= spec.start_ns
    assert (columns.input_token_lens >= 1).all()
    assert (columns.input_token_lens <= spec.max_prompt_tokens).all()
    assert (np.diff(columns.offsets) == columns.input_token_lens // spec.block_size_tokens).all()
    assert columns.offsets[0] == 0
    assert columns.offsets[-1] == len(columns.keys)
    assert {request.instance_id for request in columns.requests()} <= set(spec.instances)


def test_a_seed_gives_the_same_trace_everywhere() -> None:
    columns = generate(SMALL)
    digest = hashlib.sha256(b"".join((columns.keys.tobytes(), columns.input_token_lens.tobytes()))).hexdigest()
    assert digest == "8b01ce23670d24fe9f23649a550884b1fd1c37e0f67f105386dc5c6b0897d13f"
    assert not np.isin(generate(replace(SMALL, seed=2)).keys, columns.keys).any()


def test_keys_are_well_mixed() -> None:
    keys = np.unique(generate(replace(SMALL, requests=5000)).keys).view(np.uint64)
    assert len(keys) > 5000
    for bit in range(64):
        ones = int(((keys >> np.uint64(bit)) & np.uint64(1)).sum())
        # Six standard deviations of a fair coin.
        assert abs(ones - len(keys) / 2) < 3 * len(keys) ** 0.5


def test_the_trace_is_session_shaped() -> None:
    columns = generate(WorkloadSpec(requests=5000))
    requests = [request.block_keys for request in columns.requests()]
    seen: set[int] = set()
    known = 0
    for keys in requests:
        listed = keys.tolist()
        known += sum(key in seen for key in listed)
        seen.update(listed)
    assert 0.5 < known / len(columns.keys) < 0.95
    first_keys = {int(keys[0]) for keys in requests}
    assert len(first_keys) <= WorkloadSpec().system_prompts
    partial = columns.input_token_lens % WorkloadSpec().block_size_tokens != 0
    assert partial.mean() > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [("requests", 0), ("seed", -1), ("block_size_tokens", 0), ("mean_turns", float("nan")), ("branch", 1.5)],
)
def test_a_bad_option_is_named(name: str, value: float) -> None:
    with pytest.raises(OptionError, match=rf"^{name} {value} is out of range; give "):
        WorkloadSpec(**{name: value})  # type: ignore[arg-type]


def test_no_instance_is_refused() -> None:
    with pytest.raises(OptionError, match="instances is empty"):
        WorkloadSpec(instances=())


@pytest.mark.parametrize("instance_id", ["", "\udcff"])
def test_an_instance_that_no_record_could_carry_is_refused(instance_id: str) -> None:
    with pytest.raises(OptionError, match="is empty or no UTF-8"):
        WorkloadSpec(instances=("a", instance_id))


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"sessions_per_second": 1e-6, "mean_turns": 1}, "raise sessions_per_second 1e-06"),
        ({"think_seconds": 1e6, "mean_turns": 1e6, "turn_tokens": 1}, "lower requests 20000 or think_seconds 1000000"),
    ],
)
def test_times_beyond_64_bits_are_refused(changes: dict[str, float], remedy: str) -> None:
    with pytest.raises(OptionError, match=remedy):
        generate(WorkloadSpec(requests=20_000, **changes))  # type: ignore[arg-type]


INTERRUPTED = """
import signal
from litehit.workload import WorkloadSpec, generate

def interrupt(*_):
    raise KeyboardInterrupt

generate(WorkloadSpec(requests=10))
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while True:
        generate(WorkloadSpec(requests=1_000_000))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_within_a_kernel_is_one() -> None:
    """Not a crash: Numba makes objects by Python's code, in which it may raise."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, check=False, timeout=120, encoding="utf-8"
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
