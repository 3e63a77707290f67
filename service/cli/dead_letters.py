"""`litehit dead-letters`: what could not become a fact, listed and published again."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from litehit.counted import counted
from service.cli.options import Bootstrap, Embedded, Store, broker_address, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemas.dead_letter import Reason
    from service.dead_letter_reader import DeadLetter

app = typer.Typer(help="List the records that could not become facts, or publish them again.", no_args_is_help=True)

Reasons: TypeAlias = Annotated[
    list[str] | None, typer.Option("--reason", metavar="CODE", help="Only of this reason; may be repeated.")
]


@app.command("show")
def show(
    partition: Annotated[int | None, typer.Option(min=0, metavar="P", help="Only of this partition.")] = None,
    reason: Reasons = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="The newest N.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines, with keys, values and headers.")] = False,
    bootstrap: Bootstrap = None,
    embedded: Embedded = None,
    store: Store = None,
) -> None:
    """List the newest dead letters, oldest first, and count all of them by reason."""
    import heapq

    from service.dead_letter_reader import read_dead_letters
    from service.topic_reader import TopicReader
    from service.topics import find_topics

    settings = load_settings(bootstrap=bootstrap, embedded=embedded, store=store)
    wanted = parse_reasons(reason)
    address = broker_address(settings)
    partitions = range(find_topics(settings, address).partitions)
    if partition is not None and partition not in partitions:
        raise typer.BadParameter(f"{partition} is none of the {len(partitions)}", param_hint="--partition")
    counts: Counter[str] = Counter()
    with TopicReader(settings, address, settings.dead_letters_topic, settings.group_id) as reader:

        def matching() -> Iterator[DeadLetter]:
            for letter in read_dead_letters(reader, partitions if partition is None else [partition]):
                if letter is None:
                    counts["written by no lane"] += 1
                elif letter.said.reason in wanted:
                    counts[letter.said.reason.value] += 1
                    yield letter

        newest = heapq.nlargest(limit, matching(), key=_age)
    for letter in reversed(newest):
        typer.echo(json.dumps(document(letter)) if as_json else sentence(letter))
    typer.echo(f"{len(newest)} of {sum(counts.values())} dead letters{_by_reason(counts)}", err=as_json)


@app.command("replay")
def replay(
    reason: Reasons = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be published.")] = False,
    bootstrap: Bootstrap = None,
    embedded: Embedded = None,
    store: Store = None,
) -> None:
    """Publish dead letters to the requests topic again, each at most once, whatever is asked for later."""
    from service.dead_letter_replay import DeadLetterReplay
    from service.topics import find_topics

    settings = load_settings(bootstrap=bootstrap, embedded=embedded, store=store)
    wanted = parse_reasons(reason)
    address = broker_address(settings)
    replayed = DeadLetterReplay(settings, address, find_topics(settings, address).partitions).run(wanted, dry=dry_run)
    counts = Counter({code.value: count for code, count in replayed.published.items()})
    typer.echo(
        f"{'would publish' if dry_run else 'published'} {sum(counts.values())} dead letters to "
        f"{settings.requests_topic}{_by_reason(counts)}"
    )
    if replayed.cut:
        typer.echo(
            f"warning: {counted(replayed.cut, 'dead letter')} can't be published again, being cut; "
            f"raise LITEHIT_DEAD_LETTER_MAX_BYTES and the topic's max.message.bytes for those to come",
            err=True,
        )
    if replayed.foreign:
        typer.echo(f"warning: passed over {counted(replayed.foreign, 'record')} that no lane has written", err=True)


def parse_reasons(codes: list[str] | None) -> frozenset[Reason]:
    """The reasons of these codes; all where none is given."""
    from schemas.dead_letter import Reason

    known = [reason.value for reason in Reason]
    for code in codes or ():
        if code not in known:
            raise typer.BadParameter(f"{code!r} is no reason; give some of {', '.join(known)}", param_hint="--reason")
    return frozenset(map(Reason, codes or known))


def sentence(letter: DeadLetter) -> str:
    """A dead letter for a person: where it comes from, why, and how large it is."""
    record, said = letter.record, letter.said
    size = len(record.value or b"")
    cut = "" if said.truncated is None else f", cut from {said.truncated}"
    return f"{said.source} {said.reason.value}, key {_text(record.key)!r}, {counted(size, 'byte')}{cut}: {said.error}"


def document(letter: DeadLetter) -> dict[str, Any]:
    """A dead letter for a program; bytes that are no UTF-8 are escaped."""
    record, said = letter.record, letter.said
    return {
        "partition": record.partition,
        "offset": record.offset,
        "source": said.source,
        "reason": said.reason.value,
        "error": said.error,
        "truncated": said.truncated,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in letter.headers],
    }


def _age(letter: DeadLetter) -> tuple[int, int, int]:
    return letter.record.timestamp_ms or 0, letter.record.partition, letter.record.offset


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def _by_reason(counts: Counter[str]) -> str:
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
    return f": {told}" if told else ""
