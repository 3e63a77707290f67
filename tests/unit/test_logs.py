from __future__ import annotations

import logging

from service.logs import Seldom


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
