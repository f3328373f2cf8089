"""Clean logs are left alone as often as the command says; `python -m tests.bench.check` has the large version."""

from __future__ import annotations

import math

import pytest

from evaluator import check
from tests.checks.awkward import AWKWARD
from tests.checks.clean import CLEAN
from tests.logs import bernoulli_log

LOGS = 2
KINDS = CLEAN | AWKWARD


def test_false_alarms_keep_their_level() -> None:
    level = 0.04
    raised = []
    for name, make in KINDS.items():
        for seed in range(LOGS):
            report = check(make(seed), seed=seed, false_alarms=level)
            raised += [(name, seed, f.name) for f in report.findings if f.verdict in ("warn", "fail")]
    n = LOGS * len(KINDS)
    assert len({r[:2] for r in raised}) <= n * level + 4 * math.sqrt(n * level * (1 - level)), raised


def test_every_kind_of_clean_log_is_fit() -> None:
    for make in KINDS.values():
        report = check(make(77))
        assert report.fit, report
        assert "fit for replay" in repr(report)


@pytest.mark.parametrize("kind", ["uniform", "estimate"])
def test_logs_without_propensities_are_checked_by_what_replay_would_be_told(kind: str) -> None:
    log = bernoulli_log(20_000, [0.1, 0.2], mean_delay=20, seed=1).with_meta(propensity="absent")
    report = check(log, propensity=kind)
    assert report.propensity == {"uniform": "uniform", "estimate": "estimated"}[kind]
    assert report.fit
    assert check(log).propensity == "estimated"
