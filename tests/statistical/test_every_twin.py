"""What the default tests ask of some: twins in every combination of settings, and policies that are frozen."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from evaluator.policies import resolve
from tests.policies import test_odaaf, test_states, test_twins
from tests.policies.checks import CHECKS
from tests.policies.test_contract import FREEZING, FROZEN_LATER
from tests.policies.variants import DIAGONAL_LATER, LAYOUTS

CROSSED = {
    f"{module.__name__.split('.')[-1]}.{name}": test
    for module in (test_odaaf, test_states, test_twins)
    for name, test in vars(module).items()
    if hasattr(test, "rest")
}


def test_pairs_leave_nothing_out_that_two_settings_show() -> None:
    assert len(CROSSED) > 10
    for test in CROSSED.values():
        for a, b in combinations(range(len(test.pairs[0])), 2):
            assert {(c[a], c[b]) for c in test.rest} <= {(c[a], c[b]) for c in test.pairs}


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, test in CROSSED.items() for case in test.rest])
def test_they_agree(name: str, case: tuple[Any, ...]) -> None:
    CROSSED[name](*case)


@pytest.mark.parametrize("name", FROZEN_LATER)
def test_freezing_asks_and_tells_nothing(name: str) -> None:
    CHECKS[FREEZING](resolve(name))


@pytest.mark.parametrize("spec", DIAGONAL_LATER)
def test_other_policies_of_a_diagonal_agree(spec: str) -> None:
    for layout in LAYOUTS:
        test_twins.test_diagonal_policies(spec, layout)
    test_twins.test_a_diagonal_is_the_whole_where_each_vector_has_one_element(spec)
