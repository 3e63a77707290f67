"""Variants: further analyses of an instance's requests, each with an instance id of its own."""

from __future__ import annotations

import re

from schemas.registry import VARIANT_NAME

_ID = re.compile(rf"(?P<base>.+)@{VARIANT_NAME}", re.DOTALL)


def variant_id(instance_id: str, name: str) -> str:
    """The instance id of a variant."""
    return f"{instance_id}@{name}"


def base_of(instance_id: str) -> str | None:
    """The instance that an id would be a variant of; None where it does not look like a variant's."""
    match = _ID.fullmatch(instance_id)
    return None if match is None else match["base"]
