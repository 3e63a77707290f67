from __future__ import annotations

from pathlib import Path

import pytest

from litehit.errors import RegistryError, UnknownInstance
from litehit.registry import InstanceConfig, Registry

GOOD = """\
groups:
  - name: chat
    enable_prefix_hash: true
    ttl_seconds: 0.1
    capacity_gb: [8, 64.5, -1]
  - name: agents
instances:
  - instance_id: "qwen3-*"
    group: chat
    block_size_tokens: 512
    trace_block_size_tokens: 128
    location_specs: {tp0: 524288, tp1: 524288}
  - instance_id: qwen3-big
    group: agents
    block_size_tokens: 16
    block_bytes: 1048576
  - instance_id: "qwen3-big-*"
    group: agents
    block_size_tokens: 32
    block_bytes: 1
"""


def load(tmp_path: Path, text: str) -> Registry:
    path = tmp_path / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    return Registry.load(path)


def failure(tmp_path: Path, text: str) -> str:
    with pytest.raises(RegistryError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "registry.yaml"))
    return message.removeprefix(f"{tmp_path}/")


def test_every_field_is_read(tmp_path: Path) -> None:
    registry = load(tmp_path, GOOD)
    assert registry.resolve("qwen3-a") == InstanceConfig(
        instance_id="qwen3-a",
        group="chat",
        block_size_tokens=512,
        trace_block_size_tokens=128,
        block_bytes=1048576,
        enable_prefix_hash=True,
        ttl_ns=100_000_000,
        capacity_gb=(8, 64.5, -1),
    )
    assert registry.resolve("qwen3-big") == InstanceConfig(
        instance_id="qwen3-big",
        group="agents",
        block_size_tokens=16,
        trace_block_size_tokens=16,
        block_bytes=1048576,
        enable_prefix_hash=False,
        ttl_ns=0,
        capacity_gb=(),
    )


def test_exact_wins_then_the_longest_glob_then_the_earlier(tmp_path: Path) -> None:
    ids = ["*", "a*", "*a", "a?c*", "abc", "[xy]1"]
    text = "groups: [{name: g}]\ninstances:\n" + "".join(
        f'  - {{instance_id: "{name}", group: g, block_size_tokens: {size}, block_bytes: 1}}\n'
        for size, name in enumerate(ids, 1)
    )
    registry = load(tmp_path, text)
    for instance_id, winner in {
        "abc": "abc",
        "abcd": "a?c*",
        "aa": "a*",
        "ba": "*a",
        "x1": "[xy]1",
        "z": "*",
        "a\nb": "a*",
    }.items():
        config = registry.resolve(instance_id)
        assert config.instance_id == instance_id
        assert ids[config.block_size_tokens - 1] == winner


def test_an_instance_that_nothing_covers_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UnknownInstance, match="instance_id 'QWEN3-a' is not registered"):
        load(tmp_path, GOOD).resolve("QWEN3-a")


def test_the_only_exact_instance_is_the_default(tmp_path: Path) -> None:
    registry = load(tmp_path, GOOD)
    assert registry.exact_ids == ("qwen3-big",)
    assert registry.default_instance() == "qwen3-big"
    two = load(tmp_path, GOOD.replace('"qwen3-*"', "other"))
    assert two.exact_ids == ("other", "qwen3-big")
    assert two.default_instance() is None
    none = load(tmp_path, GOOD.replace("instance_id: qwen3-big", 'instance_id: "q*"'))
    assert none.default_instance() is None


@pytest.mark.parametrize(
    ("seconds", "nanoseconds"),
    [("0", 0), ("1", 10**9), ("0.000000001", 1), ("1.1", 1_100_000_000), ("86400.000000001", 86_400_000_000_001)],
)
def test_a_fractional_ttl_is_exact(tmp_path: Path, seconds: str, nanoseconds: int) -> None:
    registry = load(tmp_path, GOOD.replace("ttl_seconds: 0.1", f"ttl_seconds: {seconds}"))
    assert registry.resolve("qwen3-a").ttl_ns == nanoseconds


@pytest.mark.parametrize(
    ("text", "number"), [("1e2", 100.0), ("1E+2", 100.0), ("1_00", 100.0), ("100.", 100.0), (".5", 0.5), ("0x10", 16.0)]
)
def test_numbers_are_those_of_yaml_1_2(tmp_path: Path, text: str, number: float) -> None:
    assert load(tmp_path, GOOD.replace("64.5", text)).resolve("qwen3-a").capacity_gb == (8, number, -1)


