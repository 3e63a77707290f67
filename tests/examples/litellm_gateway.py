"""A gateway on the real LiteLLM, in its mock mode, for the tests of the callback: it runs where LiteLLM is installed.

`python -m tests.examples.litellm_gateway FOLDER BOOTSTRAP NOBODY`: the folder has the README's config.yaml and handler,
nobody listens at the last address. What was seen is printed as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import litellm
import yaml
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER
from litellm.proxy.types_utils.utils import get_instance_fn
from litellm.responses.streaming_iterator import drain_logging_tasks

import examples.producer
from examples.litellm_callback import LiteHitCallback
from examples.producer import RequestTap

SECONDS = 60
SYSTEM = {"role": "system", "content": "Answer shortly. " * 500}
CHAT = [SYSTEM, {"role": "user", "content": [{"type": "text", "text": "What is a prefix? " * 100}]}]
LONGER_CHAT = [*CHAT, {"role": "assistant", "content": "A beginning."}, {"role": "user", "content": "Why? " * 900}]
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]
BY_TEAM = ("model", "metadata.user_api_key_team_id|none")
MOCK = {"model": "gpt-4o", "mock_response": "It is so."}


class Warnings(logging.Handler):
    """Keeps the tap's warnings."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("LiteLLM did not call back")
        time.sleep(0.01)


def listen(handler: LiteHitCallback) -> LiteHitCallback:
    """Make a callback LiteLLM's only one."""
    for other in litellm.callbacks[:]:
        litellm.logging_callback_manager.remove_callback_from_all_lists(other)
    litellm.callbacks = [handler]
    return handler


def counted(handler: LiteHitCallback, events: int) -> dict[str, int]:
    """What the tap counts once it has heard of so many events."""
    wait_until(lambda: handler.tap.delivered + handler.tap.dropped >= events)
    return {"delivered": handler.tap.delivered, "dropped": handler.tap.dropped}


def run(calls: Callable[[], Awaitable[Any]]) -> None:
    """Run a loop that ends as the proxy's does: else LiteLLM cancels the callbacks that are under way."""

    async def whole() -> None:
        await calls()
        await drain_logging_tasks(SECONDS)
        await GLOBAL_LOGGING_WORKER.flush()

    asyncio.run(whole())


def of_team(team: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"user_api_key_team_id": team, **more}}


def readme(folder: Path) -> dict[str, int]:
    """Each kind of call once, by the config and the handler of the README."""
    path = folder / "config.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))["litellm_settings"]
    handler = listen(get_instance_fn(settings["callbacks"], config_file_path=str(path)))
    parameters = {"model": "hosted_vllm/any/llm", "api_base": "http://127.0.0.1:9", "mock_response": "It is so."}
    router = litellm.Router([{"model_name": "my-model", "litellm_params": parameters}])

    async def calls() -> None:
        await router.acompletion(model="my-model", messages=CHAT)
        async for _ in await router.acompletion(model="my-model", messages=CHAT, stream=True):
            pass
        await router.acompletion(model="my-model", messages=LONGER_CHAT)
        await litellm.aembedding(model="text-embedding-3-small", input="What?", mock_response=[0.5])

    router.completion(model="my-model", messages=CHAT)
    for _ in router.completion(model="my-model", messages=CHAT, stream=True):
        pass
    run(calls)
    litellm.cache = litellm.Cache(type="local")
    first, second = (router.completion(model="my-model", messages=CHAT, tools=TOOLS, caching=True).id for _ in range(2))
    assert first == second, "LiteLLM's cache did not answer"
    litellm.cache = None
    return counted(handler, 6)


def teams(bootstrap: str) -> dict[str, int]:
    """What must and must not share a cache, and keys that need no tokenizer."""
    handler = listen(LiteHitCallback(RequestTap(bootstrap), 4, BY_TEAM))

    async def calls() -> None:
        for team in ("t/1", "t/1", "t2"):
            await litellm.acompletion(**MOCK, messages=CHAT, **of_team(team))
        await litellm.acompletion(**MOCK, messages=CHAT)
        # LiteLLM's mock mode says 10 tokens: two full blocks and a half.
        hashes = ["2eb248dfd5c7a836", "ffffffffffffffff", "29c6cf7c6224e183"]
        for _ in range(2):
            await litellm.acompletion(**MOCK, messages=CHAT, **of_team("hashed", prefix_block_hashes=hashes))
        # 36 tokens of a prompt that LiteLLM reports in part.
        whole = of_team("responded", prefix_block_hashes=[f"{number:016x}" for number in range(9)])
        await litellm.aresponses(**MOCK, input="What?", instructions="Answer.", **whole)
        await litellm.atext_completion(model="gpt-3.5-turbo-instruct", prompt=list(range(10)), mock_response="x")
        litellm.turn_off_message_logging = True
        await litellm.acompletion(**MOCK, messages=CHAT, **of_team("t2"))
        litellm.turn_off_message_logging = False

    run(calls)
    return counted(handler, 9)


