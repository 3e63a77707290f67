"""`litehit export`: segments to a file that other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.facts_store import open_facts_store
from service.cli.options import Store, load_settings

if TYPE_CHECKING:
    from service.archive.reader import FactFilter

_FORMATS = ("csv",)


def export(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write; - is standard output.")],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"What to write: {', '.join(_FORMATS)}.")
    ] = "csv",
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="First instant: RFC 3339, or integer nanoseconds since the epoch."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="First instant past the end, written as --from.")
    ] = None,
    instance: Annotated[
        list[str] | None, typer.Option("--instance", metavar="ID", help="Of this instance; may be repeated. [all]")
    ] = None,
    store: Store = None,
) -> None:
    """Write the facts of the store's segments as a facts CSV, in their order; the file appears whole or not at all."""
    from litehit.facts_csv import write_header, write_rows
    from service.cli.output import open_output

    if format_name not in _FORMATS:
        raise typer.BadParameter(f"{format_name!r} is no format; give {', '.join(_FORMATS)}", param_hint="--format")
    wanted = _filter(from_, to, instance)
    reader = open_facts_store(load_settings(store=store).store)
    earliest_ns = min(info.first_time_ns for info in reader.view.segments)
    for option, text in (("--from", from_), ("--to", to)):
        _refuse_other_units(option, text, earliest_ns)
    found: set[str] = set()
    with open_output(out) as sink:
        write_header(sink)
        for rows in reader.batches(wanted):
            write_rows(sink, rows.facts)
            found.update(rows.facts.instance_ids)
    for absent in sorted(set(instance or ()) - found):
        typer.echo(f"warning: no fact of instance {absent!r} was found", err=True)


def _filter(from_: str | None, to: str | None, instance: list[str] | None) -> FactFilter:
    from service.archive.reader import FactFilter

    first, last = _time("--from", from_), _time("--to", to)
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter(
            f"{from_!r} is not before --to {to!r}; the window is half open, so give an earlier one", param_hint="--from"
        )
    return FactFilter(first, last, instance or None)


def _time(option: str, text: str | None) -> int | None:
    from service.api.windows import parse_time

    if text is None:
        return None
    with _blamed_on(option, text):
        return parse_time(text)


def _refuse_other_units(option: str, text: str | None, earliest_ns: int) -> None:
    from service.api.instants import check_unit

    with _blamed_on(option, text):
        check_unit(text or "", earliest_ns)


@contextmanager
def _blamed_on(option: str, text: str | None) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}", param_hint=option) from None
