"""What is written is read back as the same request, every 64-bit key included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from litehit.request import Request
from schemas.request import EVENT, RequestEvent
from service.event_json import event_json


def test_an_event_is_read_back() -> None:
    keys = np.array([0, -1, 2**63 - 1, -(2**63), 2**53 + 1], np.int64)
    request = Request("chat", 'turn "1" é', 1_750_000_000_123_456_789, keys, 12_345)
    event = EVENT.validate_json(event_json(request))
    assert isinstance(event, RequestEvent)
    assert event.block_keys.tolist() == keys.tolist()
    assert event.model_dump(exclude={"block_keys"}) == {
        "type": "request",
        "instance_id": "chat",
        "trace_id": 'turn "1" é',
        "timestamp_ns": 1_750_000_000_123_456_789,
        "input_token_len": 12_345,
        "trace_block_size_tokens": None,
    }


def test_an_interruption_stays_one() -> None:
    class Interrupted:
        def __len__(self) -> int:
            raise KeyboardInterrupt

    keys: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        event_json(Request("chat", "turn", 1, keys, 12))
