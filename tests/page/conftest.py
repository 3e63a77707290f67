"""A browser, a server with known facts, and pages that must stay quiet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page_harness import NOW, TIME_ZONE, Served, chromium, lanes_of, made_facts, serving_index

expect.set_options(timeout=30_000)

OpenPage = Callable[..., Page]
NO_CHARTS = "globalThis.Plotly = {react() {}};"

Serve = Callable[..., Served]
Keep = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Of one module only: while it is there this thread has a running event loop, which others could not start.
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server with facts of three models."""
    with serving_index(lanes=lanes_of()) as served:
        served.append(made_facts())
        yield served


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Makes servers of a test's own, by the arguments of `serving_index`; they run until its pages are closed."""
    with ExitStack() as servers:
        yield lambda **options: servers.enter_context(serving_index(**options))


@pytest.fixture
def open_page(browser: Browser, serve: Serve) -> Iterator[OpenPage]:
    """Opens the page of a server, with a clock that stands at `NOW` and goes on.

    What a page logs as a warning or error, and each request that leaves its server, fails the test; `loud` allows a
    page to log the failures of its calls. The chart library takes seconds to start, so there are `charts` only for
    tests that look at them.
    """
    contexts, problems = [], []

    def open_page(served: Served, query: str = "", *, loud: bool = False, charts: bool = False, **options: Any) -> Page:
        settings = {"viewport": {"width": 1366, "height": 900}, "locale": "en-GB", "timezone_id": TIME_ZONE, **options}
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        if not loud:
            page.on("console", lambda line: problems.append(line.text) if line.type in {"error", "warning"} else None)
        own = (served.url, "blob:", "data:")
        page.on("request", lambda sent: None if sent.url.startswith(own) else problems.append(f"asks {sent.url}"))
        if not charts:
            page.route("**/plotly.min.js", lambda route: route.fulfill(body=NO_CHARTS, content_type="text/javascript"))
        page.clock.install(time=NOW)
        page.goto(f"{served.url}/{query}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def picture(tmp_path: Path) -> Keep:
    """Keeps a picture of a whole page: in the folder that LITEHIT_TEST_PICTURES names, else in pytest's."""
    folder = Path(os.environ.get("LITEHIT_TEST_PICTURES", tmp_path))

    def keep(page: Page, name: str) -> None:
        if page.locator("#answers").is_visible():
            for chart in ("#curve", "#traffic"):
                expect(page.locator(f"{chart} .main-svg").first).to_be_visible()
        page.screenshot(path=folder / f"{name}.png", full_page=True)

    return keep
