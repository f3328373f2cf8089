"""Every policy found in the registry passes every check, from the moment it has its line there."""

from __future__ import annotations

import pytest

from evaluator.policies import names, resolve
from tests.policies.checks import CHECKS, Check
from tests.policies.variants import ALL

# A frozen policy is asked by two loops more, which take seconds to compile. Whose functions are of a kind that another
# policy has, too, is frozen among the proofs.
FROZEN_LATER = (
    "adapt-patient-bandits", "delayed-klucb", "delayed-thompson", "delayed-ucb", "discarding-klucb", "discarding-ucb",
    "nonambiguous-linucb", "otflinucb", "patient-bandits", "qpm-d", "waitlinucb",
)  # fmt: skip
FREEZING = "freezing_asks_and_tells_nothing"


@pytest.mark.parametrize(
    ("check", "name"),
    [
        pytest.param(check, name, id=f"{title}-{name}")
        for title, check in CHECKS.items()
        for name in names()
        if title != FREEZING or name not in FROZEN_LATER
    ],
)
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
