"""The page as a whole: quiet, restored from its address, live, for keyboard, phone and dark rooms."""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Keep, OpenPage, Serve
from tests.page_harness import NOW, Served, made_facts

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def ready(page: Page) -> Page:
    """Wait until it has answered."""
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    return page


def test_it_loads_quietly(served: Served, open_page: OpenPage, picture: Keep) -> None:
    page = ready(open_page(served, charts=True))
    expect(page).to_have_title(re.compile("All models.* LiteHit"))
    picture(page, "all-models")


def test_the_address_restores_the_state(served: Served, open_page: OpenPage) -> None:
    page = ready(open_page(served))
    page.get_by_label("Model").first.select_option("rag")
    page.get_by_label("Window").first.select_option("yesterday")
    page.get_by_role("button", name="Compare").click()
    page.get_by_label("Capacity in GB").fill("5.5")
    page.get_by_label("GB more?").fill("7")
    page.get_by_label("How much for").fill("80")
    page.get_by_label("of what").select_option("tokens")
    page.get_by_label("What if a block took").fill("4194304")
    page.get_by_label("linear").check()
    page.wait_for_url(re.compile("axis=linear"))
    expect(page.locator("#figures thead")).to_contain_text("Day before yesterday")
    expect(page.locator("#figures")).to_contain_text("A hit rate of 80 % needs")
    expect(page.locator("#models thead")).to_contain_text("7 GB more add")
    headline, figures = page.locator("#headline").inner_text(), page.locator("#figures").inner_text()
    other = ready(open_page(served, page.url.removeprefix(f"{served.url}/")))
    expect(other.locator("#headline")).to_have_text(headline)
    assert other.locator("#figures").inner_text() == figures
    assert other.get_by_label("linear").is_checked()
    assert other.get_by_label("What if a block took").input_value() == "4194304"
    other.reload()
    expect(other.locator("#headline")).to_have_text(headline)


def test_a_window_of_ones_own_is_kept_to_the_nanosecond(served: Served, open_page: OpenPage) -> None:
    start = "2026-03-16T23:00:00.123456789Z"
    page = open_page(served, f"?window=custom&from={start}&to=2026-03-17T12:00:00Z&gb=4")
    ready(page)
    expected = served.get("/query", capacity_gb=4, **{"from": start, "to": "2026-03-17T12:00:00Z"})["total"]
    expect(page.locator("#headline")).to_contain_text(f"{expected['hit_rates'][0] * 100:.2f} %")
    assert page.get_by_label("From", exact=True).first.input_value() == "2026-03-17T00:00"  # in Berlin
    page.get_by_label("Capacity in GB").fill("5")
    page.wait_for_url(re.compile(r"from=2026-03-16T23%3A00%3A00\.123456789Z.*gb=5"))
    page.get_by_label("To", exact=True).first.fill("2026-03-17T20:00:00")
    page.wait_for_url(re.compile(r"from=2026-03-16T23%3A00%3A00\.123456789Z&to=2026-03-17T19%3A00%3A00\.000Z"))


def test_it_follows_the_facts_without_flicker(serve: Serve, open_page: OpenPage) -> None:
    facts = made_facts()
    served = serve()
    served.append(facts.select(np.arange(1000)))
    page = ready(open_page(served, "?gb=4", charts=True))
    expect(page.locator("#figures")).to_contain_text("1,000")
    spoken = page.locator("#spoken").inner_text()
    slider = page.get_by_role("slider")
    slider.focus()
    page.evaluate("document.querySelectorAll('#figures td, #headline, #curve .main-svg').forEach(e => e.kept = 1)")
    served.append(facts.select(np.arange(1000, len(facts))))
    page.clock.fast_forward(6000)
    expect(page.locator("#figures")).to_contain_text(f"{len(facts):,}")
    expected = served.get("/query", capacity_gb=4)["total"]["hit_rates"][0]
    expect(page.locator("#headline")).to_contain_text(f"{expected * 100:.2f} %")
    assert page.evaluate("[...document.querySelectorAll('#figures td, #headline')].every(e => e.kept)")
    expect(slider).to_be_focused()
    assert page.locator("#spoken").inner_text() == spoken  # what comes by itself is not read out
    page.keyboard.press("ArrowRight")
    expect(page.locator("#spoken")).to_contain_text("hit rate at")


