"""Arrays on memory of their own that grow in place.

The engine's arrays reach hundreds of megabytes. Growing them by copies touches fresh memory again and again, which can
cost more than all the look-ups; here the system moves their pages instead, and is asked for huge ones. Where it can't
move pages, arrays grow by a copy.
"""

from __future__ import annotations

import gc
import mmap
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

_HUGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux; its mremap is what moves the pages


class MappedArray(Generic[Scalar]):
    """A one-dimensional array whose new elements are zero.

    Attributes:
        array: the elements. It is another object after each `resize`; whoever keeps an older one, or a view of it,
            makes `resize` fail (BufferError) rather than see freed memory.
    """

    def __init__(self, dtype: type[Scalar], size: int = 0) -> None:
        self._dtype = np.dtype(dtype)
        self._memory: mmap.mmap | None = None
        self.array: NDArray[Scalar] = np.zeros(0, self._dtype)
        self.resize(size)

    @classmethod
    def copy_of(cls, source: NDArray[Scalar]) -> Self:
        """A copy of a one-dimensional array: quicker than NumPy's own where huge pages are to be had."""
        copy = cls(source.dtype.type, len(source))
        copy.array[:] = source
        return copy

    def resize(self, size: int) -> None:
        """Grow or shrink to `size` elements, keeping those that stand in both."""
        if _HUGE_PAGES is None:
            grown = np.zeros(size, self._dtype)
            kept = min(size, len(self.array))
            grown[:kept] = self.array[:kept]
            self.array = grown
            return
        length = max(1, size * self._dtype.itemsize)
        kept = min(size, len(self.array))
        self.array = np.zeros(0, self._dtype)  # the mapping can't move while an array looks at it
        if self._memory is None:
            self._memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            self._move(self._memory, length)
        self._memory.madvise(_HUGE_PAGES)
        self.array = np.frombuffer(self._memory, self._dtype, size)
        # A mapping that shrank inside a page, or grew again into one, still holds what stood there.
        self.array[kept : kept + mmap.PAGESIZE // self._dtype.itemsize + 1] = self._dtype.type(0)

    @staticmethod
    def _move(memory: mmap.mmap, length: int) -> None:
        try:
            memory.resize(length)
        except BufferError:
            # An array that nobody can reach any more may be waiting for the collector: in a frame, say, that was kept
            # by the traceback of an exception which the compiler met and handled.
            gc.collect()
            memory.resize(length)
