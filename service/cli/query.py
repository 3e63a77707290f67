"""`litehit query`: facts and capacities to hit rates."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from service.cli.capacities import Capacities
from service.cli.facts_store import open_facts_store
from service.cli.output import STANDARD
from service.cli.window import From, Instances, PartOfFacts, To

if TYPE_CHECKING:
    from litehit.facts import FactBatch

FACTS_HELP = "A facts CSV (.gz and .zst too; - is standard input), a Parquet segment, or a store."


def query(
    facts: Annotated[str, typer.Argument(metavar="FACTS", help=FACTS_HELP)],
    capacity_gb: Capacities,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write; - is standard output.")] = STANDARD,
    summary: Annotated[bool, typer.Option("--summary", help="Only the summaries, no line for each request.")] = False,
    from_: From = None,
    to: To = None,
    instance: Instances = None,
) -> None:
    """Write JSON Lines: one a request, then a summary of each instance, then the total, each with its ceiling."""
    from litehit.query import query as write_answers
    from service.cli.output import open_output

    part = PartOfFacts(from_, to, instance)
    with ExitStack() as opened, open_output(out) as sink:
        facts_asked = read_any(facts, opened, part)
        # A variant that is asked for by its id counts like an instance, as at the API.
        write_answers(facts_asked, capacity_gb, sink, requests=not summary, with_variants=bool(instance))
    part.tell_absent()


def read_any(facts: str, opened: ExitStack, part: PartOfFacts) -> Iterator[FactBatch]:
    """Facts of a CSV, of one Parquet segment, or of a whole store; files are closed with `opened`.

    What a store lacks is told on standard error.

    Raises:
        FactsError: the store holds none.
        typer.BadParameter: a time of the part is in another unit.
    """
    from litehit.facts_csv import read_facts
    from service.archive.reader import read_file

    path = Path(facts)
    if "://" in facts or path.is_dir():
        return part.of_store(open_facts_store(facts))
    if path.suffix == ".parquet":
        return part.of_file(batch.facts for batch in read_file(path))
    return part.of_file(read_facts(_open_csv(facts, opened), facts))


def _open_csv(facts: str, opened: ExitStack) -> BinaryIO:
    """A CSV, through gzip or zstd where its name ends so; `-` is standard input."""
    from service.trace_file import STANDARD_INPUT, unpacked

    if facts == STANDARD_INPUT:
        return opened.enter_context(open(sys.stdin.fileno(), "rb", closefd=False))
    path = Path(facts)
    return unpacked(opened.enter_context(path.open("rb")), path, opened)
