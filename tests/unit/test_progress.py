"""Progress off a terminal: a plain line every ten seconds, with the rate and the time left."""

from __future__ import annotations

import sys

import pytest

from service.cli.progress import progress


class Clock:
    """Stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with progress("publishing", "records", 4000, clock) as meter:
        for second, items in ((1, 900), (9.9, 9_900), (10, 20_000), (15, 25_000), (19.9, 30_000), (30, 60_000)):
            clock.now = 100 + second
            meter(items, items // 20)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "publishing: 20,000 records, 2,000/s, 25%, 0:00:30 left",
        "publishing: 60,000 records, 2,000/s, 75%, 0:00:10 left",
    ]


@pytest.mark.parametrize("total", [None, 0, 50])
def test_no_time_left_where_it_is_not_known(capsys: pytest.CaptureFixture[str], total: int | None) -> None:
    clock = Clock()
    with progress("replaying", "lines", total, clock) as meter:
        clock.now += 20
        meter(10, 0)
    assert capsys.readouterr().err == "replaying: 10 lines, 0/s\n"


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    clock = Clock()
    with progress("publishing", "records", 4000, clock) as meter:
        clock.now += 20
        meter(30_000, 1000)
    shown = capsys.readouterr().err
    for part in ("publishing", "25%", "30,000 records", "1,500/s"):
        assert part in shown
