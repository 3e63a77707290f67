"""`litehit query`: facts and capacities to hit rates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.capacities import Capacities
from service.cli.facts_store import open_facts_store
from service.cli.output import STANDARD

if TYPE_CHECKING:
    from litehit.facts import FactBatch


def query(
    facts: Annotated[str, typer.Argument(metavar="FACTS", help="A facts CSV, a Parquet segment, or a store.")],
    capacity_gb: Capacities,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write; - is standard output.")] = STANDARD,
    summary: Annotated[bool, typer.Option("--summary", help="Only the summaries, no line for each request.")] = False,
) -> None:
    """Write JSON Lines: one a request, then a summary of each instance, then the total, each with its ceiling."""
    from litehit.query import query as write_answers
    from service.cli.output import open_output

    with ExitStack() as opened, open_output(out) as sink:
        write_answers(read_any(facts, opened), capacity_gb, sink, requests=not summary)


def read_any(facts: str, opened: ExitStack) -> Iterator[FactBatch]:
    """The facts of a CSV, of one Parquet segment, or of a whole store; files are closed with `opened`.

    What a store lacks is told on standard error.

    Raises:
        FactsError: the store holds none.
    """
    from litehit.facts_csv import read_facts
    from service.archive.reader import read_file

    path = Path(facts)
    if "://" in facts or path.is_dir():
        return (batch.facts for batch in open_facts_store(facts).batches())
    if path.suffix == ".parquet":
        return (batch.facts for batch in read_file(path))
    return read_facts(opened.enter_context(path.open("rb")), facts)
