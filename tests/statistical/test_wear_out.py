"""Wear-out is found on worlds that wear users out, and at its level on untidy ones that do not."""

from __future__ import annotations

import pytest

from evaluator import check
from evaluator.checks.dependence import WEAR_OUT
from evaluator.checks.registry import number_tested
from tests.checks.visits import UNTIDY, WORN

LOGS, LEVEL, OFTEN = 150, 0.04 / number_tested(clustered=False, users=True), 0.05


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run no other check, at the level that this one has among them."""
    monkeypatch.setattr("evaluator.checks.run.CHECKS", (WEAR_OUT,))


@pytest.mark.parametrize("world", UNTIDY)
def test_logs_without_wear_out_are_told_so_at_the_level(world: str) -> None:
    found = [check(UNTIDY[world].log(seed))[WEAR_OUT.name] for seed in range(LOGS)]
    p = [of.p_value for of in found if of.p_value is not None]
    assert len(p) >= 0.9 * LOGS  # else few users carry all that it would rest on
    for level in (LEVEL, OFTEN):
        assert sum(one <= level for one in p) <= LOGS * level + 4 * (LOGS * level) ** 0.5, sorted(p)[:10]


@pytest.mark.parametrize("world", WORN)
def test_wear_out_is_found(world: str) -> None:
    logs = 25
    told = sum(check(WORN[world].log(seed))[WEAR_OUT.name].verdict == "fail" for seed in range(logs))
    # Beyond what a chance of .9 comes short of once in 30,000 sets of logs.
    assert told >= logs * 0.9 - 4 * (logs * 0.9 * 0.1) ** 0.5, told
