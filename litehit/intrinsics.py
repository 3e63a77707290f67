"""Processor instructions that Numba has no function for."""

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


def _trailing_zeros(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


def _load_word(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = get_item_pointer(context, builder, signature.args[0], view, [args[1]])  # type: ignore[no-untyped-call]
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(array, types.intp), generate


def _store_word(_typing: Any, array: Any, _index: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = get_item_pointer(context, builder, signature.args[0], view, [args[1]])  # type: ignore[no-untyped-call]
        builder.store(args[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


popcount: Any = intrinsic(_popcount)
"""`popcount(word)`: the number of set bits of a uint64."""

prefetch: Any = intrinsic(_prefetch)
"""`prefetch(array, index)`: ask for an element that will soon be written, without waiting for it."""

trailing_zeros: Any = intrinsic(_trailing_zeros)
"""`trailing_zeros(word)`: the number of clear bits of a uint64 below its lowest set one; 64 where none is set."""

load_word: Any = intrinsic(_load_word)
"""`load_word(array, index)`: the eight bytes of a uint8 array from an index on, the first in the lowest bits."""

store_word: Any = intrinsic(_store_word)
"""`store_word(array, index, word)`: the inverse of `load_word`: write the eight bytes of a uint64."""
