"""A store that a command reads facts from: what it lacks is told, whatever the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from litehit.counted import counted

if TYPE_CHECKING:
    from service.archive.reader import ArchiveReader


def open_facts_store(url: str) -> ArchiveReader:
    """The facts of a store. What was removed or is missing is told on standard error.

    Raises:
        FactsError: it holds none.
        StoreError: it can't be read.
    """
    from litehit.errors import FactsError
    from service.archive.reader import ArchiveReader

    store = ArchiveReader(url)
    for chain in store.view.chains.values():
        if chain.expired:
            typer.echo(
                f"note: {chain.key} begins at offset {chain.start_offset}: retention has removed "
                f"{counted(chain.expired_facts, 'fact')} before it",
                err=True,
            )
        for gap in chain.gaps:
            typer.echo(
                f"note: {chain.key} lacks offsets {gap.base_offset} to {gap.end_offset}: they expired before they "
                f"were archived",
                err=True,
            )
    for fault in store.view.faults:
        typer.echo(f"warning: {fault}", err=True)
    if not store.view.segments:
        raise FactsError(
            f"{url}: the store holds no facts: it has no segment below facts/. A running "
            f"archive writes one every LITEHIT_SEGMENT_SECONDS, and at its end"
        )
    return store
