"""`litehit publish`: a trace file to the requests topic."""

from __future__ import annotations

from typing import Annotated

import typer

from litehit.counted import counted
from service.cli.options import (
    Bootstrap,
    Embedded,
    Instance,
    RegistryFile,
    Reorder,
    Store,
    Template,
    TraceArgument,
    TraceFormatName,
    broker_address,
    default_instance,
    embedded_address,
    load_settings,
    put_in_order,
    warn,
    warn_of_unit,
)
from service.format_names import AUTO


def publish(
    trace: TraceArgument,
    format_name: TraceFormatName = AUTO,
    instance: Instance = None,
    template: Template = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Send the records as they are, with their format in a header.")
    ] = False,
    binary: Annotated[
        bool,
        typer.Option("--binary", help="Send request events as protobuf messages: smaller, and faster to read."),
    ] = False,
    reorder: Reorder = None,
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
    """Send a trace to the requests topic, with a progress bar, or a line now and then where no terminal is."""
    from service.cli.progress import progress
    from service.publish_trace import publish_trace
    from service.publisher import Publisher, embedded_window_bytes
    from service.service_watch import ServiceWatch
    from service.trace_source import open_trace

    settings = load_settings(
        bootstrap=bootstrap, embedded=embedded, registry=registry, store=store, instance_template=template
    )
    if settings.embedded:
        found = embedded_address(settings)
        bootstrap_servers, window = found.bootstrap, embedded_window_bytes(found.most_facts)
        watch = None if found.http is None else ServiceWatch(found.http, warn)
    else:
        bootstrap_servers, window, watch = broker_address(settings), None, None
    default = default_instance(instance, settings)
    with (
        open_trace(trace, format_name, reorder, settings.instance_template, go_on=True, warn=warn) as opened,
        # A paced trace is read far ahead of what is sent, so that its bytes say nothing.
        progress("publishing", "records", limit or (opened.size if speed is None else None)) as meter,
    ):
        publisher = Publisher(settings, bootstrap_servers, window, None if watch is None else watch.look)
        try:
            published = publish_trace(
                opened.windows(),
                publisher,
                opened.trace_format,
                source=trace,
                topic_format=settings.requests_format,
                raw=raw,
                binary=binary,
                instance_id=default,
                named=settings.instance_template is not None,
                speed=speed,
                limit=limit,
                progress=lambda records: meter(records, opened.position() if limit is None else records),
                stop=opened.stop,
            )
        except KeyboardInterrupt:
            raise publisher.interrupted() from None
    typer.echo(f"published {counted(published.records, 'record')} to {settings.requests_topic}{put_in_order(opened)}")
    if published.unreadable:
        what = (
            f"1 of them is not of format {opened.trace_format.name} and will be a dead letter"
            if published.unreadable == 1
            else f"{published.unreadable} of them are not of format {opened.trace_format.name} and will be dead letters"
        )
        warn(f"{what}; the first: {published.first_problem}")
    warn_of_unit(published.first_ns, opened.trace_format)
