"""Options go over variables, variables over defaults; a wrong value is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from service.cli.options import load_settings


def test_an_option_goes_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEHIT_STORE", "from-the-environment")
    assert load_settings().store == "from-the-environment"
    assert load_settings(store="given", registry=Path("r.yaml")).store == "given"


def test_a_broker_that_is_named_replaces_the_other_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEHIT_BOOTSTRAP", "kafka:9092")
    settings = load_settings(embedded=True)
    assert (settings.embedded, settings.bootstrap) == (True, None)
    monkeypatch.delenv("LITEHIT_BOOTSTRAP")
    monkeypatch.setenv("LITEHIT_EMBEDDED", "true")
    settings = load_settings(bootstrap="kafka:9092")
    assert (settings.embedded, settings.bootstrap) == (False, "kafka:9092")


def test_two_brokers_at_once_are_refused() -> None:
    with pytest.raises(typer.BadParameter, match="exclude each other"):
        load_settings(bootstrap="kafka:9092", embedded=True)


def test_a_wrong_value_is_named_with_its_option_and_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEHIT_PORT", "65536")
    with pytest.raises(typer.BadParameter) as error:
        load_settings()
    assert "--port" in str(error.value.message)
    assert "LITEHIT_PORT" in str(error.value.message)
    assert "65535" in str(error.value.message)
