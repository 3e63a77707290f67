"""`litehit export`: segments to a file that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from litehit.counted import counted
from service.cli.facts_store import open_facts_store
from service.cli.options import Store, load_settings
from service.cli.output import STANDARD
from service.cli.window import From, Instances, PartOfFacts, To

_FORMATS = ("csv",)


def export(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write; - is standard output.")],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"What to write: {', '.join(_FORMATS)}.")
    ] = "csv",
    from_: From = None,
    to: To = None,
    instance: Instances = None,
    store: Store = None,
) -> None:
    """Write the facts of the store's segments as a facts CSV, in their order; the file appears whole or not at all."""
    from litehit.facts_csv import write_header, write_rows
    from service.cli.output import open_output

    if format_name not in _FORMATS:
        raise typer.BadParameter(f"{format_name!r} is no format; give {', '.join(_FORMATS)}", param_hint="--format")
    part = PartOfFacts(from_, to, instance)
    facts = part.of_store(open_facts_store(load_settings(store=store).store))
    count = 0
    with open_output(out) as sink:
        write_header(sink)
        for rows in facts:
            write_rows(sink, rows)
            count += len(rows)
    part.tell_absent()
    typer.echo(f"wrote {counted(count, 'fact')} to {'standard output' if out == STANDARD else out}", err=True)
