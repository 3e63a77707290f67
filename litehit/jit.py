"""How the engine's kernels are compiled: without the interpreter's lock, and cached between runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


_DIGEST = _sources_digest()


def kernel(
    inline: Literal["never", "always"] = "never", *, allocates: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function to be compiled at its first call.

    One that Python calls fills arrays that it is given and returns at most a number: Numba makes the objects of arrays
    and tuples by code of Python's, in which an interrupt may raise, and then goes on without them and dies.

    Numba's cache looks only at the file of the function itself, yet compiled code holds the callees of other files too:
    after a change to one of them a stale kernel would go on with the old half of a data structure. So the cache's
    stamp also covers every source of this package.

    Args:
        inline: as Numba takes it.
        allocates: the function makes an array, or calls one that does. Only then are references to arrays counted: each
            call of a kernel counts those of all its arrays, up and down by locked instructions, which for a request of
            few blocks costs more than its blocks.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        dispatcher: Any = cast("Any", njit)(cache=True, nogil=True, inline=inline, _nrt=allocates)(function)
        index = dispatcher._cache._cache_file  # pinned by a test
        index._source_stamp = (index._source_stamp, _DIGEST)
        return cast("Callable[P, R]", dispatcher)

    return decorate


def interpreted(kernel: Callable[P, R]) -> Callable[P, R]:
    """The same function as Python runs it, for arrays of Python's integers where 64 bits may not do."""
    return cast("Callable[P, R]", cast("Any", kernel).py_func)
