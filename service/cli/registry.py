"""`litehit registry`: what a registry file says, before anything runs by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from litehit.counted import counted
from service.cli.options import Store, load_settings

if TYPE_CHECKING:
    from service.registry_check import Resolved
    from service.registry_comparison import Compared

app = typer.Typer(no_args_is_help=True, help="Look at registry files.")


@app.callback()
def _registry() -> None:
    pass


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Registry file (YAML).")],
    instance: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="Show what an id resolves to, and why; may be repeated."),
    ] = None,
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Check a registry file, show what it registers, and warn of what is legal but hardly meant.

    With --store it is compared with the newest snapshots there: what a restart would apply to later facts, and what it
    would refuse since caches depend on it. Then the exit code is 1.
    """
    from litehit.registry import Registry
    from litehit.registry_yaml import read_document
    from schemas.registry import RegistryFile
    from service.archive.open_store import open_store
    from service.errors import RegistryNotApplicable
    from service.registry_check import describe, resolve, warnings
    from service.registry_comparison import compare_with_store

    registry, entries = Registry.load(file), read_document(file).validate(RegistryFile)
    resolved = [resolve(registry, one) for one in instance or ()]
    warned = list(warnings(entries, registry))
    compared: list[Compared] | None = None
    settings = load_settings(store=store)
    if "store" in settings.model_fields_set:  # by the option or the variable, not by default
        compared = compare_with_store(registry, open_store(settings.store, for_writing=False), settings.requests_topic)
    if as_json:
        document = {
            "instances": [describe(config) for config in registry.configs],
            "resolved": [describe(one.config) | {"why": one.why} for one in resolved],
            "warnings": warned,
            "snapshots": None if compared is None else [_document(one) for one in compared],
        }
        typer.echo(json.dumps(document, indent=2))
    else:
        _print_table([describe(config) for config in registry.configs])
        for one in resolved:
            typer.echo(_sentence(one))
        for warning in warned:
            typer.echo(f"warning: {warning}")
        for line in () if compared is None else _comparison(compared):
            typer.echo(line)
    changed = [one.path for one in compared or () if one.is_changed]
    lacking = [one.path for one in compared or () if one.lacking]
    if changed or lacking:
        raise RegistryNotApplicable(str(file), changed, lacking)


def _print_table(described: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    headings = {
        "instance_id": "instance",
        "group": "group",
        "block_size_tokens": "tokens",
        "trace_block_size_tokens": "of trace",
        "block_bytes": "bytes",
        "enable_prefix_hash": "chained",
        "ttl_seconds": "TTL s",
        "capacity_gb": "slots GB",
    }
    for name, heading in headings.items():
        table.add_column(heading, justify="left" if name in {"instance_id", "group"} else "right", overflow="fold")
    for config in described:
        table.add_row(*(Text(_shown(config[name])) for name in headings))
    Console().print(table)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join("infinite" if each < 0 else f"{each:g}" for each in value)
    return str(value)


def _sentence(resolved: Resolved) -> str:
    config = resolved.config
    return (
        f"{config.instance_id}: {resolved.why}: group {config.group}, blocks of "
        f"{counted(config.block_size_tokens, 'token')} and {counted(config.block_bytes, 'byte')}"
    )


def _comparison(compared: list[Compared]) -> list[str]:
    if not compared:
        return ["the store has no snapshots to compare with"]
    lines = []
    for one in compared:
        lines += [f"{one.path}: {'refused' if change.is_core else 'applied'}: {change}" for change in one.changes]
        lines += [f"{one.path}: {name} is registered no more: its requests would be refused" for name in one.forgotten]
        lines += [f"{one.path}: refused: {name} has no cache there and would begin cold" for name in one.lacking]
        if not one.changes and not one.forgotten and not one.lacking:
            lines.append(f"{one.path}: nothing changes")
    return lines


def _document(one: Compared) -> dict[str, Any]:
    return {
        "path": one.path,
        "refused": one.is_changed or bool(one.lacking),
        "changes": [
            {
                "instance_id": change.instance_id,
                "setting": change.name,
                "before": change.before,
                "after": change.after,
                "applied": not change.is_core,
            }
            for change in one.changes
        ],
        "forgotten": list(one.forgotten),
        "lacking": list(one.lacking),
    }
