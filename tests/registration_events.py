"""Registration events in both encodings, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from schemas.dead_letter import FORMAT_HEADER
from service.format_names import FormatName
from service.formats.native_protobuf import EVENT_MESSAGE
from service.records import Headers


def in_json(instance_id: str | None, **fields: Any) -> tuple[bytes, Headers]:
    """Value and headers of a registration in JSON."""
    named = {} if instance_id is None else {"instance_id": instance_id}
    return json.dumps({"type": "register", **named, **fields}).encode(), ()


def in_protobuf(instance_id: str | None, **fields: Any) -> tuple[bytes, Headers]:
    """The same in binary."""
    slots = {"slots": {"capacity_gb": fields.pop("capacity_gb")}} if "capacity_gb" in fields else {}
    value = EVENT_MESSAGE(type=2, instance_id=instance_id, registration={**fields, **slots}).SerializeToString()
    return value, ((FORMAT_HEADER, FormatName.NATIVE_PROTOBUF.encode()),)


Encode = Callable[..., tuple[bytes, Headers]]
ENCODINGS: tuple[Encode, ...] = (in_json, in_protobuf)
