"""`litehit lanes`: what an operator decides about lanes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from litehit.counted import counted
from service.cli.options import Bootstrap, Embedded, Store, broker_address, load_settings

if TYPE_CHECKING:
    from service.lanes.reset import ResetDone

app = typer.Typer(no_args_is_help=True, help="Decide where lanes go on.")


@app.callback()
def _lanes() -> None:
    pass


@app.command("reset")
def reset(
    partition: Annotated[
        list[str], typer.Option(metavar="P", help="Partition of the requests topic; may be repeated; all: every one.")
    ],
    to: Annotated[str, typer.Option(metavar="cold|earliest|snapshot", help="With what the lane goes on.")],
    yes: Annotated[bool, typer.Option("--yes", help="Agree that earliest gives facts again.")] = False,
    bootstrap: Bootstrap = None,
    embedded: Embedded = None,
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of sentences.")] = False,
) -> None:
    """Choose where a lane goes on that stopped because its caches can't be restored; it follows within seconds.

    cold: empty caches, at the committed offset. earliest: empty caches, from the first request that the topic still
    holds; facts are given again. snapshot: the newest snapshot's caches, at the committed offset; they lack what came
    since. The lane's other snapshots are deleted. A lane that works goes on as it is, and the choice lapses.
    """
    from service.archive.open_store import open_store
    from service.lanes.committed import Committed, RequestsTopic
    from service.lanes.reset import ResetTo, reset_lane
    from service.lanes.restore import Standing
    from service.lanes.snapshots import Snapshots
    from service.logs import configure_logs
    from service.topic_reader import TopicReader
    from service.topics import find_topics

    if to not in set(ResetTo):
        raise typer.BadParameter(f"{to!r} is none of {', '.join(ResetTo)}", param_hint="--to")
    chosen = ResetTo(to)
    if chosen is ResetTo.EARLIEST and not yes:
        raise typer.BadParameter(
            "earliest gives the facts of every request that the topic still holds again, beside those that are there "
            "already; say --yes if that is what you want",
            param_hint="--to",
        )
    settings = load_settings(bootstrap=bootstrap, embedded=embedded, store=store)
    configure_logs(settings)
    address = broker_address(settings)
    layout = find_topics(settings, address)
    partitions = _partitions(partition, layout.partitions)
    topic = RequestsTopic(settings.requests_topic, layout.requests_generation, layout.partitions)
    snapshots = Snapshots(open_store(settings.store), topic)
    done = []
    with TopicReader(settings, address, topic.name, settings.group_id) as reader:
        for number in partitions:
            bounds = reader.bounds(number)
            standing = Standing(Committed.read(*reader.committed(number)), bounds.low, bounds.stable)
            done.append(reset_lane(snapshots, number, chosen, settings.group_id, standing))
            if not as_json:
                typer.echo(_sentence(done[-1]))
    if as_json:
        typer.echo(json.dumps([_document(one) for one in done], indent=2))


def _partitions(texts: list[str], count: int) -> list[int]:
    if "all" in texts:
        return list(range(count))
    for text in texts:
        if not text.isdecimal() or int(text) >= count:
            raise typer.BadParameter(
                f"{text!r} is no partition; give 0 to {count - 1}, or all", param_hint="--partition"
            )
    return sorted({int(text) for text in texts})


def _sentence(done: ResetDone) -> str:
    snapshot = done.snapshot
    text = f"partition {snapshot.partition}: goes on at offset {snapshot.next_offset} with "
    text += "empty caches" if done.caches_end is None else f"caches up to offset {done.caches_end}"
    if done.unread:
        text += f"; {counted(done.unread, 'offset')} expired unread"
    if done.again:
        text += f"; the facts of {counted(done.again, 'offset')} are given again"
    return text


def _document(done: ResetDone) -> dict[str, Any]:
    return {
        "partition": done.snapshot.partition,
        "next_offset": done.snapshot.next_offset,
        "committed_offset": done.committed,
        "caches_end": done.caches_end,
        "unread": done.unread,
        "again": done.again,
        "path": done.snapshot.path,
    }
