"""`litehit publish`: a trace file to the requests topic."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.options import (
    Bootstrap,
    Embedded,
    Instance,
    RegistryFile,
    Store,
    broker_address,
    default_instance,
    load_settings,
)


def publish(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="JSON Lines, .gz and .zst too; - is standard input.")],
    format_name: Annotated[str, typer.Option("--format", metavar="F", help="native, tair or mooncake.")],
    instance: Instance = None,
    speed: Annotated[
        float | None,
        typer.Option(metavar="X", help="So many times as fast as the trace's times. [default: as fast as it goes]"),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="At most so many records.")] = None,
    bootstrap: Bootstrap = None,
    embedded: Embedded = None,
    registry: RegistryFile = None,
    store: Store = None,
) -> None:
    """Send a trace to the requests topic, with a progress bar."""
    from service import formats
    from service.cli.progress import progress
    from service.publish_trace import publish_trace
    from service.publisher import EMBEDDED_WINDOW_BYTES, Publisher
    from service.trace_file import TraceFile

    settings = load_settings(bootstrap=bootstrap, embedded=embedded, registry=registry, store=store)
    trace_format = formats.get(format_name)
    window = EMBEDDED_WINDOW_BYTES if settings.embedded else None
    with TraceFile(trace) as lines, progress("publishing", "records", lines.size) as meter:
        published = publish_trace(
            lines,
            Publisher(settings, broker_address(settings), window),
            trace_format,
            source=trace,
            instance_id=default_instance(instance, settings),
            speed=speed,
            limit=limit,
            progress=lambda records: meter(records, lines.position()),
        )
    typer.echo(f"published {published.records} records to {settings.requests_topic}")
    if published.unreadable:
        typer.echo(
            f"warning: {published.unreadable} of them are not of format {format_name} and will be dead letters; "
            f"the first: {published.first_problem}",
            err=True,
        )
