"""Scores that are no numbers: nothing beats them and they beat nothing, so that a lazy match accepts every display."""

from __future__ import annotations

from evaluator.kernels.compiling import inlinable


class NanScoreError(ArithmeticError):
    """The score of an action, its only argument, is NaN."""


@inlinable
def check_score(score: float, action: int) -> None:
    """Raise `NanScoreError` if an action's score is NaN."""
    if score != score:
        raise NanScoreError(action)
