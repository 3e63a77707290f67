"""`litehit verify`: the audit of a deployment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from litehit.counted import counted
from service.cli.options import Bootstrap, Embedded, RegistryFile, Store, broker_address, load_settings

if TYPE_CHECKING:
    from service.verify.deployment import PartitionReport


def verify(
    bootstrap: Bootstrap = None,
    embedded: Embedded = None,
    registry: RegistryFile = None,
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of sentences.")] = False,
) -> None:
    """Recompute all facts and dead letters; hold topics and segments against them, byte for byte."""
    from litehit.registry import Registry
    from service.archive.errors import SegmentError
    from service.cli.progress import progress
    from service.errors import Difference
    from service.topics import find_topics
    from service.verify.deployment import Verification

    settings = load_settings(bootstrap=bootstrap, embedded=embedded, registry=registry, store=store)
    if settings.registry is None:
        raise typer.BadParameter("is missing; give the lanes' own registry file", param_hint="--registry")
    known = Registry.load(settings.registry)
    address = broker_address(settings)
    reports: list[PartitionReport] = []
    done = 0
    try:
        with (
            Verification(settings, address, find_topics(settings, address), known) as verification,
            progress("verifying", "requests", verification.requests) as meter,
        ):

            def count(records: int) -> None:
                nonlocal done
                done += records
                meter(done, done)

            for report in verification.partitions(count):
                reports.append(report)
                if not as_json:
                    typer.echo("\n".join(sentences(report)))
    except (Difference, SegmentError) as error:
        if as_json:
            typer.echo(json.dumps(document(reports, str(error)), indent=2))
        raise
    if as_json:
        typer.echo(json.dumps(document(reports, None), indent=2))
    else:
        typer.echo("no difference")


def sentences(report: PartitionReport) -> list[str]:
    """A partition's ledger, what was compared, and what could not be."""
    audited, counts = report.audited, report.audited.counts
    dead_letters, ignored = sum(counts.dead_letters.values()), sum(counts.ignored.values())
    return [
        f"partition {report.partition}: requests {report.start} to {report.consumed}: {counts.consumed} consumed = "
        f"{counts.facts} with facts + {counted(dead_letters, 'dead letter')} + {ignored} ignored; "
        f"the same, byte for byte: {counted(audited.facts, 'fact')} on the topic, {audited.rows} in "
        f"{counted(report.segments, 'segment')}, {counted(audited.dead_letters, 'dead letter')}",
        *(f"partition {report.partition}: not checked: {sentence}" for sentence in report.unchecked),
    ]


def document(reports: list[PartitionReport], difference: str | None) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "difference": difference,
        "partitions": [
            {
                "partition": report.partition,
                "start": report.start,
                "consumed_offset": report.consumed,
                "consumed": report.audited.counts.consumed,
                "facts": report.audited.counts.facts,
                "fact_records": report.audited.counts.fact_records,
                "dead_letters": {
                    reason.value: count for reason, count in sorted(report.audited.counts.dead_letters.items())
                },
                "ignored": {kind.value: count for kind, count in sorted(report.audited.counts.ignored.items())},
                "checked": {
                    "facts": report.audited.facts,
                    "rows": report.audited.rows,
                    "segments": report.segments,
                    "dead_letters": report.audited.dead_letters,
                },
                "unchecked": list(report.unchecked),
            }
            for report in reports
        ],
    }
