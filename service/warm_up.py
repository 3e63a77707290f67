"""Compiles all that the service compiles, into Numba's cache, so that no process needs seconds for it at its start.

`python -m service.warm_up`, once a machine or image; without it the first process of each role does it.
"""

from __future__ import annotations

from litehit import curve_table, instance, point_kernels, summary_kernels
from service.formats import FORMATS
from service.formats.contents import Contexts


def warm_up() -> None:
    """What the engine, the formats and the answers need."""
    instance.warm_up()
    for one in FORMATS.values():
        one.parse_many([b"{}"], Contexts.of_lines(None, [0]))
    answers()


def answers() -> None:
    """What an index and the questions to it need."""
    curve_table.warm_up()
    point_kernels.warm_up()
    summary_kernels.warm_up()


if __name__ == "__main__":
    warm_up()
