"""What a stream registers stands over the registry file, setting by setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from litehit.errors import RegistrationRefused, UnknownInstance, VariantAddressed
from litehit.registration import IN_BAND_GROUP, Registration, Registrations
from litehit.registry import InstanceConfig, Registry

FILE = """
groups: [{name: g, ttl_seconds: 5, capacity_gb: [1]}]
instances:
  - {instance_id: "chat-*", group: g, block_size_tokens: 8, trace_block_size_tokens: 4, block_bytes: 100}
  - {instance_id: pair, group: g, block_size_tokens: 8, block_bytes: 100, variants: [{name: short, ttl_seconds: 1}]}
"""


@pytest.fixture
def registrations(tmp_path: Path) -> Registrations:
    path = tmp_path / "registry.yaml"
    path.write_text(FILE, encoding="utf-8")
    return Registrations(Registry.load(path))


def test_what_is_left_out_is_the_files(registrations: Registrations) -> None:
    registrations.add(Registration("chat-a", block_bytes=7))
    assert registrations.resolve("chat-a") == InstanceConfig("chat-a", "g", 8, 4, 7, False, 5 * 10**9, (1.0,))
    assert registrations.resolve("chat-b").block_bytes == 100


def test_later_statements_add_to_earlier_ones_and_a_reset_is_not_kept(registrations: Registrations) -> None:
    registrations.add(Registration("chat-a", block_bytes=7, ttl_ns=0, reset=True))
    registrations.add(Registration("chat-a", block_bytes=9, capacity_gb=()))
    assert registrations.stated == (Registration("chat-a", block_bytes=9, ttl_ns=0, capacity_gb=()),)
    assert registrations.resolve("chat-a") == InstanceConfig("chat-a", "g", 8, 4, 9, False, 0, ())


def test_a_block_size_alone_is_that_of_the_trace_too(registrations: Registrations) -> None:
    registrations.add(Registration("chat-a", block_size_tokens=16))
    assert registrations.resolve("chat-a").trace_block_size_tokens == 16


def test_an_instance_that_the_file_does_not_cover(registrations: Registrations) -> None:
    with pytest.raises(RegistrationRefused, match=r"'new' is not registered so: .* must state block_bytes"):
        registrations.propose(Registration("new", block_size_tokens=4))
    registration = Registration("new", block_size_tokens=4, block_bytes=5)
    config = InstanceConfig("new", IN_BAND_GROUP, 4, 4, 5, False, 0, ())
    assert registrations.propose(registration) == config
    with pytest.raises(UnknownInstance):
        registrations.resolve("new")
    registrations.add(registration)
    assert registrations.resolve("new") == config


def test_another_file_says_what_the_stream_left_out(registrations: Registrations) -> None:
    registrations.add(Registration("chat-a", block_bytes=7))
    registrations.registry = Registry([InstanceConfig("chat-a", "h", 32, 32, 55, True, 0, ())])
    assert registrations.resolve("chat-a") == InstanceConfig("chat-a", "h", 32, 32, 7, True, 0, ())
    registrations.registry = Registry([])
    with pytest.raises(UnknownInstance):
        registrations.resolve("chat-a")


def test_a_glob_is_refused(registrations: Registrations) -> None:
    with pytest.raises(RegistrationRefused, match=r"'chat-\*' .* is a glob; register exact ids"):
        registrations.propose(Registration("chat-*", block_bytes=7))


def test_variants_are_the_files_and_may_be_registered_themselves(registrations: Registrations) -> None:
    registrations.add(Registration("pair", block_bytes=7))
    (short,) = registrations.variants("pair")
    assert (short.instance_id, short.block_bytes, short.ttl_ns) == ("pair@short", 100, 10**9)
    registrations.add(Registration("pair@short", block_bytes=3))
    assert registrations.variants("pair")[0].block_bytes == 3
    assert registrations.resolve_addressed("pair").block_bytes == 7
    with pytest.raises(VariantAddressed):
        registrations.resolve_addressed("pair@short")
    for instance_id in ("pair", "pair@short"):
        with pytest.raises(RegistrationRefused, match="trace_block_size_tokens 4 is not that of 'pair"):
            registrations.propose(Registration(instance_id, block_size_tokens=4))
