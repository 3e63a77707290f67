"""What tests of the examples share."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture(scope="session")
def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"
