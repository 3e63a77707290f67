from __future__ import annotations

from pathlib import Path

import pytest

from litehit.errors import RegistryError, UnknownInstance, VariantAddressed
from litehit.registry import InstanceConfig, Registry
from litehit.variants import base_of, variant_id

GOOD = """\
groups:
  - name: chat
    ttl_seconds: 60
    capacity_gb: [8]
instances:
  - instance_id: "qwen-*"
    group: chat
    block_size_tokens: 64
    trace_block_size_tokens: 16
    block_bytes: 1000
    variants:
      - {name: b128, block_size_tokens: 128, block_bytes: 2000}
      - {name: ttl_off, ttl_seconds: 0, capacity_gb: [8, -1]}
      - {name: fp8-kv, location_specs: {tp0: 250, tp1: 250}}
  - instance_id: plain
    group: chat
    block_size_tokens: 64
    block_bytes: 1000
"""


def load(tmp_path: Path, text: str) -> Registry:
    path = tmp_path / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    return Registry.load(path)


def test_what_a_variant_does_not_state_is_the_entrys(tmp_path: Path) -> None:
    registry = load(tmp_path, GOOD)
    assert registry.variants("qwen-a") == (
        InstanceConfig("qwen-a@b128", "chat", 128, 16, 2000, False, 60 * 10**9, (8,)),
        InstanceConfig("qwen-a@ttl_off", "chat", 64, 16, 1000, False, 0, (8, -1)),
        InstanceConfig("qwen-a@fp8-kv", "chat", 64, 16, 500, False, 60 * 10**9, (8,)),
    )
    assert registry.variants("plain") == registry.variants("nobody") == ()
    for config in registry.variants("qwen-a"):
        assert registry.resolve(config.instance_id) == config


def test_a_variant_takes_no_requests_and_has_no_variants(tmp_path: Path) -> None:
    registry = load(tmp_path, GOOD)
    assert registry.resolve_addressed("qwen-a").instance_id == "qwen-a"
    with pytest.raises(VariantAddressed, match=r"'qwen-a@b128' is a variant of 'qwen-a' .* send them to 'qwen-a'"):
        registry.resolve_addressed("qwen-a@b128")
    assert registry.variant_base("qwen-a@b128") == "qwen-a"
    # Covered by the glob like any other id: it only looks like a variant's.
    for instance_id in ("qwen-a@home", "qwen-a@b128@b128"):
        assert registry.variant_base(instance_id) is None
        assert registry.resolve_addressed(instance_id).block_size_tokens == 64
    with pytest.raises(UnknownInstance, match="'plain@b128' is not registered"):
        registry.resolve("plain@b128")


def test_the_default_instance_is_no_variant(tmp_path: Path) -> None:
    registry = load(tmp_path, GOOD)
    assert registry.exact_ids == ("plain",)
    assert registry.default_instance() == "plain"


@pytest.mark.parametrize(
    ("instance_id", "base"),
    [
        ("a@b", "a"),
        ("a@b@c", "a@b"),
        ("a", None),
        ("@b", None),
        ("a@", None),
        ("joe@example.com", None),
        ("a@b c", None),
    ],
)
def test_the_form_of_a_variants_id(instance_id: str, base: str | None) -> None:
    assert base_of(instance_id) == base
    if base is not None:
        assert variant_id(base, instance_id.rpartition("@")[2]) == instance_id


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: b128", "name: ttl_off", "registry.yaml:13: instances[0].variants[1].name = 'ttl_off': names a variant"),
        ("name: b128", "name: b.128", "registry.yaml:12: instances[0].variants[0].name = 'b.128': "),
        ("name: b128, ", "", "registry.yaml:12: instances[0].variants[0].name: is required"),
        ("ttl_seconds: 0,", "ttl: 0,", "registry.yaml:13: instances[0].variants[1].ttl = 0: is an unknown key"),
        ("ttl_seconds: 0,", "ttl_seconds: -1,", "instances[0].variants[1].ttl_seconds = -1: must be greater"),
        (
            "block_size_tokens: 128",
            "block_size_tokens: 120",
            "instances[0].variants[0].block_size_tokens = 120: must be a multiple of the entry's "
            "trace_block_size_tokens 16",
        ),
        (
            ", block_bytes: 2000",
            "",
            "instances[0].variants[0].block_size_tokens = 128: is not the entry's 64, so its blocks take other bytes; "
            "add block_bytes (in proportion to the entry's that is 2000) or location_specs",
        ),
        (
            "block_bytes: 2000",
            "block_bytes: 2000, location_specs: {a: 1}",
            "instances[0].variants[0].location_specs: excludes block_bytes",
        ),
        (", location_specs: {tp0: 250, tp1: 250}", "", "registry.yaml:14: instances[0].variants[2]: states nothing"),
        (
            "instance_id: plain",
            "instance_id: qwen-a@b128",
            "registry.yaml:15: instances[1].instance_id = 'qwen-a@b128': is the id of a variant of 'qwen-a'",
        ),
    ],
)
def test_an_error_names_line_path_value_and_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert message in str(caught.value)
