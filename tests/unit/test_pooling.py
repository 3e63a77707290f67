from __future__ import annotations

import pytest

from litehit.errors import OptionError, UnknownInstance
from litehit.registry import InstanceConfig, Registry
from service.lanes.committed import RequestsTopic
from service.lanes.pooling import check_pooling
from service.settings import Settings

REGISTRY = Registry([InstanceConfig("a*", "g", 8, 4, 1024, False, 0, ())])


def check(partitions: int, **settings: object) -> None:
    check_pooling(Settings(**settings), RequestsTopic("requests", "g", partitions), REGISTRY)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"fanout_all_instances": True}, {"override_instance_id": "a1"}])
def test_a_topic_of_several_partitions_is_refused_with_the_reason(given: dict[str, object]) -> None:
    (name,) = given
    with pytest.raises(OptionError, match=f"{name}.* needs a requests topic of one partition, but requests has 4"):
        check(4, **given)
    check(4)


def test_what_it_needs_of_the_registry_is_asked_for_at_start() -> None:
    check(1, override_instance_id="a1")
    with pytest.raises(UnknownInstance, match="'b' is not registered"):
        check(1, override_instance_id="b")
    with pytest.raises(OptionError, match="registered by exact id"):
        check(1, fanout_all_instances=True)


def test_the_two_settings_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        Settings(fanout_all_instances=True, override_instance_id="a1")