def test_mappings_can_be_merged(tmp_path: Path) -> None:
    text = """\
groups: [{name: g, capacity_gb: [1]}]
instances:
  - &first
    instance_id: first
    group: g
    block_size_tokens: 16
    block_bytes: 7
  - {<<: *first, instance_id: second, block_bytes: 8}
  - <<: [{block_size_tokens: 32}, *first]
    instance_id: third
"""
    registry = load(tmp_path, text)
    found = {name: registry.resolve(name) for name in ("first", "second", "third")}
    assert {name: (one.block_size_tokens, one.block_bytes) for name, one in found.items()} == {
        "first": (16, 7),
        "second": (16, 8),
        "third": (32, 7),
    }
    # What was merged is told where it stands.
    assert "registry.yaml:7: instances[0].block_bytes = 0: must be" in failure(tmp_path, text.replace("7\n", "0\n"))
    assert "merges mappings too deep" in failure(tmp_path, "groups: &a\n  <<: *a\ninstances: []\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    ttl_seconds: 0.1", "    ttl_secs: 1", "registry.yaml:4: groups[0].ttl_secs = 1: is an unknown key"),
        ("ttl_seconds: 0.1", "ttl_seconds: -2", "registry.yaml:4: groups[0].ttl_seconds = -2: must be greater than"),
        ("ttl_seconds: 0.1", "ttl_seconds: 0.1234567891", "must be a whole number of nanoseconds"),
        ("ttl_seconds: 0.1", "ttl_seconds: .nan", "groups[0].ttl_seconds = .nan: must be a finite number"),
        ("ttl_seconds: 0.1", "ttl_seconds: .inf", "groups[0].ttl_seconds = .inf: must be a finite number"),
        ("ttl_seconds: 0.1", "ttl_seconds: 1.0e+10", "ttl_seconds = 1.0e+10: must be less than or equal to"),
        ("ttl_seconds: 0.1", "ttl_seconds: yes", "groups[0].ttl_seconds = yes: must be a number of seconds"),
        ("ttl_seconds: 0.1", "linear_step: 4", "registry.yaml:4: groups[0].linear_step = 4: must be 0: only full"),
        (
            "block_size_tokens: 16",
            "linear_step: 1\n    block_size_tokens: 16",
            "registry.yaml:15: instances[1].linear_step",
        ),
        ("ttl_seconds: 0.1", "ttl_seconds: 010", "registry.yaml:4: groups[0].ttl_seconds = 010: is octal to some"),
        ("ttl_seconds: 0.1", "ttl_seconds: 12:30", "groups[0].ttl_seconds = '12:30': must be a number of seconds"),
        ("ttl_seconds: 0.1", "block_bytes: 5", "groups[0].block_bytes = 5: belongs to an instance of the group; move"),
        (
            "block_size_tokens: 16",
            "ttl_seconds: 5\n    block_size_tokens: 16",
            "registry.yaml:15: instances[1].ttl_seconds = 5: belongs to the instance's group; move it there",
        ),
        ("block_bytes: 1048576", "block_bytes: 1e6", "instances[1].block_bytes = 1e6: must be a valid integer"),
        ("block_bytes: 1048576", "block_bytes: 2024-01-01", "block_bytes = 2024-01-01: must be a valid integer"),
        ("    block_bytes: 1048576", "    <<: [5]", "registry.yaml:16: << in instances[1] merges what is no mapping"),
        ("64.5", ".nan", "registry.yaml:5: groups[0].capacity_gb[1] = .nan: must be a finite number"),
        ("64.5", ".inf", "groups[0].capacity_gb[1] = .inf: must be a finite number"),
        ("64.5", '"64"', "groups[0].capacity_gb[1] = '64': must be a valid number"),
        ("name: agents", "name: chat", "registry.yaml:6: groups[1].name = 'chat': names a group that is there already"),
        ("name: agents", "name: ''", "registry.yaml:6: groups[1].name = '': "),
        (
            "instance_id: qwen3-big",
            'instance_id: "qwen3-*"',
            "registry.yaml:13: instances[1].instance_id = 'qwen3-*': is registered already",
        ),
        (
            "group: chat",
            "group: chats",
            "registry.yaml:9: instances[0].group = 'chats': is no group; use one of chat, agents",
        ),
        ("    group: chat\n", "", "registry.yaml:8: instances[0].group: is required; add it"),
        ("    group: chat\n", "    grop: chat\n", "registry.yaml:9: instances[0].grop = 'chat': is an unknown key"),
        (
            "block_bytes: 1048576",
            "block_byte: 1048576",
            "registry.yaml:16: instances[1].block_byte = 1048576: is an unknown",
        ),
        (
            "block_size_tokens: 512",
            "block_size_tokens: 0",
            "registry.yaml:10: instances[0].block_size_tokens = 0: must be",
        ),
        (
            "block_size_tokens: 512",
            "block_size_tokens: 2147483648",
            "instances[0].block_size_tokens = 2147483648: must be less than 2147483648",
        ),
        ("ttl_seconds: 0.1", f"ttl_seconds: 1{'0' * 5000}", "groups[0].ttl_seconds = '1000"),
        ("ttl_seconds: 0.1", f"ttl_seconds: 1{'0' * 400}", "0…: must be less than or equal to"),
        ("block_size_tokens: 512", "block_size_tokens: 512.0", "instances[0].block_size_tokens = 512.0: must be"),
        (
            "block_size_tokens: 128",
            "block_size_tokens: 100",
            "registry.yaml:11: instances[0].trace_block_size_tokens = 100: must divide block_size_tokens 512",
        ),
        ("block_size_tokens: 128", "block_size_tokens: 0", "instances[0].trace_block_size_tokens = 0: must be"),
        (
            "    block_bytes: 1048576\n",
            "",
            "registry.yaml:13: instances[1].location_specs: is absent and so is block_bytes",
        ),
        (
            "block_bytes: 1048576",
            "location_specs: {a: 1}\n    block_bytes: 1",
            "registry.yaml:16: instances[1].location_specs: excludes block_bytes",
        ),
        ("tp0: 524288", "tp0: 0", "registry.yaml:12: instances[0].location_specs.tp0 = 0: must be"),
        ("{tp0: 524288, tp1: 524288}", "{}", "registry.yaml:12: instances[0].location_specs: must sum to a positive"),
        ("tp1:", "tp0:", "registry.yaml:12: instances[0].location_specs.tp0 is given twice"),
        (
            "    group: chat",
            "    group: chat\n    group: agents",
            "registry.yaml:10: instances[0].group is given twice",
        ),
        ("name: agents", "name: [agents", "registry.yaml:7: is no valid YAML: "),
        ("name: agents", "name: !!python/name:os.system x", "registry.yaml:6: groups[1].name = 'x' is no plain value"),
        ("name: agents", "? [a]\n    : b", "registry.yaml:6: a key of groups[1] is a list or mapping"),
        ("name: agents", "name: *none", "registry.yaml:6: is no valid YAML"),
    ],
)
def test_an_error_names_line_path_value_and_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert message in failure(tmp_path, GOOD.replace(old, new, 1))