def test_the_keyboard_is_enough(served: Served, open_page: OpenPage) -> None:
    page = ready(open_page(served, "?gb=4"))

    def tab_to(what: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            found = page.evaluate("document.activeElement.id || document.activeElement.dataset.field || ''")
            if found == what:
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"{what} does not show its focus"
                return
        pytest.fail(f"the Tab key does not reach {what}")

    tab_to("instance")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#headline")).to_contain_text("agents, All time")
    tab_to("window")
    page.keyboard.type("Yest")
    expect(page.locator("#headline")).to_contain_text("agents, Yesterday")
    tab_to("compare")
    page.keyboard.press("Enter")
    expect(page.locator("#name-compare")).to_have_text("Day before yesterday")
    tab_to("capacity-slider")
    page.keyboard.press("Home")
    expect(page.locator("#headline")).to_contain_text("0.00 % hit rate at 0 GB")
    tab_to("capacity")
    page.keyboard.press("Control+A")
    page.keyboard.type("3")
    expect(page.locator("#headline")).to_contain_text("at 3 GB")
    tab_to("more")
    tab_to("target")
    tab_to("target-of")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#figures")).to_contain_text("A hit rate of 95 % needs")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("linear")).to_be_checked()
    tab_to("download-csv")
    with page.expect_download():
        page.keyboard.press("Enter")


def test_every_field_has_a_name(served: Served, open_page: OpenPage) -> None:
    page = ready(open_page(served, "?window=custom&from=2026-03-15T00:00:00Z&vs_window=custom"))
    nameless = page.evaluate(
        """[...document.querySelectorAll('input, select, button')].filter(
            e => e.offsetParent && !e.labels?.length && !e.ariaLabel && !e.textContent.trim()).map(e => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize("query", ["?gb=4", "?window=yesterday&vs_window=before", "?window=custom&vs_window=custom"])
def test_a_phone(served: Served, open_page: OpenPage, picture: Keep, query: str) -> None:
    page = ready(open_page(served, query, charts=True, **PHONE))
    expect(page.locator("#models tbody tr")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    small = page.evaluate(
        """[...document.querySelectorAll('a, button, select, summary, input')].filter(e => e.offsetParent)
        .map(e => [e.id || e.textContent || e.outerHTML, e.getBoundingClientRect()])
        .filter(([, box]) => box.width > 0 && box.left > -1000 && box.height < 44).map(([name]) => name)"""
    )
    assert small == []
    beyond = page.evaluate(
        """[...document.querySelectorAll('main *')].filter(e => e.getClientRects().length)
        .filter(e => !e.closest('.hidden, thead, svg') && e.getBoundingClientRect().right > 391)
        .map(e => e.outerHTML.slice(0, 100))"""
    )
    assert beyond == []
    picture(page, f"phone-{query.count('=')}")


def test_dark_by_the_system_and_by_choice(served: Served, open_page: OpenPage, picture: Keep) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    page = ready(open_page(served, "?window=yesterday&vs_window=before&gb=4", charts=True, color_scheme="dark"))
    dark = page.evaluate(background)
    picture(page, "dark")
    paper = "document.querySelector('#curve .bg, #curve .main-svg').style.background || ''"
    page.get_by_label("Theme").select_option("light")
    page.wait_for_function(f"{background} !== {dark!r}")
    assert page.evaluate(background) != dark
    page.reload()
    ready(page)
    assert page.evaluate(background) != dark
    assert page.get_by_label("Theme").input_value() == "light"
    page.get_by_label("Theme").select_option("auto")
    page.wait_for_function(f"{background} === {dark!r}")
    assert page.evaluate(paper) is not None


def test_names_are_text_and_never_markup(serve: Serve, open_page: OpenPage) -> None:
    evil = "<img src=x onerror=document.title='owned'><b>m</b>"
    served = serve()
    served.append(made_facts(200, models=(evil, "chat")))
    page = ready(open_page(served))
    expect(page.locator("#models tbody")).to_contain_text(evil)
    page.get_by_label("Model").first.select_option(evil)
    expect(page.locator("#headline")).to_contain_text(evil)
    assert page.locator("main img").count() == 0


def test_numbers_that_cannot_be_used_are_refused_beside_their_field(served: Served, open_page: OpenPage) -> None:
    page = ready(open_page(served, "?gb=4"))
    for label, wrong, said in (
        ("Capacity in GB", "-3", "Give a number of GB, from 0."),
        ("GB more?", "0", "Give a number of GB above 0."),
        ("How much for", "101", "Give a percentage above 0 and up to 100."),
        ("What if a block took", "1.5", "Give a whole number of bytes from 1, or empty the field."),
    ):
        field = page.get_by_label(label)
        was = field.input_value()
        field.fill(wrong)
        expect(page.get_by_text(said)).to_be_visible()
        expect(field).to_have_attribute("aria-invalid", "true")
        field.blur()
        expect(page.get_by_text(said)).to_be_hidden()
        expect(field).to_have_value(was)
    expect(page.locator("#headline")).to_contain_text("at 4 GB")


def test_the_last_hour_moves_on(serve: Serve, open_page: OpenPage) -> None:
    served = serve()
    facts = made_facts(400)
    shift = int((NOW.timestamp() - 60) * 10**9) - int(facts.timestamps_ns[-1])
    facts.timestamps_ns[:] += shift
    served.append(facts)
    page = ready(open_page(served, "?window=hour&gb=4"))
    start = (NOW - timedelta(hours=1)).replace(second=0).isoformat()
    recent = served.get("/query", capacity_gb=4, **{"from": start})["total"]["requests"]
    assert recent > 0
    expect(page.locator("#figures")).to_contain_text(f"Requests\t{recent}", use_inner_text=True)
    page.clock.fast_forward(2 * 3600 * 1000)
    expect(page.locator("#notice")).to_contain_text("No requests in this window.")
    page.get_by_role("button", name="Show all time").click()
    expect(page.locator("#headline")).to_contain_text("All models, All time")
    expect(page.locator("#notice")).to_be_hidden()
