"""What is written as text comes back the same to the bit, of classes that are expected alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from evaluator.jobs.run_jobs import as_text, from_text


class Pair(NamedTuple):
    """Two of anything."""

    first: object
    second: object


def test_values_come_back_with_their_types() -> None:
    array = np.array([[0.1, math.nan], [-0.0, math.inf]])
    value = Pair(
        (1, 0.1 + 0.2, "a\x00b", None, True, ()), Pair(np.float64(1) / 3, (array, np.arange(3, dtype=np.int32)))
    )
    back = from_text(as_text(value), [Pair])
    assert back.first == value.first
    third, (same, counts) = back.second
    assert type(third) is np.float64
    assert third == np.float64(1) / 3
    assert same.tobytes() == array.tobytes()
    assert same.shape == (2, 2)
    assert counts.dtype == np.int32
    assert math.isnan(from_text(as_text(math.nan), []))
    named = {"scale": 0.1 + 0.2, "array": (1, "array"), 3: {}}
    assert from_text(as_text((named,)), []) == (named,)
    assert list(from_text(as_text(named), [])) == list(named)


def test_nothing_else_is_made() -> None:
    with pytest.raises(ValueError, match="no Pair is expected here"):
        from_text(as_text(Pair(1, 2)), [])
    with pytest.raises(TypeError, match="a set cannot be written as text"):
        as_text({1})
