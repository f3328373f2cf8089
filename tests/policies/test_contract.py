"""Every policy found in the registry passes every check, from the moment it has its line there."""

from __future__ import annotations

import pytest

from evaluator.policies import names, resolve
from tests.policies.checks import CHECKS, Check
from tests.policies.variants import ALL


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_contract(check: Check, name: str) -> None:
    check(resolve(name))


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize(
    "check",
    [
        "representation_round_trips",
        "wins_is_choose",
        "interpreted_is_compiled",
        "beginning_a_round_again_only_draws_anew",
    ],
)
def test_contract_of_variants(check: str, spec: str) -> None:
    CHECKS[check](resolve(spec))


def test_the_variants_leave_no_policy_out() -> None:
    variants = {resolve(spec).name for spec in ALL}
    assert variants == set(names()) - {"logging"}
