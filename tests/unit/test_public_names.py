"""The names that programs may import from `litehit`; a change here is a change for its users."""

from __future__ import annotations

import subprocess
import sys

import pytest

import litehit

PUBLIC = {
    "INFINITE",
    "AggregateCurve",
    "FactBatch",
    "FlatCurves",
    "HitCurve",
    "HitCurveProjector",
    "InstanceConfig",
    "InstanceEngine",
    "LiteHit",
    "LiteHitError",
    "NormalizedBatch",
    "NormalizedRequest",
    "Registry",
    "Request",
    "RequestBatch",
    "RequestFact",
    "normalize_batch",
    "normalize_request",
}


def test_the_public_names() -> None:
    assert set(litehit.__all__) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_each_can_be_imported_and_is_listed(name: str) -> None:
    assert getattr(litehit, name) is not None
    assert name in dir(litehit)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        litehit.nothing  # noqa: B018


@pytest.mark.parametrize("package", ["litehit", "schemas"])
def test_the_layers(package: str) -> None:
    """`schemas` imports nothing of ours, `litehit` only `schemas`, and neither knows Kafka, HTTP or the service."""
    forbidden = {"service", "confluent_kafka", "fastapi", "uvicorn", "pydantic_settings"}
    forbidden |= {"litehit"} if package == "schemas" else set()
    code = (
        "import importlib, pkgutil, sys\n"
        f"package = importlib.import_module({package!r})\n"
        "for module in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        f"print(*sorted({forbidden!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.split() == []
