"""Options go over variables, variables over defaults; a wrong value is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from service.cli.app import app
from service.cli.options import load_settings, unknown_variables
from service.settings import Settings


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


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("PORT", "65536", r" LITEHIT_PORT = 65536: .* 65535"),
        ("SEGMENT_ROWS", "x", r" LITEHIT_SEGMENT_ROWS = x: .* integer"),
        ("KAFKA", "foo", r" LITEHIT_KAFKA: Expecting value.*; give a JSON object of strings"),
        ("KAFKA", '{"a": {}}', r"LITEHIT_KAFKA: a: .*string"),
        ("KAFKA", '"sasl.password=secret"', r"LITEHIT_KAFKA: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, value: str, told: str) -> None:
    done = CliRunner(env={f"LITEHIT_{variable}": value, "COLUMNS": "300"}).invoke(app, ["serve", "--embedded"])
    assert done.exit_code == 2
    assert re.search(told, done.output), done.output


def test_a_wrong_option_is_named() -> None:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["serve", "--embedded", "--port", "65536"])
    assert done.exit_code == 2
    assert re.search(r" --port = 65536: .* 65535", done.output), done.output


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        (
            "LITEHIT_SEGMENT_SECOND",
            "LITEHIT_SEGMENT_SECOND is no setting and does nothing; did you mean LITEHIT_SEGMENT_S",
        ),
        ("LITEHIT_QQQ", "LITEHIT_QQQ is no setting and does nothing; README's section Settings lists all"),
        ("LITEHIT_STORE", None),
        ("LITEHIT_CRASH_POINT", None),
        ("LITEHIT_SERVICE_HOST", None),
        ("LITEHIT_PORT_8080_TCP_ADDR", None),
        ("LITEHIT_API_SERVICE_PORT_HTTP", None),
        ("LITEHIT_API_PORT", None),
        ("LITEHIT_SERVICE_HOSTS", "LITEHIT_SERVICE_HOSTS is no setting"),
        ("PATH", None),
    ],
)
def test_a_variable_that_is_no_setting_is_told(variable: str, told: str | None) -> None:
    value = "tcp://10.0.0.1:8080" if variable.endswith("_API_PORT") else "8080"
    found = list(unknown_variables({variable: value}, Settings.model_fields))
    assert found == [] if told is None else found[0].startswith(told)


def test_the_work_goes_on_in_spite_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LITEHIT_STOER", "elsewhere")
    monkeypatch.setenv("LITEHIT_LOG_LEVEL", "WARNING")
    settings = load_settings()
    assert (settings.store, settings.log_level) == ("./litehit-data", "warning")
    assert (
        "warning: LITEHIT_STOER is no setting and does nothing; did you mean LITEHIT_STORE?" in capsys.readouterr().err
    )
