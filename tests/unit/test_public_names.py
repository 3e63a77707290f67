from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import litehit
from litehit import _HOMES, HitCurveProjector, LiteHit

PUBLIC = [
    "AggregateCurve",
    "FactBatch",
    "FlatCurves",
    "HitCurve",
    "HitCurveProjector",
    "INFINITE",
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
]


def test_the_public_names_are_these() -> None:
    assert sorted(litehit.__all__) == sorted(_HOMES) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(litehit, name) is getattr(import_module(_HOMES[name]), name)
    assert set(PUBLIC) <= set(dir(litehit))


def test_the_core_and_the_projector_have_these_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}

    assert methods(LiteHit) == {
        "advance_time",
        "clamped_requests",
        "current_unique_blocks",
        "from_state",
        "memory_usage_bytes",
        "process_batch",
        "process_request",
        "recency_order",
        "reset",
        "state",
    }
    assert methods(HitCurveProjector) == {
        "capacity_blocks",
        "capacity_bytes",
        "capacity_gb",
        "project_blocks",
        "project_blocks_batch",
        "project_bytes",
        "project_bytes_batch",
        "project_infinite",
        "project_infinite_batch",
        "segment_hits",
    }


def test_the_core_takes_no_capacity() -> None:
    for name in ("__init__", "process_request", "process_batch"):
        assert not any("capacity" in parameter for parameter in inspect.signature(getattr(LiteHit, name)).parameters)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LiteHot'"):
        litehit.LiteHot  # noqa: B018


def test_importing_the_package_loads_no_compiler() -> None:
    code = "import sys, litehit, litehit.errors; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
