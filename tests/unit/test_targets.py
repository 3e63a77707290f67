from __future__ import annotations

from dataclasses import replace

import pytest

from litehit.errors import OptionError, UnknownInstance, VariantAddressed
from litehit.registry import InstanceConfig, Registry
from litehit.targets import AS_NAMED, Routing

CONFIG = InstanceConfig("a", "g", 8, 4, 1024, False, 0, ())
REGISTRY = Registry(
    [CONFIG, replace(CONFIG, instance_id="b"), replace(CONFIG, instance_id="glob-*")],
    {"a": [replace(CONFIG, instance_id="v1"), replace(CONFIG, instance_id="v2")], "glob-*": [CONFIG]},
)


def targets(routing: Routing, instance_id: str) -> list[str]:
    pooled = routing.pooled(REGISTRY)
    return [one.instance_id for one in routing.targets(REGISTRY, instance_id if pooled is None else pooled)]


def test_a_request_goes_to_its_instance_and_then_to_the_variants() -> None:
    assert not AS_NAMED
    assert targets(AS_NAMED, "a") == ["a", "a@v1", "a@v2"]
    assert targets(AS_NAMED, "b") == ["b"]
    assert targets(AS_NAMED, "glob-1") == ["glob-1", "glob-1@a"]
    with pytest.raises(UnknownInstance):
        targets(AS_NAMED, "nobody")
    with pytest.raises(VariantAddressed):
        targets(AS_NAMED, "a@v1")


@pytest.mark.parametrize("instance_id", ["a", "a@v1", "nobody"])
def test_an_override_and_a_fanout_ask_for_no_name(instance_id: str) -> None:
    assert Routing(override_instance_id="glob-x")
    assert Routing(fanout_all_instances=True)
    assert targets(Routing(override_instance_id="glob-x"), instance_id) == ["glob-x", "glob-x@a"]
    assert targets(Routing(fanout_all_instances=True), instance_id) == ["a", "a@v1", "a@v2", "b"]


def test_they_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="exclude each other; give one of them"):
        Routing(fanout_all_instances=True, override_instance_id="a")


@pytest.mark.parametrize("instance_id", ["", "a\udcff"])
def test_an_id_that_no_file_could_carry_is_refused(instance_id: str) -> None:
    with pytest.raises(OptionError, match="is empty or no UTF-8; give an instance's id"):
        Routing(override_instance_id=instance_id)


def test_what_they_need_of_the_registry() -> None:
    with pytest.raises(UnknownInstance):
        Routing(override_instance_id="nobody").pooled(REGISTRY)
    with pytest.raises(VariantAddressed):
        Routing(override_instance_id="a@v1").pooled(REGISTRY)
    with pytest.raises(OptionError, match="needs instances that are registered by exact id"):
        Routing(fanout_all_instances=True).pooled(Registry([replace(CONFIG, instance_id="*")]))
