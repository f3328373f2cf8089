"""Clean logs are fit for replay; tests/statistical counts false alarms."""

from __future__ import annotations

import pytest

from evaluator import check
from tests.checks.awkward import AWKWARD
from tests.checks.clean import CLEAN
from tests.logs import bernoulli_log

KINDS = CLEAN | AWKWARD


def test_every_kind_of_clean_log_is_fit() -> None:
    for make in KINDS.values():
        report = check(make(77))
        assert report.fit, report
        assert ("fit" if report.replay.enough else "too small") + " for replay" in repr(report)


@pytest.mark.parametrize("kind", ["uniform", "estimate"])
def test_logs_without_propensities_are_checked_by_what_replay_would_be_told(kind: str) -> None:
    log = bernoulli_log(20_000, [0.1, 0.2], mean_delay=20, seed=1).with_meta(propensity="absent")
    report = check(log, propensity=kind)
    assert report.propensity == {"uniform": "uniform", "estimate": "estimated"}[kind]
    assert report.fit
    assert check(log).propensity == "estimated"
