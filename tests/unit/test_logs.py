from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from service.logs import Seldom

FAILING = """
import structlog
from service.logs import configure_logs
from service.settings import Settings

configure_logs(Settings())
password = "of-the-" + "broker"
try:
    1 / 0
except ZeroDivisionError as error:
    structlog.get_logger().error("failed", exc_info=error)
"""


def record(kind: str, text: str = "broker") -> logging.LogRecord:
    return logging.LogRecord("librdkafka", logging.ERROR, __file__, 1, "%s [%s]", (kind, text), None)


def test_a_kind_of_line_passes_once_in_half_a_minute() -> None:
    now = 0.0
    seldom = Seldom(lambda: now)
    assert seldom.filter(record("FAIL"))
    assert not seldom.filter(record("FAIL", "another broker"))
    assert seldom.filter(record("TIMEOUT"))
    now = 29.9
    assert not seldom.filter(record("FAIL"))
    now = 30.0
    assert seldom.filter(record("FAIL"))
    assert not seldom.filter(record("FAIL"))


def test_a_line_without_arguments_is_its_own_kind() -> None:
    seldom = Seldom(lambda: 0.0)
    plain = logging.LogRecord("librdkafka", logging.ERROR, __file__, 1, "plain", None, None)
    assert seldom.filter(plain)
    assert not seldom.filter(plain)


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_has_no_variables(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEHIT_LOG_FORMAT", form)
    ended = subprocess.run([sys.executable, "-c", FAILING], check=True, timeout=60, capture_output=True, text=True)
    assert "ZeroDivisionError" in ended.stderr
    assert "of-the-broker" not in ended.stderr
