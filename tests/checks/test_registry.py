"""A check is one file and one line of the registry: what else it needs is derived, or asked for in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from evaluator import check
from evaluator.checks import registry, run
from evaluator.checks.registry import CHECKS, number_tested, table
from evaluator.checks.result import Check, CheckResult
from evaluator.checks.tables import Tables
from tests.checks.defects import DEFECTS
from tests.checks.makers import MAKERS
from tests.checks.shops import shop

# Checks whose defect is made in a test module of their own.
OWN_TESTS = {
    "replay of the logger": "test_replaying.py",
    "eligible actions": "test_shown_of_sets.py",
    "eligibility after displays": "test_eligibility_after_displays.py",
    "eligibility after rewards": "test_eligibility_after_rewards.py",
    "dependence of displays": "test_dependence.py",
    "scales of columns": "../replays/test_awkward_columns.py",
    "kept actions": "../replays/test_keep_for.py",
}


def even_ids(t: Tables, *, level: float) -> CheckResult:
    return CheckResult(name="even ids", verdict="pass", number=f"{level:.6f}", p_value=1.0)


EVEN_IDS = Check(name="even ids", finds="displays without odd ids", run=even_ids)


def what_is_missing(checks: Iterable[Check]) -> list[str]:
    found = {name for _, must, _ in (DEFECTS | MAKERS).values() for name in must}
    return [
        f"tests/checks has no log with what {c.name!r} finds: write one, and its line in DEFECTS of defects.py"
        for c in checks
        if c.name not in found | OWN_TESTS.keys()
    ]


def test_every_check_has_a_defect_that_it_is_for() -> None:
    assert what_is_missing(CHECKS) == []
    assert what_is_missing([EVEN_IDS]) == [
        "tests/checks has no log with what 'even ids' finds: write one, and its line in DEFECTS of defects.py"
    ]


def test_the_report_has_a_finding_of_each_check_in_order() -> None:
    report = check(shop(3).log())
    assert [f.name for f in report.checks] == [c.name for c in CHECKS]
    assert len({c.name for c in CHECKS}) == len(CHECKS)
    assert all(f.p_value is None for f, c in zip(report.checks, CHECKS, strict=True) if not c.tested)


def test_the_false_alarms_are_split_over_the_checks_that_test() -> None:
    # Uniformity, calibration and eligible actions need one share, and so do drift of shares and eligibility after
    # displays, replay of the logger and eligibility after rewards; dependence needs one where clusters are named,
    # and wear-out where users are known.
    tested = sum(c.tested for c in CHECKS)
    told = {"overlap", "gaps in conversions", "scales of columns", "traffic", "rewards", "kept actions"}
    assert {c.name for c in CHECKS if not c.tested} == told
    assert (number_tested(clustered=False), number_tested(clustered=True)) == (tested - 6, tested - 5)
    assert number_tested(clustered=True, users=True) == tested - 4
    assert [c.name for c in CHECKS if c.instead_of] == [
        "calibration",
        "eligible actions",
        "eligibility after displays",
        "eligibility after rewards",
    ]
    assert {c.instead_of for c in CHECKS} <= {"", *(c.name for c in CHECKS)}
    assert {need for c in CHECKS for need in c.needs} == {"level", "seed", "clusters", "users", "units"}


def test_a_new_check_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    log = shop(3).log()
    before = check(log)
    for module in (registry, run):
        monkeypatch.setattr(module, "CHECKS", (*CHECKS, EVEN_IDS))
    after = check(log)
    assert [f.name for f in after.checks] == [*(f.name for f in before.checks), "even ids"]
    assert after.checks[-1].number == f"{0.04 / number_tested(clustered=False):.6f}"
    assert len(after.tested) == len(before.tested) + 1
    assert table()[-1] == "| even ids | displays without odd ids |"