def refused(bootstrap: str, warnings: Warnings) -> dict[str, str]:
    """Requests that would be read wrongly, and why each is dropped."""

    def redacted() -> None:
        litellm.turn_off_message_logging = True
        litellm.completion(**MOCK, messages=CHAT)

    cases: dict[str, Callable[[], Any]] = {
        "no field": lambda: litellm.completion(**MOCK, messages=CHAT),
        "prompts": lambda: litellm.text_completion(**MOCK, prompt=["one", "two"]),
        "responses": lambda: run(lambda: litellm.aresponses(**MOCK, input="What?", instructions="Answer.")),
        "redacted": redacted,
    }
    texts = {}
    for name, call in cases.items():
        fields = ("model_group",) if name == "no field" else ("model",)
        handler = listen(LiteHitCallback(RequestTap(bootstrap), 4, fields))
        call()
        assert counted(handler, 1) == {"delivered": 0, "dropped": 1}
        litellm.turn_off_message_logging = False
        texts[name] = warnings.texts[-1]
        handler.close()
    listen(handler)
    litellm.completion(**MOCK, messages=CHAT)
    wait_until(lambda: handler.tap.dropped == 2)
    texts["closed"] = warnings.texts[-1]
    return texts


def busy(bootstrap: str) -> dict[str, Any]:
    """A tokenizer that takes its time holds up no call."""
    asked: list[Any] = []
    entered, going_on = threading.Event(), threading.Event()

    def prompt_ids(*arguments: Any) -> list[int]:
        asked.append(arguments)
        entered.set()
        going_on.wait(SECONDS)
        return [1, 2, 3, 4, 5]

    handler = listen(LiteHitCallback(RequestTap(bootstrap), 4, ("model",), prompt_ids, waiting=1))
    litellm.completion(**MOCK, messages=CHAT, tools=TOOLS)
    entered.wait(SECONDS)
    answers = [litellm.completion(**MOCK, messages=CHAT).choices[0].message.content for _ in range(3)]
    wait_until(lambda: handler.tap.dropped == 2)
    going_on.set()
    handler.close()
    return {"asked": asked[0], "answers": answers, **counted(handler, 4)}


def away(nobody: str) -> dict[str, Any]:
    """A broker that is away costs no call."""
    handler = listen(LiteHitCallback(RequestTap(nobody), 4, ("model",)))
    answers = [litellm.completion(**MOCK, messages=CHAT).choices[0].message.content for _ in range(5)]
    examples.producer._FLUSH_SECONDS, usual = 0.1, examples.producer._FLUSH_SECONDS
    handler.close()
    examples.producer._FLUSH_SECONDS = usual
    return {"answers": answers, **counted(handler, 5)}


def leave(bootstrap: str) -> None:
    """Requests at whose callbacks nobody waits before the process ends."""
    listen(LiteHitCallback(RequestTap(bootstrap), 4, BY_TEAM))

    async def calls() -> None:
        calls = (litellm.acompletion(**MOCK, messages=CHAT, **of_team("leaving")) for _ in range(20))
        await asyncio.gather(*calls)

    run(calls)
    litellm.completion(**MOCK, messages=CHAT, **of_team("leaving"))


def main(folder: str, bootstrap: str, nobody: str) -> None:
    warnings = Warnings()
    examples.producer.log.addHandler(warnings)
    report = {
        "readme": readme(Path(folder)),
        "teams": teams(bootstrap),
        "refused": refused(bootstrap, warnings),
        "busy": busy(bootstrap),
        "away": away(nobody),
    }
    print(json.dumps(report))
    leave(bootstrap)


if __name__ == "__main__":
    main(*sys.argv[1:])
