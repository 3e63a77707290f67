"""The page where there is nothing to show: each state says what to do, and ends by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from schemas.answers import Waiting
from schemas.dead_letter import Reason
from service.api.chain_state import Extent
from service.lanes.counts import LaneCounts
from tests.page.conftest import Keep, OpenPage, Serve
from tests.page_harness import CHAIN, Served, lanes_of, made_facts, serving_index


def test_no_facts_yet(serve: Serve, open_page: OpenPage, picture: Keep) -> None:
    served = serve()
    page = open_page(served, charts=True)
    expect(page.locator("#notice")).to_contain_text("No facts yet. Publish requests, for example: litehit publish")
    expect(page.locator("#freshness")).to_have_text("Ready; no facts yet")
    expect(page.locator("#answers")).to_be_hidden()
    picture(page, "empty")
    served.append(made_facts(300))
    page.clock.fast_forward(6000)
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#curve .main-svg").first).to_be_visible()


def test_not_ready(serve: Serve, open_page: OpenPage, picture: Keep) -> None:
    served = serve(loaded=False)
    served.append(made_facts(300))
    served.index.loading_at(3, 8)
    page = open_page(served, charts=True, loud=True)  # the browser logs each 503
    expect(page.locator("#freshness")).to_have_text("Not ready: summing the store: 3 of 8 segments done")
    expect(page.locator("#notice")).to_contain_text("This page fills by itself when it is.")
    picture(page, "loading")
    served.index.loaded()
    page.clock.fast_forward(6000)
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    expect(page.locator("#freshness")).to_contain_text("Up to date; newest request")


def test_the_service_goes_and_comes_back(serve: Serve, open_page: OpenPage, picture: Keep) -> None:
    facts = made_facts(300)
    with serving_index() as served:
        served.append(facts)
        page = open_page(served, "?gb=4", charts=True, loud=True)
        expect(page.locator("#headline")).to_contain_text("hit rate at")
        headline = page.locator("#headline").inner_text()
        expect(page.locator("#traffic .main-svg").first).to_be_visible()
    page.clock.fast_forward(6000)
    expect(page.locator("#notice")).to_contain_text(f"No answer from {served.url}. See whether")
    expect(page.locator("#freshness")).to_contain_text("Not up to date: the service does not answer; the numbers are")
    expect(page.locator("#headline")).to_have_text(headline)  # with its age beside it
    picture(page, "gone")
    again = serve(port=int(served.url.rsplit(":", 1)[1]))
    again.append(facts)
    page.clock.fast_forward(6000)
    expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#freshness")).to_contain_text("Up to date")


def test_a_service_that_hangs_is_told(serve: Serve, open_page: OpenPage) -> None:
    served = serve()
    served.append(made_facts(300))
    page = open_page(served, loud=True)
    expect(page.locator("#freshness")).to_contain_text("Up to date")
    page.route("**/readyz", lambda _: None)  # never answered
    page.clock.fast_forward(6000)
    page.clock.run_for(11_000)
    expect(page.locator("#freshness")).to_contain_text("Not up to date: the service does not answer; the numbers are")
    page.unroute("**/readyz")
    page.clock.run_for(6000)
    expect(page.locator("#freshness")).to_contain_text("Up to date")


@pytest.mark.parametrize("call", ["**/query?*", "**/instances", "**/capacity?*", "**/curve?*"])
def test_an_answer_that_is_none_is_told_and_passes(serve: Serve, open_page: OpenPage, call: str) -> None:
    """Such as a proxy's page."""
    served = serve()
    served.append(made_facts(300))
    page = open_page(served, loud=True)
    page.route(call, lambda route: route.fulfill(body="<html>log in</html>", content_type="text/html"))
    page.reload()
    expect(page.locator("#notice")).to_contain_text("answered something else than JSON")
    expect(page.locator("#freshness")).to_have_text("Ready; no answer yet")
    page.unroute(call)
    page.clock.run_for(21_000)
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    expect(page.locator("#freshness")).to_contain_text("Up to date")


def test_a_choice_while_the_service_starts_is_kept(serve: Serve, open_page: OpenPage) -> None:
    served = serve()
    served.append(made_facts(300))
    page = open_page(served, loud=True)
    page.route("**/instances", lambda route: route.fulfill(status=503, json={"detail": "not yet"}))
    page.reload()
    expect(page.locator("#notice")).to_contain_text("This page fills by itself when it is.")
    page.get_by_label("Window").first.select_option("week")
    page.unroute("**/instances")
    page.clock.run_for(21_000)
    expect(page.locator("#headline")).to_contain_text("All models, Last 7 days")


