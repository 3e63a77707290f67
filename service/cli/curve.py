"""`litehit curve`: facts to the whole hit-rate curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from service.api.limits import MAX_POINTS, MIN_POINTS
from service.cli.query import FACTS_HELP, read_any
from service.cli.window import From, Instances, PartOfFacts, To

if TYPE_CHECKING:
    from service.api.curve_points import CurvePoints
    from service.api.hit_function import HitFunction
    from service.api.selection import Selection

_TABLE_POINTS = 20
_PICTURE_POINTS = 1_000


class Row(NamedTuple):
    """One point of a curve; the names are the columns of the CSV."""

    instance_id: str  # empty for all together, which no instance's is
    capacity_gb: float
    capacity_bytes: int
    hit_blocks: int
    hit_tokens: int
    hit_rate: float
    of_ceiling: float


def curve(
    facts: Annotated[str, typer.Argument(metavar="FACTS", help=FACTS_HELP)],
    instance: Instances = None,
    from_: From = None,
    to: To = None,
    points: Annotated[
        int | None,
        typer.Option(
            "--points",
            metavar="N",
            min=MIN_POINTS,
            max=MAX_POINTS,
            help=f"Points of a curve at most, each exact. [default: {_TABLE_POINTS} in the table, "
            f"{_PICTURE_POINTS:,} in a picture, every breakpoint in CSV and JSON]",
        ),
    ] = None,
    block_bytes: Annotated[
        int | None,
        typer.Option("--block-bytes", metavar="B", min=1, help="Charge every block B bytes instead. [as recorded]"),
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw it, with the extra `png`.")] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write it as CSV; - is standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what the call /curve answers.")] = False,
) -> None:
    """Print the whole hit-rate curve: of each instance, and of all together where there are several."""
    if png is not None:
        from service.cli.picture import require_matplotlib

        require_matplotlib()  # before the facts, whose reading may take long
    from litehit.errors import FactsError
    from service.api.file_selection import select_facts
    from service.api.hit_function import HitFunction

    with ExitStack() as opened:
        selection = select_facts(read_any(facts, opened, PartOfFacts(from_, to)))
    _check_found(selection, instance or (), facts, in_window=bool(from_ or to))
    if instance:
        selection = selection.of_instances(instance)
    if as_json:
        _print_json(selection, instance or (), points, block_bytes)
    counted, _ = selection.split(instance or ())
    functions = {
        instance_id: HitFunction(selection.of_instances([instance_id]).groups, block_bytes)
        for instance_id in selection.keyed.of_instance
    }
    if len(counted.keyed.of_instance) > 1:
        functions[""] = HitFunction(counted.groups, block_bytes)
    if csv is not None:
        _write_csv(csv, (row for name, one in functions.items() for row in _rows(name, one, points)))
    if png is not None:
        from service.cli.picture import draw

        hitting = {name: one for name, one in functions.items() if one.ceiling_tokens}
        if not hitting:
            raise FactsError(f"{facts}: no block is hit at any capacity, so there is no curve to draw")
        drawn = [(_name(name), one, _points(one, points or _PICTURE_POINTS)) for name, one in hitting.items()]
        draw(png, drawn)
    if csv is None and png is None and not as_json:
        for name, one in functions.items():
            _print_table(_name(name), one, points or _TABLE_POINTS)


def _name(instance_id: str) -> str:
    return instance_id or "all instances"


def _points(function: HitFunction, count: int | None) -> CurvePoints:
    from service.api.curve_points import chosen_points, every_breakpoint

    return every_breakpoint(function) if count is None else chosen_points(function, count)


def _rows(name: str, function: HitFunction, count: int | None) -> Iterator[Row]:
    from litehit.projector import HitCurveProjector

    points = _points(function, count)
    for units, blocks, tokens in zip(
        points.units.tolist(), points.hits.blocks.tolist(), points.hits.tokens.tolist(), strict=True
    ):
        capacity = units * function.unit_bytes
        gigabytes = HitCurveProjector.gb_of_bytes(capacity)
        yield Row(name, gigabytes, capacity, blocks, tokens, function.rate(tokens), function.share(tokens))


def _print_table(name: str, function: HitFunction, count: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, table = Console(), Table()
    noun = "request" if function.requests == 1 else "requests"
    title = Text(f"{name}: {function.requests:,} {noun}, ceiling {function.ceiling_rate:.2%}")
    console.print(title, soft_wrap=True)
    if not function.ceiling_tokens:
        console.print("no block is hit at any capacity")
        return
    for heading in ("capacity GB", "hit rate", "of the ceiling"):
        table.add_column(heading, justify="right")
    for row in _rows(name, function, count):
        table.add_row(f"{row.capacity_gb:,.6g}", f"{row.hit_rate:.2%}", f"{row.of_ceiling:.2%}")
    console.print(table)


def _print_json(selection: Selection, asked: Sequence[str], count: int | None, block_bytes: int | None) -> None:
    import sys

    from service.api.answering import About
    from service.api.as_of import AsOfAnswer
    from service.api.curve import curve_document
    from service.api.windows import TimeWindow

    about = About(TimeWindow(), AsOfAnswer.of([]))
    for part in curve_document(selection, asked, about, lambda function: _points(function, count), block_bytes):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.write(b"\n")


def _write_csv(path: Path, rows: Iterator[Row]) -> None:
    import codecs
    import csv

    from service.cli.output import open_output

    with open_output(path) as sink:
        writer = csv.writer(codecs.getwriter("utf-8")(sink), lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(rows)


def _check_found(selection: Selection, instance_ids: Sequence[str], facts: str, *, in_window: bool) -> None:
    """Raise FactsError where there is nothing to draw a curve of."""
    from litehit.errors import FactsError

    if not len(selection.keyed):
        raise FactsError(f"{facts}: there are no facts in it{', in that window' if in_window else ''}")
    absent = [one for one in instance_ids if one not in selection.keyed.of_instance]
    if absent:
        raise FactsError(
            f"{facts}: no fact{' in that window' if in_window else ''} has instance_id {', '.join(map(repr, absent))}; "
            f"give one of {', '.join(map(repr, selection.keyed.of_instance))}"
        )
