"""Bits of a word of 64, which Numba does not count."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from evaluator.engine.kernels.compiling import inlinable, instruction, overloads

# The highest bit of a word, which stands in where none is set.
LAST_BIT = np.uint64(1 << 63)


def count_bits(word: Any) -> Any:
    """Return how many bits of a word are set."""
    return int(word).bit_count()


def lowest_bit(word: Any) -> Any:
    """Return the place of the lowest bit that is set, in a word that is not empty."""
    return (int(word) & -int(word)).bit_length() - 1


@inlinable
def bits_below(word: Any, place: Any) -> Any:
    """Return how many bits of a word are set below a place of 0 to 63."""
    return count_bits(word & ((np.uint64(1) << np.uint64(place)) - np.uint64(1)))


@inlinable
def not_negative(index: Any) -> Any:
    """Return an index below 2^31 so that compiled code knows that it does not count from the end, and need not look."""
    return index & 0x7FFF_FFFF


@instruction
def _count(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@instruction
def _lowest(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


@overloads(count_bits)
def _compile_count_bits(word: Any) -> Any:
    return lambda word: _count(word)


@overloads(lowest_bit)
def _compile_lowest_bit(word: Any) -> Any:
    return lambda word: _lowest(word)
