"""Options of commands that take a part of the facts: a window of time, some instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from service.archive.reader import ArchiveReader, FactFilter

From: TypeAlias = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="First instant: RFC 3339, or integer nanoseconds since the epoch."),
]
To: TypeAlias = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="First instant past the end, written as --from.")
]
Instances: TypeAlias = Annotated[
    list[str] | None, typer.Option("--instance", metavar="ID", help="Of this instance; may be repeated. [all]")
]


def part_of_facts(from_: str | None, to: str | None, instances: Sequence[str] | None = None) -> FactFilter:
    """Which facts the options name.

    Raises:
        typer.BadParameter: a time is none, or the window is empty.
    """
    from service.archive.reader import FactFilter

    first, last = _time("--from", from_), _time("--to", to)
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter(
            f"{from_!r} is not before --to {to!r}; the window is half open, so give an earlier one", param_hint="--from"
        )
    return FactFilter(first, last, instances or None)


def refuse_other_units(from_: str | None, to: str | None, reader: ArchiveReader) -> None:
    """Check that integers are nanoseconds, by the facts of a store.

    Raises:
        typer.BadParameter: one looks like seconds or milliseconds.
    """
    from service.api.instants import check_unit

    earliest_ns = min(info.first_time_ns for info in reader.view.segments)
    for option, text in (("--from", from_), ("--to", to)):
        with _blamed_on(option, text):
            check_unit(text or "", earliest_ns)


def _time(option: str, text: str | None) -> int | None:
    from service.api.windows import parse_time

    if text is None:
        return None
    with _blamed_on(option, text):
        return parse_time(text)


@contextmanager
def _blamed_on(option: str, text: str | None) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}", param_hint=option) from None