def test_a_call_that_is_refused_says_why(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?window=custom&from=2026-03-17T00:00:00Z&to=2026-03-16T00:00:00Z", loud=True)
    expect(page.locator("#notice")).to_contain_text("is not before to")
    page.get_by_role("button", name="Start from the defaults").click()
    expect(page.locator("#headline")).to_contain_text("All models, All time")
    expect(page.locator("#notice")).to_be_hidden()


def test_an_address_that_cannot_be_used_is_named(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?gb=many&window=fortnight&target=95&from=2026&to=Jan+1+2026")
    expect(page.locator("#notice")).to_contain_text(
        "This address has parts that can't be used: window=fortnight, from=2026, to=Jan 1 2026, gb=many. "
        "The page shows its defaults instead."
    )
    expect(page.locator("#headline")).to_contain_text("at 64 GB")


def test_an_unknown_model_has_no_requests(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, "?instance=chta")
    expect(page.locator("#headline")).to_have_text("chta, All time: no requests")
    expect(page.locator("#notice")).to_contain_text("No requests in this window.")
    expect(page.get_by_label("Model").first).to_have_value("chta")
    page.get_by_label("Model").first.select_option("chat")
    expect(page.locator("#headline")).to_contain_text("chat, All time:")


def test_how_far_behind(serve: Serve, open_page: OpenPage) -> None:
    served = serve()
    served.append(made_facts(300))
    served.lag[CHAIN] = 1234
    page = open_page(served)
    expect(page.locator("#freshness")).to_contain_text("1,234 records behind, catching up; newest request")
    expect(page.locator("#state-details")).to_contain_text("Facts not yet counted1,234")
    page.get_by_text("Which facts are counted").click()
    expect(page.locator("#as-of")).to_contain_text("litehit.facts")
    served.lag[CHAIN] = 0
    page.clock.fast_forward(6000)
    expect(page.locator("#freshness")).to_contain_text("Up to date; newest request")
    served.lag.clear()
    page.clock.fast_forward(6000)
    expect(page.locator("#freshness")).to_contain_text("Level with the store; newest request")
    expect(page.locator("#state-details")).to_contain_text("not known here: this process follows the store")


def test_a_file_that_cannot_be_read_says_what_to_do(serve: Serve, open_page: OpenPage, picture: Keep) -> None:
    served = serve()
    served.append(made_facts(300))
    why = "facts/litehit.facts/generation-1/00000/00000000000000000300.parquet: it is no Parquet file"
    served.index.follow([], (), {CHAIN: Extent(unreadable=(why,))})
    page = open_page(served, charts=True)
    expect(page.locator("#freshness")).to_have_text(
        "Not whole: 1 file of the store can't be read (Status says what to do)"
    )
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    expect(page.locator("#state-details")).to_contain_text(
        "Files that can't be read1: what they hold is not counted, and how much that is is unknown. Copy"
    )
    expect(page.locator("#state-details")).to_contain_text(why)
    picture(page, "unreadable")
    served.index.follow([], (), {CHAIN: Extent()})
    page.clock.fast_forward(6000)
    expect(page.locator("#freshness")).to_contain_text("Up to date")
    expect(page.locator("#state-details")).to_contain_text("Files that can't be readnone")


def test_facts_that_are_missing_in_between(serve: Serve, open_page: OpenPage, picture: Keep) -> None:
    served = serve()
    served.append(made_facts(300))
    served.index.follow([], (), {CHAIN: Extent(missing=((20, 120),))})
    page = open_page(served, charts=True)
    expect(page.locator("#freshness")).to_contain_text("facts are missing at 100 offsets (Status says which)")
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    expect(page.locator("#state-details")).to_contain_text("Facts missing in betweenat 100 offsets")
    expect(page.locator("#state-details")).to_contain_text("Partition 0: 20 to 119")
    picture(page, "missing")
    served.index.follow([], (), {CHAIN: Extent()})
    page.clock.fast_forward(6000)
    expect(page.locator("#freshness")).not_to_contain_text("missing")
    expect(page.locator("#state-details")).to_contain_text("Facts missing in betweennone")


def test_what_the_lanes_of_this_process_know(serve: Serve, open_page: OpenPage) -> None:
    served = serve(lanes=lanes_of(behind=7))
    served.append(made_facts(300))
    served.metrics.handed_over(0, LaneCounts(302, facts=300, dead_letters={Reason.MALFORMED_JSON: 2}))
    page = open_page(served)
    expect(page.locator("#freshness")).to_contain_text("7 records behind, catching up")
    expect(page.locator("#state-details")).to_contain_text("Requests not yet processed7")
    expect(page.locator("#state-details")).to_contain_text(
        "Dead letters since the start2: these records count nowhere; litehit dead-letters show says why"
    )
    expect(page.locator("#curve-hint")).to_contain_text("Dots: configured capacities.")


def test_what_lanes_elsewhere_know_is_not_claimed(serve: Serve, open_page: OpenPage) -> None:
    served = serve()
    served.append(made_facts(300))
    page = open_page(served)
    expect(page.locator("#freshness")).to_contain_text("Up to date")
    expect(page.locator("#state-details")).to_contain_text(
        "Dead letters since the startnot known here: the lanes run in another process"
    )
    expect(page.locator("#curve-hint")).to_contain_text("Configured capacities are not known here")


def test_a_role_that_stopped_is_named(serve: Serve, open_page: OpenPage) -> None:
    stopped = Waiting(component="lanes", detail="partition 2 stopped: too many dead letters in a row")
    served = serve(status=[lambda: [stopped]])
    served.append(made_facts(300))
    page = open_page(served, loud=True)
    expect(page.locator("#freshness")).to_have_text("Not ready: partition 2 stopped: too many dead letters in a row")
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    expect(page.locator("#state-details")).to_contain_text(re.compile("lanes: partition 2 stopped"))


def test_the_chart_library_is_missing(served: Served, browser: Browser) -> None:
    page = browser.new_page()
    page.route("**/plotly.min.js", lambda route: route.abort())
    page.goto(served.url)
    expect(page.locator("#curve")).to_have_text("The chart library did not load: reload the page.")
    expect(page.locator("#headline")).to_contain_text("hit rate at")
    page.close()
