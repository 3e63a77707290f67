"""The alerting rules ask for metrics that the service shows, and say what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from service.api.index import IndexSize
from service.archive.status import ArchiveStatus
from service.lanes.status import LanesStatus
from service.metrics import ApiMetrics, ArchiveMetrics, LanesMetrics, UpkeepMetrics

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
    ApiMetrics(registry, lambda: IndexSize(0, 0, 0, 0, 0), dict)
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
