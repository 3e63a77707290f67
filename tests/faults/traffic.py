"""What a tap sends: real requests over several instances, poison of every kind among them, transactions, aborts."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from confluent_kafka import Producer

from litehit.request import Request
from schemas.dead_letter import FORMAT_HEADER
from service import formats
from service.event_json import event_json
from service.formats.base import RecordContext
from service.settings import Settings
from tests.registration_events import ENCODINGS

INSTANCES = ("chat-a", "chat-b", "chat-c", "aging-a", "aging-b", "coarse-a", "coarse-b")
REGISTRY = """
groups:
  - {name: plain, capacity_gb: [1, 16]}
  - {name: aging, ttl_seconds: 20, capacity_gb: [4]}
instances:
  - {instance_id: "chat-*", group: plain, block_size_tokens: 512, block_bytes: 1048576}
  - {instance_id: "aging-*", group: aging, block_size_tokens: 512, block_bytes: 1048576}
  - {instance_id: "coarse-*", group: plain, block_size_tokens: 1024, trace_block_size_tokens: 512, block_bytes: 2097152}
"""
POISON: tuple[bytes | None, ...] = (
    None,
    b"",
    b'{"type":"request",',
    b"\xff\xfe\x00",
    b"[1,2]",
    b'{"block_keys":[],"input_token_len":7}',
    b'{"type":"evict","block_keys":[]}',
    b'{"type":"request","input_token_len":7}',
    b'{"type":"request","block_keys":[],"input_token_len":"seven"}',
    b'{"type":"request","block_keys":[1.5],"input_token_len":512}',
    b'{"type":"request","block_keys":[true],"input_token_len":512}',
    b'{"type":"request","block_keys":[18446744073709551616],"input_token_len":512}',
    b'{"type":"request","block_keys":[1,2],"input_token_len":512}',
    b'{"type":"request","instance_id":"nobody","block_keys":[],"input_token_len":7}',
    b'{"type":"request","block_keys":[' + b"7," * 60_000,
    b'{"type":"request","block_keys":[],"input_token_len":7,"trace_block_size_tokens":16}',
    b'{"type":"register","block_bytes":0}',
    b'{"type":"register","instance_id":"nobody","block_bytes":5}',
)
POISON_OF_FORMATS = ((b"{}", "csv"), (b"{}", "native-protobuf"))
"""Every way to be no request that a Kafka topic can hold; only a record without a time can't be there."""

REGISTRATIONS: tuple[dict[str, Any], ...] = (
    {"block_bytes": 2**19},
    {"ttl_seconds": 5},
    {"ttl_seconds": 30, "reset": True},
    {"capacity_gb": [2, -1]},
    {"block_size_tokens": 1024, "trace_block_size_tokens": 512, "location_specs": {"tp0": 2**20}, "reset": True},
    {"block_bytes": 2**20, "block_size_tokens": 512, "reset": True},
)
"""What instances are registered with amid their requests, in turn; that without a reset is refused where it matters."""

_POISON_SHARE = 0.06
_REGISTER_SHARE = 0.01
_WRITE_SHARE = 0.03
_NO_KEY_SHARE = 0.01

Message: TypeAlias = tuple[str | None, bytes | None, str | None]
"""Key, value, and the format that a header names."""


def trace_requests(path: Path, count: int) -> list[Request]:
    """The first requests of a Mooncake trace; their instance is yet to be chosen."""
    mooncake = formats.get("mooncake")
    requests = []
    with path.open("rb") as lines:
        for number, line in enumerate(itertools.islice(lines, count), start=1):
            request = mooncake.parse(line, RecordContext("none", number, 0))
            assert isinstance(request, Request)
            requests.append(request)
    return requests


def messages(requests: Sequence[Request], random: random.Random) -> Iterator[Message]:
    """Messages without end: the requests again and again, each of some instance, and what else taps send."""
    poison = itertools.cycle([*((value, None) for value in POISON), *POISON_OF_FORMATS])
    registrations = itertools.cycle(itertools.product(REGISTRATIONS, ENCODINGS))
    for number, request in enumerate(itertools.cycle(requests)):
        instance_id = random.choice(INSTANCES)
        share = random.random()
        if share < _POISON_SHARE:
            yield instance_id, *next(poison)
        elif share < _POISON_SHARE + _WRITE_SHARE:
            yield instance_id, b'{"type":"write","keys":[1,2,3]}', None
        elif share < _POISON_SHARE + _WRITE_SHARE + _NO_KEY_SHARE:
            yield None, json.dumps({"type": "request", "block_keys": [], "input_token_len": 7}).encode(), None
        elif share < _POISON_SHARE + _WRITE_SHARE + _NO_KEY_SHARE + _REGISTER_SHARE:
            fields, encode = next(registrations)
            value, headers = encode(instance_id, **fields)
            yield instance_id, value, (dict(headers).get(FORMAT_HEADER) or b"").decode() or None
        yield instance_id, event_json(request._replace(instance_id=instance_id, trace_id=f"soak-{number}")), None


class Tap:
    """Sends messages, some of them in transactions, of which some are aborted.

    Args:
        settings: topic.
        stream: what is sent.
        random: decides what else is.
    """

    def __init__(self, settings: Settings, stream: Iterator[Message], random: random.Random) -> None:
        self._topic = settings.requests_topic
        self._stream = stream
        self._random = random
        properties = {"bootstrap.servers": settings.bootstrap, "partitioner": "murmur2_random", "log_level": 4}
        self._plain = Producer({**properties, "enable.idempotence": True})
        self._transactional = Producer({**properties, "transactional.id": f"tap-{self._topic}"})
        self._transactional.init_transactions()

    def send(self, count: int) -> None:
        """The next messages; when this returns they are in the topic, or aborted."""
        way = self._random.choices(["plain", "commit", "abort"], [4, 2, 1])[0]
        part = itertools.islice(self._stream, count)
        if way == "plain":
            self._produce(self._plain, part)
            return
        self._transactional.begin_transaction()
        self._produce(self._transactional, part)
        if way == "commit":
            self._transactional.commit_transaction()
        else:
            self._transactional.abort_transaction()

    def close(self) -> None:
        """End."""
        self._plain.close()
        self._transactional.close()

    def _produce(self, producer: Producer, part: Iterator[Message]) -> None:
        for key, value, name in part:
            headers: list[tuple[str, str | bytes | None]] = [("tap", b"\x00\xff")]
            if name is not None:
                headers.append((FORMAT_HEADER, name.encode()))
            producer.produce(self._topic, value, key, on_delivery=_delivered, headers=headers)
        assert producer.flush(150) == 0


def _delivered(error: object, _: object) -> None:
    assert error is None, error
