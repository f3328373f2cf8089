"""Settings crossed: every pair of them for each run of the tests, every combination among the proofs.

A loop that is wrong in one setting, or where two meet, is found by pairs; what only three together show is rarer than
the minute that all of them cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import combinations, product
from typing import Any

import pytest

Case = tuple[Any, ...]


def every_pair(cases: Iterable[Case]) -> list[Case]:
    """Return cases in which each two values, at whatever two places, meet if they do in any of those given."""
    cases = list(cases)
    wanted = {pair for case in cases for pair in _pairs(case)}
    chosen = []
    while wanted:
        # The first of those that bring most: the same list in every process.
        best = max(cases, key=lambda case: len(_pairs(case) & wanted))
        chosen.append(best)
        wanted -= _pairs(best)
    return chosen


def _pairs(case: Case) -> set[tuple[Any, ...]]:
    return set(combinations(enumerate(case), 2))


def crossed(
    names: str, *axes: Collection[Any], unless: Callable[..., bool] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test every pair of the values of its arguments, and leave the `rest` of the combinations to the proofs."""
    cases = [case for case in product(*axes) if unless is None or not unless(*case)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        pairs = every_pair(cases)
        parametrized: Any = pytest.mark.parametrize(names, pairs)(test)
        parametrized.pairs, parametrized.rest = pairs, [case for case in cases if case not in pairs]
        return parametrized  # type: ignore[no-any-return]

    return decorate
