"""Clean logs are left alone as often as the command says; `python -m tests.bench.check` has the large version."""

from __future__ import annotations

import math

from evaluator import check
from tests.checks.test_clean import KINDS

LOGS = 2


def test_false_alarms_keep_their_level() -> None:
    level = 0.04
    raised = []
    for name, make in KINDS.items():
        for seed in range(LOGS):
            report = check(make(seed), seed=seed, false_alarms=level)
            raised += [(name, seed, f.name) for f in report.checks if f.verdict in ("warn", "fail")]
    n = LOGS * len(KINDS)
    assert len({r[:2] for r in raised}) <= n * level + 4 * math.sqrt(n * level * (1 - level)), raised
