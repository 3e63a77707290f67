"""A picture of hit-rate curves."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from litehit.projector import HitCurveProjector
from service.cli.output import open_output
from service.errors import ExtraMissing

if TYPE_CHECKING:
    from service.api.curve_points import CurvePoints
    from service.api.hit_function import HitFunction

MARKED = (Fraction(9, 10), Fraction(95, 100), Fraction(99, 100))
"""Shares of the ceiling that are marked."""

_INCHES, _DOTS = (10.0, 6.0), 150


def require_matplotlib() -> None:
    """Check that pictures can be drawn.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise ExtraMissing("--png", "matplotlib", "png")


def draw(path: Path, curves: Sequence[tuple[str, HitFunction, CurvePoints]]) -> None:
    """Draw named curves over a logarithmic capacity, with their ceilings (dashed) and marks at `MARKED`, as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.subplots()
    handles, names = [], []
    for name, function, points in curves:
        gigabytes = [HitCurveProjector.gb_of_bytes(units * function.unit_bytes) for units in points.units.tolist()]
        rates = [100 * function.rate(tokens) for tokens in points.hits.tokens.tolist()]
        (line,) = axes.plot(gigabytes, rates, linewidth=2)
        axes.axhline(100 * function.ceiling_rate, color=line.get_color(), linestyle="--", linewidth=1)
        marked = [one for one in function.smallest([function.tokens_for_share(share) for share in MARKED]) if one]
        axes.plot(
            [HitCurveProjector.gb_of_bytes(capacity) for capacity in marked],
            [100 * function.rate(tokens) for tokens in function.hits(marked).tokens.tolist()],
            color=line.get_color(),
            marker="D",
            linestyle="none",
        )
        handles.append(line)
        names.append(f"{name}, ceiling {function.ceiling_rate:.2%}")
    axes.set(xscale="log", xlabel="capacity, GB", ylabel="hit rate, %", ylim=(0, None))
    axes.set_title("Hit rate by capacity; marks at 90, 95 and 99 % of the ceiling", loc="left")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(alpha=0.3)
    # A name is text: no mathematics between dollar signs, and one that starts with _ is not to be left out.
    legend = axes.legend(handles, [" " + name if name.startswith("_") else name for name in names])
    for text in legend.get_texts():
        text.set_parse_math(False)
    with open_output(path) as sink:
        figure.savefig(sink, format="png", dpi=_DOTS)
