"""The page's pure functions, run where they will run: in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser

from service.api.page.assets import page_assets
from tests.page_harness import Served

Call = Callable[..., Any]

SIDE = {"instance": "", "window": "all", "from": None, "to": None}


@pytest.fixture(scope="module")
def call(browser: Browser, served: Served) -> Iterator[Call]:
    """Calls a function of a module with JSON arguments and gives its JSON result; {"date": time} stands for a Date."""
    context = browser.new_context(timezone_id="Europe/Berlin", locale="en-GB")
    page = context.new_page()
    page.goto(f"{served.url}/healthz")  # its own origin, and nothing of the page

    def call(module: str, function: str, *arguments: Any) -> Any:
        return page.evaluate(
            """async ([url, name, given]) => {
                const values = given.map(one => one?.date ? new Date(one.date) : one);
                return (await import(url))[name](...values);
            }""",
            [f"{served.url}/page/{page_assets().digest}/{module}.js", function, list(arguments)],
        )

    yield call
    context.close()


# state.js


@pytest.mark.parametrize(
    "query",
    [
        "?gb=64",
        "?instance=a%26b+%C3%A9&window=week&gb=0&more=0.5&target=99.9&target_of=tokens&block_bytes=1&axis=linear",
        "?window=custom&from=2026-03-16T23%3A00%3A00.123456789Z&gb=64",
        "?vs_instance=b&vs_window=custom&vs_to=2026-03-16T23%3A00%3A00Z&gb=64",
        "?instance=a&window=yesterday&vs_instance=a&vs_window=before&gb=48",
    ],
)
def test_an_address_is_read_and_written_back(call: Call, query: str) -> None:
    read = call("state", "readState", query)
    assert read["refused"] == []
    assert call("state", "writeState", read["state"]) == query


def test_an_empty_address_is_the_defaults(call: Call) -> None:
    read = call("state", "readState", "")
    assert read["state"]["capacity"] == 64
    assert read["state"]["shown"] == SIDE
    assert read["state"]["compare"] is None


@pytest.mark.parametrize(
    "wrong", ["gb=-1", "gb=", "gb=nan", "gb=Infinity", "more=0", "target=101", "target=0", "target_of=x", "axis=x",
              "block_bytes=1.5", "block_bytes=0", "window=x", "from=yesterday", "vs_window=x"],
)  # fmt: skip
def test_what_an_address_gets_wrong_is_named(call: Call, wrong: str) -> None:
    assert call("state", "readState", f"?{wrong}")["refused"] == [wrong]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"window": "yesterday"}, {"window": "before"}),
        ({"window": "today", "instance": "b"}, {"window": "yesterday", "instance": "b"}),
        ({"instance": "a"}, {"instance": "b"}),
        ({}, {"window": "day"}),
        ({"window": "day"}, {"window": "yesterday"}),
    ],
)
def test_what_is_offered_to_compare_with(call: Call, shown: dict[str, str], expected: dict[str, str]) -> None:
    assert call("state", "counterpart", {**SIDE, **shown}, ["a", "b"]) == {**SIDE, **expected}


# windows.js


@pytest.mark.parametrize(
    ("window", "now", "start", "end"),
    [
        ("all", "2026-03-18T12:34:56Z", None, None),
        ("hour", "2026-03-18T12:34:56Z", "2026-03-18T11:34:00.000Z", None),
        ("week", "2026-03-18T12:34:56Z", "2026-03-11T12:34:00.000Z", None),
        ("today", "2026-03-18T23:30:00Z", "2026-03-18T23:00:00.000Z", "2026-03-19T23:00:00.000Z"),
        # Clocks go forward on the 29th: that day has 23 hours.
        ("yesterday", "2026-03-30T12:00:00Z", "2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"),
        ("before", "2026-03-30T12:00:00Z", "2026-03-27T23:00:00.000Z", "2026-03-28T23:00:00.000Z"),
    ],
)
def test_windows_by_the_readers_calendar(call: Call, window: str, now: str, start: str | None, end: str | None) -> None:
    assert call("windows", "resolveWindow", {**SIDE, "window": window}, {"date": now}) == {"from": start, "to": end}


@pytest.mark.parametrize("time", ["2026-03-16T23:00:00.000Z", "2026-07-01T00:00:07.000Z"])
def test_a_time_goes_through_its_field(call: Call, time: str) -> None:
    assert call("windows", "fromField", call("windows", "toField", time)) == time


# format.js


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        ("percent", 0.62314, "62.31 %"),
        ("percent", 0.999999, "99.99 %"),
        ("percent", 1, "100.00 %"),
        ("points", 0.0219, "+2.19 points"),
        ("points", -0.0219, "\u22122.19 points"),
        ("points", -0.00001, "0.00 points"),
        ("gigabytes", 0.0625, "0.0625 GB"),
        ("enough", 71.3301, "71.34 GB"),
        ("enough", 8, "8 GB"),
        ("enough", 0, "0 GB"),
        ("enough", 12345.1, "12,350 GB"),
        ("bytes", 8388608, "8 MiB"),
        ("bytes", 1000, "1,000 bytes"),
        ("age", 59.4, "59 s"),
        ("age", 7200, "2 h"),
        ("age", 30 * 86400, "30 days"),
    ],
)
def test_numbers_are_written(call: Call, function: str, value: float, text: str) -> None:
    assert call("format", function, value) == text


@pytest.mark.parametrize("value", [0.1, 1 / 3, 2.5, 4.421875, 99.994, 99.9999, 1e-9, 123456.7, 22.9677734375])
def test_rounding_up_suffices_and_is_near(call: Call, value: float) -> None:
    rounded = call("format", "roundUp", value)
    assert value <= rounded <= value * 1.0011


# scale.js


@pytest.mark.parametrize("axis", ["log", "linear"])
@pytest.mark.parametrize("gb", [0, 0.01, 1, 7.5, 64, 900])
def test_the_slider_goes_there_and_back(call: Call, axis: str, gb: float) -> None:
    span = {"min": 0.01, "max": 1000}
    position = call("scale", "toPosition", gb, span, axis)
    assert 0 <= position <= 1000
    step = 0.012 * gb if axis == "log" else 1.01
    assert abs(call("scale", "toCapacity", position, span, axis) - gb) <= step + 0.005 * gb


def test_the_range_spans_the_curves_and_the_capacity(call: Call) -> None:
    assert call("scale", "capacityRange", [[0, 0.5, 10], [0.25, 40]], 3) == {"min": 0.25, "max": 48}
    assert call("scale", "capacityRange", [[0.5, 10]], 100)["max"] == 100
    empty = call("scale", "capacityRange", [[]], 0)
    assert 0 < empty["min"] < empty["max"]


# metrics.js, csv.js, traffic.js, freshness.js, words.js


def test_metrics_are_summed_or_unknown(call: Call) -> None:
    text = """# HELP litehit_lane_state x
