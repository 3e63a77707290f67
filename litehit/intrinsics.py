"""Two processor instructions that Numba has no function for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic


def _popcount(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = get_item_pointer(context, builder, signature.args[0], view, [args[1]])  # type: ignore[no-untyped-call]
        byte_pointer = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte_pointer,), ir.FunctionType(ir.VoidType(), (byte_pointer, word, word, word))
        )
        for_writing, keep, data_cache = word(1), word(3), word(1)
        builder.call(function, (builder.bitcast(pointer, byte_pointer), for_writing, keep, data_cache))
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


popcount: Any = intrinsic(_popcount)
"""`popcount(word)`: the number of set bits of a uint64."""

prefetch: Any = intrinsic(_prefetch)
"""`prefetch(array, index)`: ask for an element that will soon be written, without waiting for it."""
