"""How much one call may ask for."""

from __future__ import annotations

MAX_VALUES = 1000
"""Of a parameter that may be repeated."""

MAX_TARGETS = 100
"""Hit rates, or shares of the ceiling, to find capacities for."""

MIN_POINTS, MAX_POINTS = 2, 10_000
"""Of a curve."""

MAX_LINES = 10_000
"""Facts of a page."""
