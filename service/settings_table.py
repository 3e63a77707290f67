"""The settings as a Markdown table, for the README: `python -m service.settings_table`."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pydantic_core import PydanticUndefined

from service.settings import Settings


def settings_table() -> str:
    """One row a setting, in the model's order: variable, default, what it is."""
    rows = [
        f"| `LITEHIT_{name.upper()}` | {_default(field.get_default(call_default_factory=True))} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | what it is |", "|---|---|---|", *rows])


def _default(value: Any) -> str:
    if value is PydanticUndefined or value is None or value == {}:
        return ""
    if isinstance(value, bool):
        value = str(value).lower()
    return f"`{value.value if isinstance(value, Enum) else value}`"


if __name__ == "__main__":
    import typer

    typer.echo(settings_table())
