"""Options of commands that take a part of the facts: a window of time, some instances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from service.cli.options import warn, warn_of_other_unit

if TYPE_CHECKING:
    from litehit.facts import FactBatch
    from service.archive.reader import ArchiveReader

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


class PartOfFacts:
    """The facts that options ask for, and what is to be told of those that are not there.

    Args:
        from_, to: first instant, and first past the end; None = open.
        instances: of these; none: of all.

    Raises:
        typer.BadParameter: a time is none, or the window is empty.
    """

    def __init__(self, from_: str | None = None, to: str | None = None, instances: Sequence[str] | None = None) -> None:
        from service.archive.reader import FactFilter

        first, last = _time("--from", from_), _time("--to", to)
        if first is not None and last is not None and first >= last:
            raise typer.BadParameter(
                f"{from_!r} is not before --to {to!r}; the window is half open, so give an earlier one",
                param_hint="--from",
            )
        self.filter = FactFilter(first, last, instances or None)
        self._asked = {"--from": from_, "--to": to}
        self._absent = set(instances or ())
        self._any = False

    def of_store(self, reader: ArchiveReader) -> Iterator[FactBatch]:
        """Those of a store's facts. Errors are those of a bound in another unit, at once."""
        self._begins_at(min(info.first_time_ns for info in reader.view.segments))
        return self._noted(batch.facts for batch in reader.batches(self.filter))

    def of_file(self, batches: Iterable[FactBatch]) -> Iterator[FactBatch]:
        """Those of a file's facts, whose first ones are taken for the earliest."""
        return self._noted(self._chosen(batches))

    def tell_absent(self) -> None:
        """Warn of each instance without a fact, or of a window without any."""
        where = " in that window" if any(self._asked.values()) else ""
        for instance_id in sorted(self._absent):
            warn(f"no fact of instance {instance_id!r} was found{where}")
        if where and not self._any and not self.filter.instance_ids:
            warn("no fact was found in that window")

    def _begins_at(self, earliest_ns: int) -> None:
        """Check that integers are nanoseconds, by the time of the earliest fact.

        Raises:
            typer.BadParameter: one looks like seconds or milliseconds.
        """
        from service.api.instants import check_unit

        for option, text in self._asked.items():
            with _blamed_on(option, text):
                check_unit(text or "", earliest_ns)
            # Where facts are as early, one may still be meant otherwise.
            if text and text.isdecimal():
                warn_of_other_unit(int(text), option)

    def _chosen(self, batches: Iterable[FactBatch]) -> Iterator[FactBatch]:
        for place, batch in enumerate(batches):
            if not place and len(batch):
                self._begins_at(int(batch.timestamps_ns.min()))
            yield self.filter.of_batch(batch)

    def _noted(self, batches: Iterable[FactBatch]) -> Iterator[FactBatch]:
        """The same facts; whose they are is noted."""
        for batch in batches:
            self._any |= len(batch) > 0
            self._absent -= set(batch.instance_ids)
            yield batch


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
