"""On untidy logs of known truth a number is right, or a sentence names what is wrong, or there is no number.

The generator, what is untidy and the rule of the verdict: `tests.untidy`. More logs: ``python -m tests.bench.untidy``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.untidy.kinds import KINDS, SINGLE
from tests.untidy.tempting import HARMLESS, TEMPTING, wrong_and_right
from tests.untidy.verdict import Verdict, judge, live_difference

LOGS = 6
LIVE_LOGS, LIVE_RUNS = 24, 40
# Each interval misses its truth on one log of twenty at most: anytime-valid ones, looked at once, far more seldom, so
# that this is generous for all numbers of a log together.
MISSES = 0.05


@cache
def verdicts(name: str) -> tuple[Verdict, ...]:
    return tuple(verdict for seed in range(LOGS) for verdict in judge(KINDS[name], seed))


def silent_logs(name: str) -> set[int]:
    return {verdict.seed for verdict in verdicts(name) if verdict.outcome == "silent"}


def most(logs: int) -> float:
    """Logs with a missed number that are beyond 4 standard errors of chance."""
    return MISSES * logs + 4 * np.sqrt(MISSES * (1 - MISSES) * logs)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_wrong_in_silence(name: str) -> None:
    shown = [(v.policy, v.seed, v.wrong) for v in verdicts(name) if v.outcome == "silent"]
    assert len(silent_logs(name)) <= most(LOGS), shown[:4]


def test_nothing_is_wrong_in_silence_on_all_logs_together() -> None:
    silent = {name: len(silent_logs(name)) for name in KINDS if silent_logs(name)}
    assert sum(silent.values()) <= most(LOGS * len(KINDS)), silent


@pytest.mark.parametrize("name", [kind.name for kind in SINGLE if kind.live])
def test_learning_policies_earn_what_they_earn_live(name: str) -> None:
    kind = replace(KINDS[name], policies=(KINDS[name].live,))
    found = [verdict for seed in range(LIVE_LOGS) for verdict in judge(kind, seed)]
    if kind.causes and any(re.search(kind.causes, text, re.IGNORECASE) for v in found for text in v.said):
        return
    difference, error = live_difference(kind, found, LIVE_RUNS)
    assert abs(difference) < 4 * error


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("tidy")])
def test_tidy_logs_are_answered_without_alarm(name: str) -> None:
    causes = "|".join(kind.causes for kind in SINGLE if kind.causes)
    for verdict in verdicts(name):
        assert verdict.outcome == "covered"
        assert not [text for text in verdict.said if re.search(causes, text, re.IGNORECASE)]


@pytest.mark.parametrize("name", TEMPTING)
def test_the_tempting_way_is_wrong(name: str) -> None:
    difference = np.diff([wrong_and_right(name, seed) for seed in range(LOGS)], axis=1)[:, 0]
    assert abs(difference.mean()) > 4 * difference.std(ddof=1) / LOGS**0.5


def test_every_kind_has_teeth_or_is_said_to_have_none() -> None:
    assert set(TEMPTING) | HARMLESS == {kind.name for kind in SINGLE}
    assert not set(TEMPTING) & HARMLESS
