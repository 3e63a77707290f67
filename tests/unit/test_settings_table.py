"""The README's table of settings is the model's."""

from __future__ import annotations

from pathlib import Path

from service.settings import Settings
from service.settings_table import settings_table

README = Path(__file__).parents[2] / "README.md"


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_readme_is_in_step() -> None:
    assert settings_table() in README.read_text(encoding="utf-8"), "run: python -m service.settings_table"
