"""`litehit query`: facts and capacities to hit rates."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from service.cli.capacities import Capacities
from service.cli.facts_store import open_facts_store
from service.cli.options import warn
from service.cli.output import STANDARD
from service.cli.window import From, Instances, To, part_of_facts, refuse_other_units

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

    with ExitStack() as opened, open_output(out) as sink:
        batches = read_any(facts, opened, from_, to, instance)
        total = write_answers(batches, capacity_gb, sink, requests=not summary)
    if not total.requests and (from_ or to or instance):
        warn(f"no fact of {facts} is of that window and those instances")


def read_any(
    facts: str,
    opened: ExitStack,
    from_: str | None = None,
    to: str | None = None,
    instances: Sequence[str] | None = None,
) -> Iterator[FactBatch]:
    """The facts of a CSV, of one Parquet segment, or of a whole store; files are closed with `opened`.

    What a store lacks is told on standard error.

    Args:
        facts: name of the file or store.
        opened: closes the file.
        from_: first instant.
        to: first instant past the end.
        instances: of these; None: of all.

    Raises:
        FactsError: the store holds none.
        typer.BadParameter: a time is none.
    """
    from litehit.facts_csv import read_facts
    from service.archive.reader import read_file

    wanted = part_of_facts(from_, to, instances)
    path = Path(facts)
    if "://" in facts or path.is_dir():
        reader = open_facts_store(facts)
        refuse_other_units(from_, to, reader)
        return (batch.facts for batch in reader.batches(wanted))
    if path.suffix == ".parquet":
        return (batch.facts for batch in read_file(path, wanted))
    return map(wanted.of_batch, read_facts(_open_csv(facts, opened), facts))


def _open_csv(facts: str, opened: ExitStack) -> BinaryIO:
    """A CSV, through gzip or zstd where its name ends so; `-` is standard input."""
    if facts == "-":
        return opened.enter_context(open(sys.stdin.fileno(), "rb", closefd=False))
    path = Path(facts)
    raw = opened.enter_context(path.open("rb"))
    if not facts.endswith((".gz", ".zst")):
        return raw
    import pyarrow as pa

    stream = pa.CompressedInputStream(raw, "gzip" if facts.endswith(".gz") else "zstd")
    return cast("BinaryIO", opened.enter_context(stream))
