"""The alerting rules ask for metrics that the service shows, and say what to do."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from litehit.registry import InstanceConfig
from litehit.totals import SlotTotals
from service.api.index import IndexSize
from service.archive.status import ArchiveStatus
from service.lanes.counts import LaneCounts
from service.lanes.status import InstanceStatus, LanesStatus, LaneState, LaneStatus
from service.metrics import ApiMetrics, ArchiveMetrics, FollowerMetrics, LanesMetrics, UpkeepMetrics

_FILE = Path(__file__).resolve().parents[2] / "deploy" / "alerts.yaml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(_FILE.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]
]


@pytest.fixture(scope="module")
def shown() -> set[str]:
    """Names of all time series of a process with every role."""
    registry = CollectorRegistry()
    LanesMetrics(registry).watch(lambda: LanesStatus(assigned=True, lanes=()))
    ArchiveMetrics(registry).watch(lambda: ArchiveStatus(None, ()))
    UpkeepMetrics(registry)
    ApiMetrics(registry, lambda: IndexSize(0, 0, 0, 0, 0, 0, loaded=True), dict)
    FollowerMetrics(registry, list)
    return {family.name + ("_total" if family.type == "counter" else "") for family in registry.collect()}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_a_rule_asks_for_what_is_shown(rule: dict[str, Any], shown: set[str]) -> None:
    asked = set(re.findall(r"litehit_\w+", rule["expr"]))
    assert asked
    assert asked <= shown
    assert set(re.findall(r"litehit_\w+", rule["annotations"]["action"])) <= shown
    assert rule["labels"]["severity"] in {"warning", "critical"}


def test_each_rule_has_a_name_of_its_own() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) > 0


def test_counters_that_rules_watch_are_there_before_they_count() -> None:
    """Else the first dead letter, or the first failure, would be no rise."""
    registry = CollectorRegistry()
    LanesMetrics(registry).begun(3)
    ArchiveMetrics(registry).begun(3)
    text = generate_latest(registry).decode()
    for series in (
        'litehit_lane_records_total{outcome="dead_letter",partition="3"} 0.0',
        'litehit_snapshot_failures_total{partition="3"} 0.0',
        'litehit_archive_publish_failures_total{partition="3"} 0.0',
        'litehit_archive_gap_offsets_total{partition="3"} 0.0',
    ):
        assert series in text


def test_silence_grows_from_when_kafka_was_last_heard() -> None:
    registry = CollectorRegistry()
    heard = time.monotonic() - 100
    LanesMetrics(registry).watch(lambda: LanesStatus(True, (), heard))
    ArchiveMetrics(registry).watch(lambda: ArchiveStatus("can't begin yet", (), heard))
    for role in ("lanes", "archive"):
        assert 100 <= (registry.get_sample_value(f"litehit_{role}_kafka_silence_seconds") or 0) < 200
    assert registry.get_sample_value("litehit_archive_waiting") == 1


def test_a_variant_on_several_partitions_is_none_more_that_is_split() -> None:
    config = InstanceConfig("a", "g", 4, 4, 1, False, 0, ())
    held = tuple(
        InstanceStatus(replace(config, instance_id=name), 1, 1, SlotTotals(()), name != "a") for name in ("a", "a@x")
    )
    lanes = tuple(LaneStatus(at, LaneState.RUNNING, 1, 1, None, LaneCounts(), held) for at in range(2))
    assert LanesStatus(True, lanes).split_instances == {"a"}


def test_an_index_that_cannot_follow_is_shown() -> None:
    registry = CollectorRegistry()
    waiting: list[str] = []
    FollowerMetrics(registry, lambda: waiting)
    assert registry.get_sample_value("litehit_index_following") == 1
    waiting.append("the store can't be followed: away")
    assert registry.get_sample_value("litehit_index_following") == 0
