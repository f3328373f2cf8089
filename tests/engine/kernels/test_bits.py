"""Bits of a word, compiled as interpreted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit

from evaluator.engine.kernels.intrinsics import bits_below, count_bits, lowest_bit

WORDS = np.array([1, 2, 3, 1 << 63, (1 << 64) - 1, 0b1011 << 40, 0x8000000000000001], np.uint64)


@njit
def _counted(words: npt.NDArray[np.uint64], place: int, out: npt.NDArray[np.int64]) -> None:
    for i in range(len(words)):
        out[i] = count_bits(words[i]), lowest_bit(words[i]), bits_below(words[i], place)


@pytest.mark.parametrize("place", [0, 1, 41, 63])
def test_bits_are_those_of_the_number_written_out(place: int) -> None:
    compiled, interpreted = np.zeros((2, len(WORDS), 3), np.int64)
    _counted(WORDS, place, compiled)
    _counted.py_func(WORDS, place, interpreted)
    digits = [f"{int(word):064b}"[::-1] for word in WORDS]
    expected = [[d.count("1"), d.index("1"), d[:place].count("1")] for d in digits]
    assert compiled.tolist() == interpreted.tolist() == expected
