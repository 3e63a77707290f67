"""The README's tables of settings and of the registry's keys are the models'."""

from __future__ import annotations

from pathlib import Path

from service.settings import Settings
from service.settings_table import registry_table, settings_table

README = Path(__file__).parents[2] / "README.md"


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_readme_is_in_step() -> None:
    text = README.read_text(encoding="utf-8")
    for table in (settings_table(), registry_table()):
        assert table in text, "run: python -m service.settings_table"


def test_every_key_of_the_registry_is_described() -> None:
    rows = registry_table().splitlines()[2:]
    assert len(rows) > 15
    assert all(row.split("|")[3].strip() not in {"", "None"} for row in rows)
