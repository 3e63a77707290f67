"""The five questions of a capacity planner, answered from the page alone: each number is the API's."""

from __future__ import annotations

import csv
import io
import struct
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Keep, OpenPage
from tests.page_harness import Served

YESTERDAY = {"from": "2026-03-16T23:00:00Z", "to": "2026-03-17T23:00:00Z"}  # in Berlin
DAY_BEFORE = {"from": "2026-03-15T23:00:00Z", "to": "2026-03-16T23:00:00Z"}


def shown(page: Page, row: str, column: int = 1) -> str:
    """A figure of the answer by its row's heading; the page has answered by then."""
    cells = page.locator("#figures tbody tr", has=page.locator("th", has_text=row)).locator("th, td")
    return cells.nth(column).inner_text()


def summary(served: Served, capacity_gb: float, instance: str = "", **window: Any) -> Any:
    answer = served.get("/query", capacity_gb=capacity_gb, **window)
    if not instance:
        return answer["total"]
    return next(one for one in answer["instances"] if one["instance_id"] == instance)


def percent(rate: float) -> str:
    return f"{rate * 100:.2f} %"


def points(difference: float) -> str:
    sign = "" if round(abs(difference) * 100, 2) == 0 else "+" if difference > 0 else "\u2212"
    return f"{sign}{abs(difference) * 100:.2f} points"


def test_the_hit_rate_of_a_model_at_a_capacity(served: Served, open_page: OpenPage, picture: Keep) -> None:
    page = open_page(served, charts=True)
    page.get_by_label("Model").first.select_option("chat")
    page.get_by_label("Capacity in GB").fill("4.8")
    expect(page.locator("#figures tbody th").first).to_have_text("Hit rate at 4.8 GB")
    expected = summary(served, 4.8, "chat")
    expect(page.locator("#headline")).to_have_text(
        f"chat, All time: {percent(expected['hit_rates'][0])} hit rate at 4.8 GB, "
        f"{percent(expected['of_ceiling'][0])} of the ceiling"
    )
    assert shown(page, "Hit rate at") == percent(expected["hit_rates"][0])
    assert shown(page, "Share of the ceiling") == percent(expected["of_ceiling"][0])
    assert shown(page, "Ceiling, at infinite") == percent(expected["ceiling"]["hit_rate"])
    assert shown(page, "The next GB adds") == points(expected["gain_per_gb"]["hit_rates"][0])
    more = summary(served, 104.8, "chat")
    assert shown(page, "100 GB more add") == points(more["hit_rates"][0] - expected["hit_rates"][0])
    assert shown(page, "Requests") == f"{expected['requests']:,}"
    picture(page, "model")


def test_the_slider_asks_for_what_it_shows(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?gb=2")
    expect(page.locator("#headline")).to_contain_text("at 2 GB")
    slider = page.get_by_role("slider")
    before = float(page.get_by_label("Capacity in GB").input_value())
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    capacity = float(page.get_by_label("Capacity in GB").input_value())
    assert capacity > before
    assert slider.get_attribute("aria-valuetext") == f"{capacity:g} GB"
    expect(page.locator("#headline")).to_contain_text(f"at {capacity:g} GB")
    assert shown(page, "Hit rate at") == percent(summary(served, capacity)["hit_rates"][0])
    # With the mouse, to the left end: a capacity of nothing hits nothing.
    box = slider.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 1, box["y"] + box["height"] / 2)
    expect(page.locator("#headline")).to_contain_text("0.00 % hit rate at 0 GB")


