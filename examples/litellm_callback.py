"""A callback for LiteLLM: each request that an engine has answered becomes an event, in no request's own time."""

from __future__ import annotations

import atexit
import hashlib
import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import litellm
from litellm.constants import REDACTED_BY_LITELLM
from litellm.integrations.custom_logger import CustomLogger

from examples.chained_keys import chained_keys
from examples.producer import RequestTap

_CLOSE_SECONDS = 10.0
_HASHES = "prefix_block_hashes"
_TEXT_CALLS = {"text_completion", "atext_completion"}
_WHOLE_PROMPTS = {"completion", "acompletion"} | _TEXT_CALLS
_PARTS_OF_PROMPTS = {"responses", "aresponses", "anthropic_messages"}  # without their system prompt and tools

Json = Mapping[str, Any]


def approximate_ids(model: str, messages: Sequence[Any], tools: Sequence[Any]) -> list[int]:
    """Token ids near those that the engine sees: LiteLLM's tokenizer for the model, no chat template.

    A prompt that goes on from another one has the other one's ids before its own. What is not text, a picture for
    one, is a digest of itself, so its length is too small.

    Args:
        model: as LiteLLM names it to the provider.
        messages: of the chat.
        tools: offered to the model.
    """
    texts = [_as_json(tools)] if tools else []
    texts += [f"{message['role']}\n{_text_of(message)}" for message in messages]
    return [token for text in texts for token in litellm.encode(model=model, text=text)]


class LiteHitCallback(CustomLogger):  # its base is typed only where LiteLLM is installed
    """Publishes what LiteLLM reports; what can't be published is counted and logged by the tap, never raised.

    Keys are `prefix_block_hashes` of the request's metadata, 16 hexadecimal digits for each block, where something in
    the gateway puts them there; else chained keys over token ids. Answers from LiteLLM's own cache reach no engine
    and are no events, nor are calls that are no completions.

    Args:
        tap: where events go. Attribute too: it counts them.
        block_size_tokens: as registered.
        instance: fields of LiteLLM's `standard_logging_object` whose values, joined by `/`, are the instance id; a dot
            leads into an object, after `|` stands what is taken where the field is absent, null or empty. Of several
            values each has `%2F` for `/` and `%25` for `%`, so that different values are different instances.
        prompt_ids: token ids of a prompt, given model, messages and tools; with the model's own tokenizer and chat
            template the keys are exact.
        waiting: requests that may wait for their keys; more are dropped.
    """

    def __init__(
        self,
        tap: RequestTap,
        block_size_tokens: int,
        instance: Sequence[str] = ("model_group",),
        prompt_ids: Callable[[str, Sequence[Any], Sequence[Any]], Sequence[int]] = approximate_ids,
        waiting: int = 1000,
    ) -> None:
        super().__init__()
        self.tap = tap
        self._block_size_tokens = block_size_tokens
        self._instance = tuple(instance)
        self._prompt_ids = prompt_ids
        self._waiting: queue.Queue[Json | None] = queue.Queue(waiting)
        self._closed = threading.Event()
        # A long prompt takes its tokenizer a tenth of a second, which the gateway's event loop must not wait for.
        self._working = threading.Thread(target=self._work, name="litehit-callback", daemon=True)
        self._working.start()
        atexit.register(self.close)

    def log_success_event(self, kwargs: Json, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Take what a synchronous call reports."""
        self._take(kwargs)

    async def async_log_success_event(self, kwargs: Json, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Take what an asynchronous call reports."""
        self._take(kwargs)

    def exempt_from_message_redaction(self) -> bool:
        """Asynchronous calls are read though messages are not to be logged: no text leaves this process."""
        return True

    def close(self) -> None:
        """Publish what waits and close the tap, as at exit."""
        atexit.unregister(self.close)
        if self._closed.is_set():
            return
        self._closed.set()
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_CLOSE_SECONDS)
            self._working.join(_CLOSE_SECONDS)
        self.tap.close()

    def _take(self, kwargs: Json) -> None:
        if self._closed.is_set():
            self.tap.drop("the callback is closed")
            return
        try:
            self._waiting.put_nowait(dict(kwargs))
        except queue.Full:
            self.tap.drop("too many requests wait for their keys")

    def _work(self) -> None:
        while (kwargs := self._waiting.get()) is not None:
            try:
                self._publish(kwargs)
            except Exception as error:
                self.tap.drop(f"{type(error).__name__}: {error}")

    def _publish(self, kwargs: Json) -> None:
        request = kwargs["standard_logging_object"]
        call = request["call_type"]
        if request["cache_hit"] or call not in _WHOLE_PROMPTS | _PARTS_OF_PROMPTS:
            return
        instance_id = _instance_of(request, self._instance)
        if hashes := (kwargs["litellm_params"].get("metadata") or {}).get(_HASHES):
            tokens = request["prompt_tokens"]
            keys = [int(one, 16) for one in hashes]
            if len(keys) > tokens // self._block_size_tokens:
                keys.pop()  # of a block that is not full
        else:
            ids = self._ids(request, kwargs["messages"])
            tokens = len(ids)
            keys = chained_keys(ids, self._block_size_tokens, instance_id)
        started_ns = int(request["startTime"] * 1_000_000_000)
        self.tap.send(instance_id, keys, tokens, started_ns, kwargs["litellm_call_id"])

    def _ids(self, request: Json, messages: Sequence[Any]) -> Sequence[int]:
        call = request["call_type"]
        if call in _PARTS_OF_PROMPTS:
            raise ValueError(f"LiteLLM reports only a part of the prompt of {call}; give {_HASHES} in the metadata")
        if messages == [{"role": "user", "content": REDACTED_BY_LITELLM}]:
            raise ValueError(f"LiteLLM redacts the prompts of synchronous calls; give {_HASHES} in the metadata")
        if call in _TEXT_CALLS:
            if isinstance(messages[0], int):
                return messages
            if len(messages) > 1:
                raise ValueError(f"{call} has {len(messages)} prompts; send each by a call of its own")
        return self._prompt_ids(request["model"], messages, request["model_parameters"].get("tools") or ())


def _instance_of(request: Json, fields: Sequence[str]) -> str:
    values = [_value(request, *field.split("|", 1)) for field in fields]
    if len(values) > 1:
        values = [value.replace("%", "%25").replace("/", "%2F") for value in values]
    return "/".join(values)


def _value(request: Json, path: str, default: str | None = None) -> str:
    value: Any = request
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None or value == "":
        value = default
    if value is None:
        raise ValueError(f"the request has no {path}; name another field, or what stands for it: {path}|none")
    return str(value)


def _text_of(message: Any) -> str:
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [_text_of_part(part) for part in content]
    if calls := message.get("tool_calls"):
        parts.append(_as_json(calls))
    return "\n".join(parts)


def _text_of_part(part: Json) -> str:
    if part["type"] == "text":
        return str(part["text"])
    return hashlib.blake2b(_as_json(part).encode(), digest_size=16).hexdigest()


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