litehit_lane_state{partition="0",state="running"} 1.0
litehit_lane_lag_records{partition="0"} 5.0
litehit_lane_lag_records{partition="1"} 2.0
litehit_lane_dead_letters_total{partition="0",reason="a b"} 3.0
litehit_lane_dead_letters_created{partition="0",reason="a b"} 9e9
"""
    assert call("metrics", "readMetrics", text) == {"deadLetters": 3, "requestsBehind": 7}
    without = "\n".join(line for line in text.splitlines() if "dead_letters" not in line)
    assert call("metrics", "readMetrics", without)["deadLetters"] == 0
    assert call("metrics", "readMetrics", "litehit_index_facts 3.0\n") == {"deadLetters": None, "requestsBehind": None}


def test_csv_quotes_what_it_must(call: Call) -> None:
    points = {"capacity_gb": [0.5, 2], "hit_blocks": [0, 3], "hit_tokens": [0, 192], "hit_rates": [0, 0.25]}
    curve = {"series": 'a "b", c', "instance": "m", "window": {"from": None, "to": None}, "points": points}
    assert call("csv", "curvesCsv", [curve]).split("\r\n") == [
        "series,instance_id,from,to,capacity_gb,hit_blocks,hit_tokens,hit_rate",
        '"a ""b"", c",m,,,0.5,0,0,0',
        '"a ""b"", c",m,,,2,3,192,0.25',
        "",
    ]


@pytest.mark.parametrize("hours", [0.01, 1, 5, 24, 30, 24 * 7, 24 * 365, 24 * 365 * 40])
def test_buckets_cover_the_span_once(call: Call, hours: float) -> None:
    start = 1_773_000_000_123
    end = start + int(hours * 3_600_000)
    buckets = call("traffic", "bucketsOf", start, end)
    assert 1 <= len(buckets) <= 32
    assert buckets[0]["start"] == start
    assert buckets[-1]["end"] == end
    assert all(a["end"] == b["start"] for a, b in pairwise(buckets))


@pytest.mark.parametrize(
    ("about", "level", "text"),
    [
        ({"readiness": None}, "wait", "Asking the service…"),
        ({}, "good", "Up to date; newest request 5 s ago"),
        ({"newest": None}, "wait", "Ready; no facts yet"),
        ({"factsBehind": 2, "requestsBehind": 1}, "behind", "3 records behind, catching up; newest request 5 s ago"),
        ({"factsBehind": None}, "good", "Level with the store; newest request 5 s ago"),
        (
            {"missing": [{"partition": 0, "from": 5, "to": 6}]},
            "behind",
            "Up to date; facts are missing at 1 offset (Status says which); newest request 5 s ago",
        ),
        (
            {
                "factsBehind": 1,
                "missing": [{"partition": 0, "from": 5, "to": 9}, {"partition": 1, "from": 0, "to": 996}],
            },
            "behind",
            "1 records behind, catching up; facts are missing at 1,000 offsets (Status says which); "
            "newest request 5 s ago",
        ),
        ({"unreadable": ["x"]}, "bad", "Not whole: 1 file of the store can't be read (Status says what to do)"),
        (
            {"unreadable": ["x", "y"], "newest": None, "factsBehind": 3},
            "bad",
            "Not whole: 2 files of the store can't be read (Status says what to do)",
        ),
        ({"failure": "no answer"}, "bad", "Not up to date: no answer; the numbers are 3 s old. Trying again."),
        (
            {"readiness": {"ready": False, "waiting": [{"component": "api", "detail": "x"}] * 3}},
            "wait",
            "Not ready: x (and 2 more, below)",
        ),
    ],
)
def test_freshness_in_words(call: Call, about: dict[str, Any], level: str, text: str) -> None:
    usual: dict[str, Any] = {
        "failure": None,
        "answeredAt": 1_773_000_002_000,
        "readiness": {"ready": True, "waiting": []},
        "newest": "2026-03-08T20:00:00.000000000Z",
        "factsBehind": 0,
        "requestsBehind": 0,
        "unreadable": [],
        "missing": [],
        "now": 1_773_000_005_000,
    }
    assert call("freshness", "freshness", {**usual, **about}) == {"level": level, "text": text}


def test_names_of_sides_say_what_differs(call: Call) -> None:
    chat, rag = {**SIDE, "instance": "chat"}, {**SIDE, "instance": "rag"}
    before = {**chat, "window": "before"}
    assert call("words", "sideNames", [chat]) == ["chat, All time"]
    assert call("words", "sideNames", [chat, rag]) == ["chat", "rag"]
    assert call("words", "sideNames", [chat, before]) == ["All time", "Day before yesterday"]
    assert call("words", "sideNames", [before, rag]) == ["chat, Day before yesterday", "rag, All time"]


def test_text_that_looks_like_markup_is_escaped_for_charts(call: Call) -> None:
    assert call("chart", "plain", "<b>a & b</b>") == "&lt;b&gt;a &amp; b&lt;/b&gt;"


def test_the_model_that_gains_most_is_no_variant(call: Call) -> None:
    """A variant has the same requests, so that memory can't be bought for it too."""
    state = call("state", "readState", "?gb=8&more=8")["state"] | {"shown": SIDE}

    def summary(instance_id: str, more: float) -> dict[str, Any]:
        return {
            "instance_id": instance_id,
            "requests": 10,
            "total_input_tokens": 100,
            "capacity_gb": [8, 16],
            "hit_rates": [0.1, 0.1 + more],
            "total_hit_tokens": [10, 20],
            "ceiling": {"hit_rate": 0.9},
            "of_ceiling": [0.1],
            "gain_per_gb": {"hit_rates": [0.01]},
        }

    query = {"instances": [summary("a", 0.1), summary("b", 0.2)], "variants": [summary("a@large", 0.3)]}
    capacities = {
        part: [{"instance_id": one["instance_id"], "capacities": [{"reachable": False}]} for one in query[part]]
        for part in query
    }
    rows = call("answers", "modelRows", query, capacities, state)
    assert [(row["instance"], row["isVariant"]) for row in rows] == [("a@large", True), ("b", False), ("a", False)]
    sentence = call("words", "modelsSentence", rows, state)
    assert "add most to b: " in sentence
    assert "next is a: " in sentence


