"""The application: its commands, and what an error looks like from outside."""

from __future__ import annotations

import signal
from importlib.metadata import version
from typing import Annotated

import typer

from service.cli import (
    curve,
    dead_letters,
    export,
    generate,
    lanes,
    publish,
    query,
    registry,
    replay,
    schema,
    serve,
    verify,
)
from service.cli.capacities import CapacitiesCommand

_FAILED = 1
_WRONG_USAGE = 2
_INTERRUPTED = 130

app = typer.Typer(
    name="litehit",
    help="Exact KV-cache prefix hit rates at any capacity, live from a Kafka topic of request events.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("publish")(publish.publish)
app.command("replay")(replay.replay)
app.command("query", cls=CapacitiesCommand)(query.query)
app.command("export")(export.export)
app.command("curve")(curve.curve)
app.command("verify")(verify.verify)
app.add_typer(registry.app, name="registry")
app.add_typer(lanes.app, name="lanes")
app.add_typer(dead_letters.app, name="dead-letters")
app.command("generate")(generate.generate)
app.command("schema")(schema.schema)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"litehit {version('litehit')}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    pass


def main() -> int:
    """Run the command line.

    Exit code 0: done; 1: the work failed, one line on stderr says why; 2: wrong usage; 130: interrupted.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except Exception as error:
        return _report(error)
    except SystemExit as end:
        if end.code == _INTERRUPTED:  # of which typer says nothing
            typer.echo("interrupted before the end", err=True)
        raise
    return 0


def _report(error: Exception) -> int:
    """Say in one line what the outside world has caused; the exit code. A bug keeps its traceback."""
    from confluent_kafka import KafkaException

    from litehit.errors import CapacityError, LiteHitError, OptionError
    from service.errors import PublishInterrupted

    if isinstance(error, MemoryError):
        text = f"out of memory ({error or 'no more could be had'}); give the process more, or ask for less at once"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, KafkaException):
        text = error.args[0].str()
    elif isinstance(error, LiteHitError | OSError):
        text = str(error)
    else:
        raise error
    typer.echo(f"error: {' '.join(text.split())}", err=True)
    if isinstance(error, PublishInterrupted):
        return _INTERRUPTED
    return _WRONG_USAGE if isinstance(error, OptionError | CapacityError) else _FAILED
