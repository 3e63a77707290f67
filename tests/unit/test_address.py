"""The address of the HTTP API is taken before anything else."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from service.api.address import Address
from service.errors import AddressUnusable
from service.serve import run_service
from service.settings import Role, Settings


def test_what_is_bound_refuses_until_it_listens() -> None:
    address = Address("127.0.0.1", 0)
    assert address.url == f"http://127.0.0.1:{address.port}"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", address.port))
    with address.listen(), socket.create_connection(("127.0.0.1", address.port)):
        pass


def test_of_two_that_bind_at_the_same_moment_one_listens() -> None:
    one = Address("127.0.0.1", 0)
    other = Address("127.0.0.1", one.port)
    with one.listen(), pytest.raises(AddressUnusable, match="already in use"):
        other.listen()


def test_a_port_that_was_let_go_is_free() -> None:
    address = Address("127.0.0.1", 0)
    address.close()
    with Address("127.0.0.1", address.port).listen():
        pass


def test_a_taken_port_is_told_before_the_broker_is_looked_for(tmp_path: Path) -> None:
    registry = tmp_path / "registry.yaml"
    registry.write_text(
        "groups: [{name: a}]\ninstances: [{instance_id: '*', group: a, block_size_tokens: 4, block_bytes: 1}]"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(
            bootstrap="broker.invalid:9092",
            registry=registry,
            store=str(tmp_path / "store"),
            port=taken.getsockname()[1],
        )
        with pytest.raises(AddressUnusable):
            run_service(settings, frozenset(Role))
    assert not (tmp_path / "store").exists()
