"""The exact engine: no Kafka, no HTTP, no environment variables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litehit.aggregate import AggregateCurve
    from litehit.core import LiteHit
    from litehit.curves import FlatCurves
    from litehit.errors import LiteHitError
    from litehit.facts import FactBatch
    from litehit.instance import InstanceEngine
    from litehit.preprocess import NormalizedBatch, NormalizedRequest, normalize_batch, normalize_request
    from litehit.projector import INFINITE, HitCurveProjector
    from litehit.registry import InstanceConfig, Registry
    from litehit.request import Request, RequestBatch
    from schemas.fact import HitCurve, RequestFact

_HOMES = {
    "INFINITE": "litehit.projector",
    "AggregateCurve": "litehit.aggregate",
    "FactBatch": "litehit.facts",
    "FlatCurves": "litehit.curves",
    "HitCurve": "schemas.fact",
    "HitCurveProjector": "litehit.projector",
    "InstanceConfig": "litehit.registry",
    "InstanceEngine": "litehit.instance",
    "LiteHit": "litehit.core",
    "LiteHitError": "litehit.errors",
    "NormalizedBatch": "litehit.preprocess",
    "NormalizedRequest": "litehit.preprocess",
    "Registry": "litehit.registry",
    "Request": "litehit.request",
    "RequestBatch": "litehit.request",
    "RequestFact": "schemas.fact",
    "normalize_batch": "litehit.preprocess",
    "normalize_request": "litehit.preprocess",
}

__all__ = [
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
]


def __getattr__(name: str) -> object:
    # Numba takes most of a second to load; a program that wants an error class should not wait for it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
