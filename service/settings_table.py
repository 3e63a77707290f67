"""The settings and the registry file's keys as Markdown tables, for the README: `python -m service.settings_table`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from schemas.registry import GroupEntry, InstanceEntry, VariantEntry
from service.settings import Settings

_ENTRIES: Mapping[str, type[BaseModel]] = {
    "groups": GroupEntry,
    "instances": InstanceEntry,
    "instances[].variants": VariantEntry,
}
"""Where in a registry file each kind of entry is listed."""


def settings_table() -> str:
    """One row a setting, in the model's order: variable, default, what it is."""
    rows = [
        f"| `LITEHIT_{name.upper()}` | {_default(field.get_default(call_default_factory=True))} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | what it is |", "|---|---|---|", *rows])


def registry_table() -> str:
    """One row a key of each entry, in the models' order: where it stands, default, what it is."""
    rows = [
        f"| `{place}[].{name}` | {_default_of(field)} | {field.description} |"
        for place, model in _ENTRIES.items()
        for name, field in model.model_fields.items()
    ]
    return "\n".join(["| key | default | what it is |", "|---|---|---|", *rows])


def _default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return "" if field.default == () else _default(field.default)


def _default(value: Any) -> str:
    if value is PydanticUndefined or value is None or value == {}:
        return ""
    if isinstance(value, bool):
        value = str(value).lower()
    return f"`{value.value if isinstance(value, Enum) else value}`"


if __name__ == "__main__":
    import typer

    typer.echo(f"{settings_table()}\n\n{registry_table()}")
