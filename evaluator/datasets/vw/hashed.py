"""Vectors of actions that have whatever features: hashed, with their products with the features of the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from evaluator.datasets.vw.decisions import Decision, Value
from evaluator.log.encoder import token_slot

# Tokens are few: names of features and their words.
_slot = lru_cache(1 << 18)(token_slot)


def hashed_vectors(decision: Decision, width: int) -> npt.NDArray[np.float64]:
    """Return a vector for each action, shape (actions, width), of length 1, or 0 without features.

    A word w of feature f is the token ``f=w`` with value 1, a number the token ``f=`` with its value; the product of a
    feature s of the decision and one of the action is the token ``s×a``, with the product of both (VowpalWabbit's
    ``-q``). Tokens are hashed as categories of a context are (`evaluator.log.encoder.token_slot`).
    """
    shared = list(_tokens(decision.shared))
    out = np.zeros((len(decision.actions), width))
    for row, action in zip(out, decision.actions, strict=True):
        for token, value in _tokens(action.features):
            where, sign = _slot(token, "", width)
            row[where] += sign * value
            for other, factor in shared:
                where, sign = _slot(f"{other}×{token}", "", width)
                row[where] += sign * value * factor
    length = np.linalg.norm(out, axis=1, keepdims=True)
    found: npt.NDArray[np.float64] = np.divide(out, length, out=out, where=length > 0)
    return found


def _tokens(features: Mapping[str, Value]) -> Iterator[tuple[str, float]]:
    for name, value in features.items():
        yield (f"{name}={value}", 1.0) if isinstance(value, str) else (f"{name}=", value)
