"""The callback of the examples on the real LiteLLM: its events become answers, and no call pays for them."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from examples.chained_keys import chained_keys
from service.instance_template import InstanceTemplate
from tests import lanes_harness as harness
from tests.cli_harness import environment, serving
from tests.readme import block

ROOT = Path(__file__).parents[2]
LITELLM = ROOT / ".venv-litellm"
BLOCK_SIZE = 512
REGISTRY = """
groups: [{name: all}]
instances:
  - {instance_id: my-model, group: all, block_size_tokens: 512, block_bytes: 1024}
  - {instance_id: "gpt-*", group: all, block_size_tokens: 4, block_bytes: 1024}
"""
ANSWER = "It is so."


@dataclass(frozen=True)
class Seen:
    """What a run of the gateway left.

    Attributes:
        report: what it printed.
        events: on the requests topic, by instance.
        answers: of /query at infinity, by instance.
    """

    report: dict[str, Any]
    events: dict[str, list[dict[str, Any]]]
    answers: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def python() -> Path:
    """Python where LiteLLM is installed. Where none is the tests skip; under CI=true they fail."""
    if not (LITELLM / ".installed").is_file():
        reason = "LiteLLM is not installed; run: make .venv-litellm/.installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return LITELLM / "bin" / "python"


@pytest.fixture(scope="module")
def seen(python: Path, nobody: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """All cases in one process, since LiteLLM takes its time to be imported."""
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    (folder / "config.yaml").write_text(block("litellm config"), encoding="utf-8")
    with serving("--embedded", "--registry", "registry.yaml", cwd=folder) as service:
        bootstrap = json.loads((folder / "litehit-data" / "embedded-broker.json").read_bytes())["bootstrap"]
        handler = block("litellm").replace("localhost:9092", bootstrap)
        assert handler.count(bootstrap) == 1
        (folder / "litehit_handler.py").write_text(handler, encoding="utf-8")
        ended = subprocess.run(
            [python, "-m", "tests.examples.litellm_gateway", folder, bootstrap, nobody],
            cwd=ROOT,
            env=environment(LITELLM_LOCAL_MODEL_COST_MAP="True"),  # else it is fetched
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        events = defaultdict(list)
        records = harness.read_topic(bootstrap, "litehit.requests", 4)
        for record in records:
            event = json.loads(record.value or b"")
            assert record.key == event["instance_id"].encode()
            events[event["instance_id"]].append(event)
        answers = service.query_when(len(records), [-1])["instances"]
        yield Seen(json.loads(ended.stdout), events, {answer["instance_id"]: answer for answer in answers})


def test_the_readmes_handler_publishes_each_kind_of_call_once(seen: Seen) -> None:
    assert seen.report["readme"] == {"delivered": 6, "dropped": 0}
    events = seen.events["my-model"]
    assert len({event["trace_id"] for event in events}) == len(events) == 6
    times = [event["timestamp_ns"] for event in events]
    assert max(times) - min(times) < 60 * 10**9
    # Four times one chat, once more behind tools, and once as the beginning of a longer one.
    lengths = [event["input_token_len"] for event in events]
    (chat,) = {length for length in lengths if lengths.count(length) == 4}
    (longer,) = [event for event in events if event["input_token_len"] > chat + BLOCK_SIZE]
    (behind_tools,) = [event for event in events if chat < event["input_token_len"] < chat + BLOCK_SIZE]
    full = chat // BLOCK_SIZE
    (keys,) = {tuple(event["block_keys"]) for event in events if event["input_token_len"] == chat}
    assert len(keys) == full > 1
    assert longer["block_keys"][:full] == list(keys)
    assert not set(behind_tools["block_keys"]) & set(keys)
    answer = seen.answers["my-model"]
    assert answer["total_input_tokens"] == sum(lengths)
    assert answer["total_hit_blocks"] == [4 * full]


def test_teams_share_no_cache(seen: Seen) -> None:
    assert seen.report["teams"] == {"delivered": 9, "dropped": 0}
    template = InstanceTemplate.parse("{model}/{metadata.user_api_key_team_id|none}")
    slash = template.render(lambda field: "gpt-4o" if field.name == "model" else "t/1")
    blocks = len(seen.events[slash][0]["block_keys"])
    # The second one of t2 is read though LiteLLM's logs have no messages.
    for instance_id, requests in ((slash, 2), ("gpt-4o/t2", 2), ("gpt-4o/none", 1)):
        answer = seen.answers[instance_id]
        assert (answer["requests"], answer["total_hit_blocks"]) == (requests, [(requests - 1) * blocks])
    assert blocks > 100


def test_prefix_block_hashes_are_the_keys(seen: Seen) -> None:
    first, _ = seen.events["gpt-4o/hashed"]
    assert first["block_keys"] == [0x2EB248DFD5C7A836, 0xFFFFFFFFFFFFFFFF]
    assert first["input_token_len"] == 10
    assert seen.answers["gpt-4o/hashed"]["total_hit_blocks"] == [2]
    (response,) = seen.events["gpt-4o/responded"]
    assert response["block_keys"] == list(range(9))
    assert response["input_token_len"] == 36


def test_a_prompt_of_token_ids_has_exact_keys(seen: Seen) -> None:
    instance_id = "gpt-3.5-turbo-instruct/none"
    (event,) = seen.events[instance_id]
    assert event["block_keys"] == chained_keys(range(10), 4, instance_id)
    assert event["input_token_len"] == 10


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no field", "the request has no model_group; name another field"),
        ("prompts", "text_completion has 2 prompts"),
        ("responses", "only a part of the prompt of aresponses"),
        ("redacted", "redacts the prompts of synchronous calls"),
        ("closed", "the callback is closed"),
    ],
)
def test_what_would_be_read_wrongly_is_dropped_with_the_reason(seen: Seen, case: str, words: str) -> None:
    assert words in seen.report["refused"][case]


def test_a_slow_tokenizer_holds_up_no_call(seen: Seen) -> None:
    report = seen.report["busy"]
    assert report["answers"] == [ANSWER] * 3
    assert {name: report[name] for name in ("delivered", "dropped")} == {"delivered": 2, "dropped": 2}
    model, messages, tools = report["asked"]
    assert (model, messages[0]["role"], tools[0]["function"]["name"]) == ("gpt-4o", "system", "look_up")
    assert [event["input_token_len"] for event in seen.events["gpt-4o"]] == [5, 5]


def test_a_broker_that_is_away_costs_no_call(seen: Seen) -> None:
    assert seen.report["away"] == {"answers": [ANSWER] * 5, "delivered": 0, "dropped": 5}


def test_the_end_of_the_process_loses_nothing(seen: Seen) -> None:
    events = seen.events["gpt-4o/leaving"]
    assert len({event["trace_id"] for event in events}) == len(events) == 21
    assert seen.answers["gpt-4o/leaving"]["requests"] == 21