TRAFFIC = """async ([url, times, newest, grow]) => {
    const traffic = await import(url);
    const sorted = times.map(Date.parse).sort((a, b) => a - b);
    let asked = 0;
    const askPart = async (from, to) => {
        asked += 1;
        if (grow) sorted.push(Date.parse(newest) + asked); // requests go on coming
        const low = from === null ? -Infinity : Date.parse(from), high = to === null ? Infinity : Date.parse(to);
        const requests = sorted.filter((one) => low <= one && one < high).length;
        return {requests, hit_rates: [0], ceiling: {hit_rate: 0}};
    };
    const window = {from: null, to: null};
    const answer = await traffic.loadTraffic({
        window, newest, requests: times.length, now: Date.parse(newest) + 60_000, askPart,
    });
    return {...answer, asked};
}"""


@pytest.fixture(scope="module")
def load_traffic(browser: Browser, served: Served) -> Iterator[Callable[..., Any]]:
    """`loadTraffic` over all time, of requests at some times."""
    page = browser.new_page()
    page.goto(f"{served.url}/healthz")
    module = f"{served.url}/page/{page_assets().digest}/traffic.js"
    yield lambda times, newest, grow=False: page.evaluate(
        TRAFFIC, [module, [one.isoformat() for one in times], newest.isoformat(), grow]
    )
    page.close()