def test_the_fault_of_the_only_entry_is_told(tmp_path: Path) -> None:
    text = """\
groups:
  - name: g
instances:
  - {instance_id: a, group: g, block_size_tokens: 0, block_bytes: 1}
"""
    assert failure(tmp_path, text).startswith("registry.yaml:4: instances[0].block_size_tokens = 0: must be greater")
    assert failure(tmp_path, text.replace("name: g", "name: 1")).startswith("registry.yaml:2: groups[0].name = 1: must")


def test_the_error_nearest_the_top_is_told(tmp_path: Path) -> None:
    text = GOOD.replace("block_bytes: 1048576", "block_bytes: 0").replace("ttl_seconds: 0.1", "ttl_seconds: -1")
    assert "registry.yaml:4: " in failure(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "registry.yaml:1: is empty"),
        ("- 1\n", "registry.yaml:1: the document: must be a mapping"),
        ("groups: []\ninstances: []\n", "registry.yaml:1: groups: is empty; add an entry"),
        ("groups: {a: 1}\ninstances: []\n", "registry.yaml:1: groups: must be a list"),
        ("groups: [a]\ninstances: []\n", "registry.yaml:1: groups[0] = 'a': must be a mapping"),
        ("groups: &a [*a]\n", "is nested too deep"),
        ("\x00", "is no valid YAML"),
    ],
)
def test_a_file_that_is_no_registry_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in failure(tmp_path, text)


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"none\.yaml: cannot be read \(No such file or directory\)"):
        Registry.load(tmp_path / "none.yaml")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_bytes(b"groups: \xff\xfa\xe9")
    with pytest.raises(RegistryError, match="is no valid YAML"):
        Registry.load(path)
