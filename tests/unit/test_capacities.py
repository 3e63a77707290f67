"""`--capacity-gb` takes the numbers that follow it, negative ones too, and may be repeated."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from service.cli.capacities import Capacities, CapacitiesCommand

app = typer.Typer()


@app.command(cls=CapacitiesCommand)
def show(
    facts: Annotated[str, typer.Argument()],
    capacity_gb: Capacities,
    out: Annotated[str, typer.Option("--out")] = "-",
) -> None:
    typer.echo(f"{facts} {capacity_gb} {out}")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("f --capacity-gb 8", "f [8.0] -"),
        ("f --capacity-gb -1", "f [-1.0] -"),
        ("f --capacity-gb=-1", "f [-1.0] -"),
        ("f --capacity-gb 8 64 -1", "f [8.0, 64.0, -1.0] -"),
        ("f --capacity-gb=8 64 -1", "f [8.0, 64.0, -1.0] -"),
        ("f --capacity-gb 8 --capacity-gb -1 --out o", "f [8.0, -1.0] o"),
        ("--capacity-gb 8 0 8 f --out 9", "f [8.0, 0.0, 8.0] 9"),
        ("--out o --capacity-gb 1e3 -.5 f", "f [1000.0, -0.5] o"),
        ("--capacity-gb 8 -- 64", "64 [8.0] -"),
        ("f --capacity-gb nan -inf", "f [nan, -inf] -"),
    ],
)
def test_what_is_taken(arguments: str, shown: str) -> None:
    result = CliRunner().invoke(app, arguments.split())
    assert (result.exit_code, result.output.strip()) == (0, shown)


@pytest.mark.parametrize("arguments", ["f", "f --capacity-gb", "f --capacity-gb x", "f --capacity-gb 8 x", "f 8"])
def test_what_is_refused(arguments: str) -> None:
    assert CliRunner().invoke(app, arguments.split()).exit_code == 2