@pytest.mark.parametrize(
    ("begin", "seconds", "later"),
    [
        (datetime(2026, 11, 1, tzinfo=UTC), 36, timedelta()),
        (datetime(2026, 11, 1, tzinfo=UTC), 86_400, timedelta()),
        (datetime(1970, 1, 1, tzinfo=UTC), 3_600, timedelta()),
        (datetime(1970, 1, 1, tzinfo=UTC), 3_600, timedelta(days=365 * 56)),  # another model's are of today
        (datetime(2026, 1, 1, tzinfo=UTC), 600, timedelta(days=300)),
    ],
)
def test_all_time_is_that_of_the_requests(
    load_traffic: Callable[..., Any], begin: datetime, seconds: int, later: timedelta
) -> None:
    times = [begin + timedelta(seconds=seconds * at / 99) for at in range(100)]
    answer = load_traffic(times, times[-1] + later)
    assert answer["isAbout"]
    assert sum(one["requests"] for one in answer["buckets"]) == 100
    span = (answer["end"] - answer["start"]) / 1000
    assert seconds <= span <= seconds * 1.2 + 5
    assert seconds < 300 or sum(one["requests"] > 0 for one in answer["buckets"]) > 1
    assert answer["asked"] < 31 + 90


def test_requests_that_come_meanwhile_are_no_reason_to_look_further_back(load_traffic: Callable[..., Any]) -> None:
    newest = datetime(2026, 12, 1, tzinfo=UTC)
    times = [newest - timedelta(seconds=at) for at in range(120)]
    answer = load_traffic(times, newest, grow=True)
    assert (answer["end"] - answer["start"]) / 1000 < 150
