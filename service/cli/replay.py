"""`litehit replay`: a trace file to facts, offline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from litehit.counted import counted
from service.cli.options import (
    FanoutAllInstances,
    Instance,
    OverrideInstance,
    RegistryFile,
    Reorder,
    Template,
    TraceArgument,
    TraceFormatName,
    check_naming,
    load_settings,
    put_in_order,
    warn,
    warn_of_unit,
)
from service.format_names import AUTO


def replay(
    trace: TraceArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for litehit_facts.csv.")],
    format_name: TraceFormatName = AUTO,
    registry: RegistryFile = None,
    instance: Instance = None,
    template: Template = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Threads; any number gives the same bytes. [default: all cores]")
    ] = None,
    fanout_all_instances: FanoutAllInstances = False,
    override_instance_id: OverrideInstance = None,
    reorder: Reorder = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N records.")] = None,
    repeats_window: Annotated[
        int | None,
        typer.Option(
            "--repeats-window",
            metavar="N",
            help="Ignore a request whose trace id is among the last N of its instance. [LITEHIT_REPEATS_WINDOW]",
        ),
    ] = None,
) -> None:
    """Replay a trace without Kafka and without the service: all or nothing."""
    from litehit.registry import Registry
    from litehit.replay import MAX_WORKERS, ReplayOptions
    from litehit.replay import replay as replay_windows
    from litehit.window import first_records
    from service.cli.progress import progress
    from service.formats.window_reader import window_reader
    from service.trace_source import open_trace

    settings = load_settings(
        registry=registry,
        instance_template=template,
        repeats_window=repeats_window,
        fanout_all_instances=fanout_all_instances or None,
        override_instance_id=override_instance_id,
    )
    if settings.registry is None:
        raise typer.BadParameter("is missing; give a registry file, or set LITEHIT_REGISTRY", param_hint="--registry")
    check_naming(instance, settings)
    if out.is_file():
        raise typer.BadParameter(f"{str(out)!r} is a file; give a folder", param_hint="--out")
    options = ReplayOptions(
        workers=min(os.cpu_count() or 1, MAX_WORKERS) if workers is None else workers,
        instance_id=instance,
        repeats_window=settings.repeats_window,
        routing=settings.routing,
    )
    known = Registry.load(settings.registry)
    with (
        open_trace(trace, format_name, reorder, settings.instance_template, warn=warn) as opened,
        progress("replaying", "lines", opened.size) as meter,
    ):
        summary = replay_windows(
            opened.windows() if limit is None else first_records(opened.windows(), limit),
            window_reader(opened.trace_format, options.default_instance(known)),
            known,
            out,
            source=trace,
            options=options,
            progress=lambda done: meter(done, opened.position()),
            stop=opened.stop,
        )
    ignored = f"; {summary.ignored} ignored (write events or repeats)" if summary.ignored else ""
    typer.echo(
        f"wrote {counted(summary.facts, 'fact')} of {counted(summary.requests, 'request')} to {summary.path}"
        f"{put_in_order(opened)}{ignored}"
    )
    warn_of_unit(summary.first_ns, opened.trace_format)
