"""The application: its commands, and what an error looks like from outside."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from service.cli import generate, publish, query, replay, schema, serve

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
app.command("query", cls=query.QueryCommand)(query.query)
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
    """Run the command line. Exit code 0: done; 1: the work failed, one line on stderr says why; 2: wrong usage."""
    try:
        app()
    except Exception as error:
        reason = _reason(error)
        if reason is None:
            raise  # a bug: its traceback is worth more than a sentence
        typer.echo(f"error: {reason}", err=True)
        return 1
    return 0


def _reason(error: Exception) -> str | None:
    """One line for an error that the outside world can cause; None for any other."""
    from confluent_kafka import KafkaException
    from obstore.exceptions import BaseError

    from litehit.errors import LiteHitError

    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, KafkaException):
        text = error.args[0].str()
    elif isinstance(error, LiteHitError | OSError | BaseError):
        text = str(error)
    else:
        return None
    return " ".join(text.split())