def test_the_capacity_for_a_share_of_the_ceiling(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?instance=rag")
    expect(page.locator("#headline")).to_contain_text("rag")
    answer = served.get("/capacity", of_ceiling=0.95, instance_id="rag")
    needed = answer["total"]["capacities"][0]["capacity_gb"]
    said = float(shown(page, "95 % of the ceiling needs").removesuffix(" GB"))
    assert needed <= said < needed * 1.001  # what is shown suffices
    assert summary(served, said, "rag")["of_ceiling"][0] >= 0.95
    page.get_by_label("How much for").fill("99.9")
    expect(page.locator("#figures")).to_contain_text("99.9 % of the ceiling needs")
    needed = served.get("/capacity", of_ceiling=0.999, instance_id="rag")["total"]["capacities"][0]["capacity_gb"]
    assert needed <= float(shown(page, "99.9 % of the ceiling").removesuffix(" GB")) < needed * 1.001
    page.get_by_label("of what").select_option("tokens")
    expect(page.locator("#figures")).to_contain_text("A hit rate of 99.9 % needs")
    assert shown(page, "A hit rate of 99.9 %") == "above its ceiling"


def test_which_model_gains_more(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?gb=1")
    page.get_by_label("GB more?").fill("3")
    expect(page.locator("#models thead")).to_contain_text("3 GB more add")
    answer = served.get("/query", capacity_gb=[1, 4])
    gains = {one["instance_id"]: one["hit_rates"][1] - one["hit_rates"][0] for one in answer["instances"]}
    order = sorted(gains, key=lambda name: -gains[name])
    sentence = page.locator("#models-sentence")
    expect(sentence).to_have_text(
        f"All time: 3 GB more than 1 GB add most to {order[0]}: {points(gains[order[0]])}; "
        f"next is {order[1]}: {points(gains[order[1]])}."
    )
    for row, name in zip(page.locator("#models tbody tr").all(), order, strict=True):
        cells = row.locator("td").all_inner_texts()
        assert cells[0] == name
        assert points(gains[name]) in cells
    page.get_by_role("button", name=order[0]).click()
    expect(page.locator("#headline")).to_contain_text(f"{order[0]}, All time:")


def test_two_days_side_by_side(served: Served, open_page: OpenPage, picture: Keep) -> None:
    page = open_page(served, "?gb=4", charts=True)
    expect(page.locator("#headline")).to_contain_text("All models")
    page.get_by_label("Window").first.select_option("yesterday")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#name-compare")).to_have_text("Day before yesterday")
    expect(page.locator("#side-shown [data-hint]")).to_have_text(
        "17 Mar 2026, 00:00:00 to 18 Mar 2026, 00:00:00; in UTC 2026-03-16 23:00:00 UTC to 2026-03-17 23:00:00 UTC"
    )
    first, second = summary(served, 4, **YESTERDAY), summary(served, 4, **DAY_BEFORE)
    assert first["requests"] != second["requests"] > 0
    a, b = first["hit_rates"][0], second["hit_rates"][0]
    assert [shown(page, "Hit rate at", at) for at in (1, 2, 3)] == [percent(a), percent(b), points(a - b)]
    difference = first["requests"] - second["requests"]
    sign = "+" if difference > 0 else "\u2212"
    assert shown(page, "Requests", 3) == f"{sign}{abs(difference):,}"
    expect(page.locator("#headline")).to_contain_text(f"a difference of {points(a - b)}")
    picture(page, "comparison")
    page.get_by_role("button", name="Stop comparing").click()
    expect(page.locator("#name-compare")).to_be_hidden()


def test_two_models_side_by_side(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?instance=agents&gb=2&more=2&vs_instance=rag&vs_window=all")
    expect(page.locator("#name-shown")).to_have_text("agents")
    expect(page.locator("#name-compare")).to_have_text("rag")
    gains = []
    for name in ("agents", "rag"):
        low, high = (summary(served, gb, name)["hit_rates"][0] for gb in (2, 4))
        gains.append(high - low)
    assert [shown(page, "2 GB more add", at) for at in (1, 2, 3)] == [
        points(gains[0]),
        points(gains[1]),
        points(gains[0] - gains[1]),
    ]


def test_what_if_a_block_took_half(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?instance=agents&gb=1")
    expect(page.locator("#block-bytes-hint")).to_have_text("Recorded: 8,388,608 (8 MiB).")
    was = shown(page, "Hit rate at")
    page.get_by_label("What if a block took").fill(str(4 << 20))
    expected = summary(served, 1, "agents", block_bytes=4 << 20)
    expect(page.locator("#headline")).to_contain_text(percent(expected["hit_rates"][0]))
    assert shown(page, "Hit rate at") != was
    assert expected["hit_rates"] == summary(served, 2, "agents")["hit_rates"]


def test_the_csv_is_the_apis_curve(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?instance=chat&window=yesterday")
    expect(page.locator("#headline")).to_contain_text("chat, Yesterday")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    curve = served.get("/curve", instance_id="chat", points=400, **YESTERDAY)["total"]
    assert len(rows) > 20
    for column, kind in (("capacity_gb", float), ("hit_blocks", int), ("hit_tokens", int)):
        assert [kind(row[column]) for row in rows] == curve[column]
    assert [float(row["hit_rate"]) for row in rows] == curve["hit_rates"]
    assert {row["instance_id"] for row in rows} == {"chat"}
    assert {row["from"] for row in rows} == {"2026-03-16T23:00:00.000Z"}


def test_the_csv_of_all_models_has_each(served: Served, open_page: OpenPage) -> None:
    page = open_page(served)
    expect(page.locator("#headline")).to_contain_text("All models")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert [*dict.fromkeys(row["instance_id"] for row in csv.DictReader(io.StringIO(text)))] == [
        "", "agents", "chat", "rag",
    ]  # fmt: skip


def test_the_png_is_a_picture(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, charts=True)
    expect(page.locator("#curve .main-svg").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    data = Path(download.value.path()).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (2400, 1440)


@pytest.mark.parametrize("axis", ["log", "linear"])
def test_the_chart_draws_the_apis_points(served: Served, open_page: OpenPage, axis: str) -> None:
    page = open_page(served, "?instance=chat&gb=4", charts=True)
    page.get_by_label(axis).check()
    page.wait_for_function("axis => document.getElementById('curve').layout?.xaxis.type === axis", arg=axis)
    drawn = page.evaluate("[...document.getElementById('curve').data[0].x]")
    curve = served.get("/curve", instance_id="chat", points=400)["total"]
    assert drawn[: len(curve["capacity_gb"])] == curve["capacity_gb"]
    marks = page.evaluate("document.getElementById('curve').data[1].x")
    capacities = served.get("/capacity", instance_id="chat", of_ceiling=[0.9, 0.95, 0.99])["total"]["capacities"]
    assert marks[:3] == [one["capacity_gb"] for one in capacities]


def test_traffic_is_counted_by_time(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?window=yesterday", charts=True)
    expect(page.locator("#traffic .main-svg").first).to_be_visible()
    requests = page.evaluate("[...document.getElementById('traffic').data[0].y]")
    assert len(requests) == 24
    assert sum(requests) == summary(served, 1, **YESTERDAY)["requests"]
    expect(page.locator("#traffic-sentence")).to_contain_text(f"{sum(requests):,} requests over 24 h")
