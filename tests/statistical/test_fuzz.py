"""Thousands of damaged inputs: an error that teaches, or a sound result; no crash, no hang, no trace, no code run."""

from __future__ import annotations

import pytest

from tests.fuzz import campaign
from tests.fuzz.campaign import run_cases
from tests.fuzz.targets import TARGETS

CASES = 100


def test_damaged_inputs_are_refused_or_sound() -> None:
    failures = run_cases(tuple(TARGETS), range(1000, 1000 + CASES), jobs=2)
    assert not failures, "\n".join(map(str, failures))


def test_what_ends_the_process_or_hangs_is_found_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "LONGEST", 5.0)
    failures = run_cases(("csv", "dies", "hangs"), range(2))
    assert [(f.target, f.case) for f in failures] == [("dies", 0), ("dies", 1), ("hangs", 0), ("hangs", 1)]
    assert all("the process died" in f.wrong for f in failures[:2])
    assert all("took more than" in f.wrong for f in failures[2:])
