"""The design effect of named clusters: its size against known truth, its false alarms, and what the check says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from evaluator import check
from evaluator.checks.dependence import DEPENDENCE, design_effects
from evaluator.checks.registry import number_tested
from evaluator.log.column import Column
from tests.cli.runs import evaluate
from tests.logs import bernoulli_log
from tests.statistical.users import Crowd

LOGS, LEVEL = 500, 0.04 / number_tested(clustered=True)


def clusters_of(sizes: np.ndarray) -> Column:
    return Column("user", np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), len(sizes), 0)


@pytest.mark.parametrize("same", [True, False], ids=["all actions alike", "one action only"])
def test_the_effects_are_those_of_the_values_spread_over_logs(same: bool) -> None:
    # Users differ in all actions alike, or in the first one: then its differences to others vary as much.
    rng = np.random.default_rng(3)
    users, m, k = 100, 60, 3
    clusters = clusters_of(np.full(users, m))
    found, values = [], []
    for _ in range(LOGS):
        own = 0.3 * rng.choice([-1.0, 1.0], users)[clusters.code]
        action = rng.integers(0, k, users * m)
        rate = 0.5 + np.where(same | (action == 0), own, 0.0)
        y = (rng.random(users * m) < rate).astype(np.float64)
        found.append(design_effects(y, action, clusters))
        means = np.array([y[action == a].mean() for a in range(k)])
        values.append([y.mean(), *means, *(means - y.mean())])
    spread = np.var(values, axis=0, ddof=1)
    n = users * m
    of_mean, of_actions, of_contrasts = 0.25 / n, 0.25 / (n / k), 0.25 / (n / k) * (1 - 1 / k)
    true = spread[0] / of_mean, spread[1:4].mean() / of_actions, spread[4:].mean() / of_contrasts
    estimated = np.mean([(e.mean, e.actions, e.contrasts) for e in found], axis=0)
    # Of a variance from so many logs; the actions' are correlated, as if they were one.
    assert (np.abs(estimated / true - 1) < 4 * (2 / LOGS) ** 0.5).all(), (estimated, true)
    assert estimated[0] > 3
    if same:
        assert np.mean([e.correlation for e in found]) == pytest.approx(0.36, abs=0.02)
        assert estimated[2] == pytest.approx(1.0, abs=0.1)
    else:
        assert estimated[2] > 2


@pytest.mark.parametrize(
    ("sizes", "rate"),
    [
        (np.full(200, 20), 0.4),
        (np.full(12, 300), 0.4),
        (np.rint(1 + 300 / np.arange(1, 300)).astype(int), 0.4),
        (np.full(2000, 2), 0.01),
        (np.ones(3000, int), 0.4),
    ],
    ids=["even", "few", "uneven", "rare", "alone"],
)
def test_false_alarms_are_as_rare_as_stated(sizes: np.ndarray, rate: float) -> None:
    rng = np.random.default_rng(5)
    clusters = clusters_of(sizes)
    n, level = len(clusters.code), 0.05
    p = [
        design_effects((rng.random(n) < rate).astype(float), rng.integers(0, 3, n), clusters).p_value
        for _ in range(LOGS)
    ]
    for at in (level, LEVEL):
        assert np.mean(np.array(p) <= at) < at + 4 * (at * (1 - at) / LOGS) ** 0.5


def test_the_check_says_how_much_wider_intervals_are_to_be() -> None:
    log = Crowd(name="small", users=60, displays=50).log(1)
    found = check(log, cluster_by="user")[DEPENDENCE.name]
    assert found.verdict == "warn"
    # rho = .2² / (.4 * .6 + what rates of actions add) about, and 49 others hang together with a display.
    assert found.numbers["correlation"] == pytest.approx(0.16, abs=0.06)
    assert found.statistic == pytest.approx(1 + 49 * found.numbers["correlation"], rel=0.05)
    assert f"{found.statistic**0.5:.2g} times as wide" in found.what
    assert "`cluster_by='user'`" in found.remedy
    assert check(log)[DEPENDENCE.name].verdict == "not applicable"
    assert "`cluster_by`" in check(log)[DEPENDENCE.name].what


def test_a_clean_log_passes_and_few_clusters_are_not_judged() -> None:
    log = bernoulli_log(3000, (0.2, 0.6), mean_delay=5.0, seed=1)
    assert check(log, cluster_by="every:50")[DEPENDENCE.name].verdict == "pass"
    few = check(log, cluster_by="every:500")[DEPENDENCE.name]
    assert few.verdict == "not applicable"
    assert "worth 6.0 clusters" in few.what
    never = replace(log, events=log.conversions.slice(0, 0))
    user = pa.array(np.arange(3000).astype(str))
    never = replace(never, displays=never.displays.append_column("user", user))
    assert check(never, cluster_by="user")[DEPENDENCE.name].verdict == "not applicable"


def test_the_command_takes_it() -> None:
    run = evaluate("check", "--limit", "3000", "--cluster-by", "every:100", "--json")
    assert run.code == 0, run.err
    assert {f["name"]: f["verdict"] for f in run.json["checks"]}[DEPENDENCE.name] == "pass"
