"""The Grafana dashboard asks for metrics and labels that the service shows, and its panels stand side by side."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from litehit.registry import InstanceConfig
from litehit.totals import SlotTotals
from schemas.dead_letter import Reason
from service.api.index import IndexSize
from service.api.spread import GAUGED_SHARES
from service.archive.segment import ChainKey
from service.archive.status import ArchiveStatus, PartitionStatus
from service.lanes.counts import Ignored, LaneCounts
from service.lanes.status import InstanceStatus, LanesStatus, LaneState, LaneStatus, SnapshotStatus
from service.metrics import ApiMetrics, ArchiveMetrics, FollowerMetrics, LanesMetrics, UpkeepMetrics

_FILE = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "litehit.json"
DASHBOARD: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWING = [panel for panel in PANELS if panel["type"] != "row"]
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
each_panel = pytest.mark.parametrize("panel", SHOWING, ids=lambda panel: str(panel["id"]))

_WIDTH = 24
_ADDED = {"instance"}
"""Labels that Prometheus gives every series."""

Shown = dict[str, dict[str, set[str]]]
"""Values by label by name of a time series."""


@pytest.fixture(scope="module")
def shown() -> Shown:
    """What a process of every role shows that has done a little of everything."""
    registry = CollectorRegistry()
    lanes = LanesMetrics(registry)
    ignored, letters = dict.fromkeys(Ignored, 1), dict.fromkeys(Reason, 1)
    lanes.handed_over(0, LaneCounts(1 + len(ignored) + len(letters), 1, ignored, letters, 1, 1))
    lanes.snapshot_written(0, 1, 1.0)
    lanes.snapshot_failed(0)
    config = InstanceConfig("a", "g", 4, 4, 1, False, 0, ())
    held = (InstanceStatus(config, 1, 1, SlotTotals((8.0,))),)
    lane = LaneStatus(0, LaneState.RUNNING, 1, 1, None, LaneCounts(), held, 0, 0, SnapshotStatus(1, 0.0))
    lanes.watch(lambda: LanesStatus(assigned=True, lanes=(lane,)))
    archive = ArchiveMetrics(registry)
    archive.begun(0)
    partition = PartitionStatus(ChainKey("facts", "first", 0), 1, 1, 0, 1, None, None, None)
    archive.watch(lambda: ArchiveStatus(None, (partition,)))
    upkeep = UpkeepMetrics(registry)
    upkeep.stored({0: 1}, {0: 1})
    upkeep.merged(0, 2, 2, 1.0)
    upkeep.removed(0, 1, 1)
    gauged = {"a": dict.fromkeys(GAUGED_SHARES, 1)}
    ApiMetrics(registry, lambda: IndexSize(0, 0, 0, 0, 0, 0, loaded=True), lambda: gauged).answered("/query", 200, 0.1)
    FollowerMetrics(registry, list)
    found: Shown = {}
    for family in registry.collect():
        for sample in family.samples:
            labels = found.setdefault(sample.name, defaultdict(set))
            for label, value in sample.labels.items():
                labels[label].add(value)
    return found


def _asked(expression: str) -> set[str]:
    return set(re.findall(r"litehit_\w+", expression))


def _targets(panel: dict[str, Any]) -> list[tuple[str, str]]:
    return [(target["expr"], target["legendFormat"]) for target in panel["targets"]]


@each_panel
def test_a_panel_asks_for_what_is_shown(panel: dict[str, Any], shown: Shown) -> None:
    """Of a histogram that is its buckets, sum and count; its own name stands for no series."""
    for expression, _ in _targets(panel):
        asked = _asked(expression)
        assert asked
        assert asked <= shown.keys()


@each_panel
def test_a_panel_tells_series_apart_by_labels_that_they_have(panel: dict[str, Any], shown: Shown) -> None:
    for expression, legend in _targets(panel):
        known = {label for name in _asked(expression) for label in shown[name]} | _ADDED
        kept = {label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(", ")}
        assert kept <= known
        # What is not kept is not there to be named.
        assert set(re.findall(r"{{(\w+)}}", legend)) == set(re.findall(r"\w+", _outermost(expression)))


def _outermost(expression: str) -> str:
    """The labels of the result, but for that of a histogram's buckets, which its quantile uses up."""
    found = re.search(r"\bby \(([^)]*)\)", expression)
    labels = "" if found is None else found[1]
    return re.sub(r"(, )?\ble\b", "", labels)


@each_panel
def test_a_panel_selects_what_there_can_be(panel: dict[str, Any], shown: Shown) -> None:
    for expression, _ in _targets(panel):
        for name, selector in re.findall(r"(litehit_\w+){([^}]*)}", expression):
            for label, operator, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', selector):
                assert label in shown[name]
                if operator in {"=", "!="}:
                    assert value in shown[name][label]


def test_a_counter_is_never_shown_as_it_stands() -> None:
    """It begins anew with each process. The hits so far are the exception: they are those of all processes."""
    for panel in SHOWING:
        for expression, _ in _targets(panel):
            counters = re.findall(r"(\w+\()?(litehit_\w+_(?:total|bucket))\b", expression)
            standing = {name for function, name in counters if function not in {"rate(", "increase("}}
            assert not standing or panel["title"] == "Hit rate since the first request"


def test_every_state_of_a_lane_has_a_name() -> None:
    (panel,) = [one for one in SHOWING if any("litehit_lane_state" in expression for expression, _ in _targets(one))]
    ((expression, _),) = _targets(panel)
    (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
    factors = re.findall(r'(?:(\d) \* )?litehit_lane_state{state="(\w+)"}', expression)
    assert {state: mapping["options"][factor or "1"]["text"] for factor, state in factors} == {
        state.value: state.value for state in LaneState
    }


def test_the_service_has_a_row_for_each_subject() -> None:
    assert [panel["title"] for panel in PANELS if panel["type"] == "row"] == ["Hits", "Lanes", "Archive", "API"]


def test_each_panel_has_an_id_of_its_own() -> None:
    ids = [panel["id"] for panel in PANELS]
    assert len(ids) == len(set(ids)) > 0
    titles = [(panel["id"] // 100, panel["title"]) for panel in SHOWING]  # a row's panels have its hundred
    assert len(titles) == len(set(titles))


def test_panels_do_not_overlap() -> None:
    taken: dict[tuple[int, int], int] = {}
    for panel in PANELS:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= _WIDTH
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["id"]) == panel["id"], (x, y)


def test_panels_stand_below_their_row() -> None:
    order = sorted(PANELS, key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]))
    assert order == PANELS
    row = 0
    for panel in PANELS:
        row = panel["id"] if panel["type"] == "row" else row
        assert panel["id"] // 100 * 100 == row


@each_panel
def test_a_panel_uses_the_chosen_source_and_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["datasource"] == DATASOURCE
    # What a target states goes before its panel's.
    assert all(target.get("datasource", DATASOURCE) == DATASOURCE for target in panel["targets"])
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["description"].endswith(".")
    assert all(legend for _, legend in _targets(panel))


def test_the_variables_are_there_and_used(shown: Shown) -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    used = set(re.findall(r"\$(?:{(\w+)}|(\w+))", json.dumps(PANELS)))
    names = {braced or bare for braced, bare in used} - {"__rate_interval"}
    # Ad hoc filters are added to every query unasked.
    assert names == {name for name, one in variables.items() if one["type"] != "adhoc"}
    for one in variables.values():
        assert one["type"] == "datasource" or one["datasource"] == DATASOURCE
    found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variables["instance_id"]["query"]["query"])
    assert found is not None
    assert found[2] in shown[found[1]]
