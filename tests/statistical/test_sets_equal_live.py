"""Replay with eligible sets is a live run: against an independent NumPy simulation, and the tempting wrong ways fail.

Each case has draws of its own: independent logs, replayed by the evaluator, and four live runs a log on its thinned
calendar by the policy of `tests.live_with_sets`. Three means are compared: the expected reward of the rounds, the value
that the evaluator reports, and |E|. Each differs by less than 3 standard errors in each case. That is 45 comparisons of
Welch's t, with 15 degrees of freedom and more: for the draws of one state of the code, a right replay fails one of them
by chance with probability .22 at most; a failure is looked into, and nothing widened.

The cases taken together are asked for more, and say so at a level: of each p-value p the chi-square quantile of 1 - p,
one degree of freedom, summed over the cases, which are independent, is below its quantile of level 1/1000, for each of
the three means. Errors of 1.5 standard errors in all of 16 cases are found with probability .8, those of 2 with .99.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import pytest
from scipy import stats

import evaluator
from tests.live_with_sets import Lived, Way, live, replayed
from tests.worlds_with_sets import Displays, Floats, World, make_displays, make_log

Mean = Literal["value", "reward", "size"]


class Case(NamedTuple):
    """A world's sets and logger, the policy, and the number of actions."""

    sets: str
    logger: str
    policy: str
    k: int = 12

    @property
    def world(self) -> World:
        return World(self.sets, self.logger, k=self.k, contextual=1.0)


CASES = [
    Case("constant", "uniform", "ucb1"),
    Case("constant", "popularity", "lints"),
    Case("constant", "softmax", "delayed-ucb"),
    Case("calendar", "uniform", "thompson"),
    Case("calendar", "uniform", "delayed-ucb"),
    Case("calendar", "popularity", "linucb"),
    Case("calendar", "softmax", "ucb1"),
    Case("context", "uniform", "linucb"),
    Case("context", "uniform", "ucb1"),
    Case("context", "popularity", "delayed-ucb"),
    Case("context", "softmax", "thompson"),
    Case("random", "uniform", "lints"),
    Case("random", "popularity", "thompson"),
    Case("random", "softmax", "random"),
    Case("calendar", "uniform", "thompson", 200),
    Case("context", "uniform", "linucb", 200),
]
# Displays of a log, and logs: the smaller propensities are, the more displays give some hundred rounds.
DISPLAYS = {"uniform": 8_000, "popularity": 15_000, "softmax": 30_000}
LOGS = {"uniform": 120, "popularity": 60, "softmax": 30}


def served(logs: list[Displays]) -> Floats:
    """Return the share of a log's displays that rejection accepts, four times each."""
    return np.repeat([drawn.propensity.min() for drawn in logs], 4)


def replay(case: Case, drawn: Displays, seed: int) -> tuple[float, float, float, float]:
    """Return what a replay of the evaluator lived."""
    found = evaluator.replay(make_log(case.world, drawn), policy=case.policy, seed=seed)
    assert not [line for line in found.warnings if "lean to small sets" in line]
    at = found.trajectory["display_id"].to_numpy()
    value = drawn.expected[at, drawn.action[at]].mean()
    return float(value), found.value.estimate, float(drawn.eligible[at].sum(axis=1).mean()), found.rounds


@cache
def runs_of(case: Case) -> tuple[Lived, Lived]:
    """Return replays of independent logs, and live runs."""
    n, runs = (DISPLAYS[case.logger], LOGS[case.logger]) if case.k == 12 else (20_000, 16)
    own = 1000 * (1 + CASES.index(case))
    rows, shares = [], []
    for seed in range(own, own + runs):  # one log at a time: together they are large
        drawn = make_displays(case.world, n, seed)
        rows.append(replay(case, drawn, seed))
        shares.append(served([drawn]))
    return Lived(*np.array(rows).T), live(case.world, case.policy, n, np.concatenate(shares), own)


def off(one: Floats, other: Floats) -> tuple[float, float]:
    """Return the difference of two means in standard errors, and the p-value of Welch's t."""
    found = stats.ttest_ind(one, other, equal_var=False)
    return float(found.statistic), float(found.pvalue)


def compared(mean: Mean) -> list[Case]:
    """Return the cases in which this mean varies."""
    return [case for case in CASES if (case.sets, mean) != ("constant", "size")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_a_replay_earns_what_a_live_run_does(case: Case) -> None:
    replays, lives = runs_of(case)
    for mean in ("value", "reward", "size"):
        if case in compared(mean):
            assert abs(off(getattr(replays, mean), getattr(lives, mean))[0]) < 3, mean


@pytest.mark.parametrize("mean", ["value", "reward", "size"])
def test_all_cases_together_agree(mean: Mean) -> None:
    cases = compared(mean)
    p = [off(*(getattr(runs, mean) for runs in runs_of(case)))[1] for case in cases]
    assert stats.chi2.sf(stats.chi2.isf(p, 1).sum(), len(cases)) > 1e-3


@cache
def tempted(sets: str, logger: str, of: Literal["live", "full calendar"] | Way) -> Lived:
    """Return runs of Thompson sampling, right and wrong ones, on the same logs."""
    world, n = World(sets, logger, contextual=1.0), 4000
    logs = [make_displays(world, n, seed) for seed in range(60)]
    if of == "live":
        return live(world, "thompson", n, served(logs), 1)
    if of == "full calendar":
        return live(world, "thompson", n, np.ones(60), 2)
    return replayed(world, "thompson", logs, of, 3)


# Not listed: choices kept where sets are random, which tilts nothing if the logger is uniform, queues where sets follow
# the context and sets shuffled on a calendar, which take more runs than these to show.
@pytest.mark.parametrize(
    ("way", "mean", "sets", "logger"),
    [
        *(("1/K", "size", sets, "uniform") for sets in ("calendar", "context", "random")),
        *(("a c per set", "size", sets, "popularity") for sets in ("calendar", "context", "random")),
        *(("keep", "size", sets, "uniform") for sets in ("calendar", "context")),
        *(("queue", "size", sets, "uniform") for sets in ("calendar", "random")),
        *(("discarded", "size", sets, "uniform") for sets in ("calendar", "context", "random")),
        *(("replaced", "value", sets, "uniform") for sets in ("calendar", "context", "random")),
        *(("shuffled", "size", sets, "uniform") for sets in ("context", "random")),
        ("full calendar", "value", "calendar", "uniform"),
    ],
)
def test_tempting_wrong_ways_are_far_off(
    way: Literal["full calendar"] | Way, mean: Mean, sets: str, logger: str
) -> None:
    right, wrong, lives = (getattr(tempted(sets, logger, of), mean) for of in ("rejection", way, "live"))
    assert abs(off(right, lives)[0]) < 3
    assert abs(off(wrong, lives)[0]) > 5


def test_propensities_of_one_over_k_are_found_out_by_the_sizes_of_the_sets() -> None:
    world, alarms = World("random", "uniform"), 0
    for seed in range(5):
        drawn = make_displays(world, 8000, seed)
        log = make_log(world, drawn._replace(propensity=np.full(8000, 1 / world.k)))
        found = evaluator.replay(log, policy="thompson")
        alarms += any("lean to small sets" in line for line in found.warnings)
    assert alarms == 5
