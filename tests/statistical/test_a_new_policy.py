"""A policy is one file and one line of the registry: the contract finds it there, and says what else to write."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.policies.checks import CHECKS

ROOT = Path(__file__).parents[2]
# What somebody who adds tests/policies/leader.py changes besides.
LINE = 'from evaluator.policies.registry import POLICIES\n\nPOLICIES["leader"] = "tests.policies.leader:Leader"\n'
TESTS = (
    "policies/test_contract.py", "policies/test_twins.py", "policies/test_estimates.py", "golden/test_regret.py",
    "packaging/test_readme.py",
)  # fmt: skip
ABOUT_ALL = "every_policy_that_chooses or every_policy_in_todays or every_policy_is_in_the_table"
SENTENCES = {
    "LookupError: tests/twins has no reference twin of 'leader': write a subclass of tests.twins.history.Twin from the "
    "paper's formula, and its line in TWINS of tests/twins/__init__.py.",
    "AssertionError: tests/golden/regret.json has no row of 'leader': run python -m tests.golden.make leader",
    "AssertionError: README.md lacks this row of its table: | `leader` | no | naive | Robbins 1952 |",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the tests say of the new policy, and of all policies together."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "one_line.py").write_text(LINE, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "one_line", "-p", "no:cacheprovider", "-n", "0", "-rA", "--tb=no",
         "-k", f"leader or {ABOUT_ALL}", *(f"tests/{file}" for file in TESTS)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path, "COLUMNS": "1000"}, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def test_the_contract_finds_it_and_passes(said: str) -> None:
    passed = set(re.findall(r"^PASSED tests/policies/test_contract\.py::test_contract\[(.*)-leader\]$", said, re.M))
    assert passed == set(CHECKS), said
    # Both of its choices, which nobody listed.
    variants = re.findall(r"test_contract_of_variants\[wins_is_choose-(.*)\]$", said, re.M)
    assert variants == ["leader", "leader:unseen=last"]
    for spec in variants:
        assert f"test_twins.py::test_policies_of_no_group[{spec}]" in said
        assert f"test_estimates.py::test_it_is_what_the_twin_sums_up[{spec}-700]" in said


def test_what_else_it_needs_is_asked_for_in_one_sentence_each(said: str) -> None:
    assert set(re.findall(r"^FAILED \S+ - (.*)$", said, re.M)) == SENTENCES
