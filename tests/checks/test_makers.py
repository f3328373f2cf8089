"""Checks for logs of other makers: against other libraries, at their level, and where the tempting way cries wolf."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from evaluator import check
from evaluator.checks.additive import fit_additive
from evaluator.checks.counters import NearPairs
from evaluator.checks.delay_groups import hypergeometric_tail, most_lacking
from evaluator.checks.result import CheckResult
from evaluator.checks.significance import poisson_tail
from tests.checks.awkward import by_hour, launched, site
from tests.checks.makers import MAKERS


def test_tails_are_scipys() -> None:
    for seen, population, marked, drawn in [(3, 100, 30, 20), (0, 50, 5, 10), (20, 400, 300, 30), (5, 12, 9, 8)]:
        right = stats.hypergeom.cdf(seen, population, marked, drawn)
        assert hypergeometric_tail(seen, population, marked, drawn) == pytest.approx(right, rel=1e-9)
    assert poisson_tail(12, 5.5) == pytest.approx(stats.poisson.sf(11, 5.5))


def test_the_additive_fit_maximises_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    n = rng.integers(0, 60, (3, 2, 4)).astype(float)
    logit = rng.normal(-1, 0.5, 3)[:, None, None] + rng.normal(0, 0.3, 2)[None, :, None] + rng.normal(0, 0.5, 4)
    y = rng.binomial(n.astype(int), 1 / (1 + np.exp(-logit))).astype(float)

    def loss(theta: np.ndarray) -> float:
        eta = theta[:3, None, None] + theta[None, 3:5, None] + theta[5:]
        return float((n * np.logaddexp(0, eta) - y * eta).sum() + 1e-9 * (theta**2).sum())

    best = optimize.minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-7}).x
    eta = best[:3, None, None] + best[None, 3:5, None] + best[5:]
    fit = fit_additive(n, y)
    assert fit is not None
    np.testing.assert_allclose(fit.expected, (n / (1 + np.exp(-eta))).sum(axis=1), rtol=1e-4)
    # What is left of a draw once refitted: to first order what refitting the draw leaves.
    left = fit.drawn(400, rng)
    assert np.abs(left.sum(axis=1)).max() < 1e-4
    assert np.abs(left.sum(axis=2)).max() < 1e-4


def test_repeats_are_a_martingale_whatever_the_vectors() -> None:
    rng = np.random.default_rng(0)
    p = np.array([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]])
    z = []
    for _ in range(300):
        n = 600
        time, kind = np.sort(rng.integers(0, 1500, n)), rng.integers(0, 2, n)
        action = (rng.random((n, 1)) > np.cumsum(p[kind], axis=1)).sum(axis=1)
        found = NearPairs(1.0)
        found.add(time, kind.astype(np.uint64), action, p[kind, action])
        z.append(found.z)
    assert np.all(np.abs(np.mean(z, axis=0)) < 4 / np.sqrt(300))
    assert np.all(np.abs(np.std(z, axis=0) - 1) < 4 * np.sqrt(1 / 600))


def test_lacking_delays_keep_their_level() -> None:
    rng = np.random.default_rng(1)
    p = np.array([most_lacking(rng.geometric(0.01, 900), rng.integers(0, 9, 900)).p for _ in range(200)])
    for level in (0.2, 0.05):
        assert np.mean(p <= level) < level + 4 * np.sqrt(level / 200)


def test_a_launch_in_an_evening_is_no_change_of_rates_although_evenings_convert_less() -> None:
    log = site(3, n=40_000, rates=[0.3, 0.4, 0.5, 0.6], available=launched, season=by_hour)
    found = check(log)["rates by action"]
    assert found.verdict == "pass"
    assert found.p_value > 0.01
    # Without hours, the new action seems to begin badly: tempting, and wrong.
    seen = np.zeros((10, 1, 4))
    shown = np.zeros((10, 1, 4))
    day, action = log.column("time") // 86_400, log.column("action")
    np.add.at(shown, (day, 0, action), 1.0)
    paid = np.unique(log.conversions["display_id"].to_numpy())
    np.add.at(seen, (day[paid], 0, action[paid]), 1.0)
    flat = fit_additive(shown, seen)
    assert flat is not None
    z = flat.left[3, 3] / np.sqrt(flat.spread[3, 3])
    assert abs(z) > 4


def test_sticky_visitors_are_no_copies() -> None:
    """A logger that keeps a visitor on one action for hours repeats it soon, and late: no copies."""
    from tests.logs import build_log

    rng = np.random.default_rng(0)
    visitor = np.repeat(np.arange(1000), 20)
    time = (rng.integers(0, 900_000, 1000)[visitor] + np.tile(np.cumsum(rng.integers(1, 40, 20)), 1000)).astype(int)
    order = np.argsort(time, kind="stable")
    x = rng.normal(size=(1000, 2)).astype(np.float32)[visitor][order]
    log = build_log(time=time[order], action=rng.integers(0, 5, 1000)[visitor][order], n_actions=5, context=x, tick="s")
    assert check(log)["near copies"].verdict == "pass"


def test_findings_say_which_day_action_and_delay() -> None:
    def finding(defect: str, name: str) -> CheckResult:
        return check(MAKERS[defect][0](7))[name]

    swapped = finding("two actions swapped for a day", "rates by action")
    assert "in day 3" in swapped.number
    assert {swapped.numbers["lower_action"], swapped.numbers["higher_action"]} == {"a0", "a3"}
    exchanged = finding("rates of two actions exchanged at half time, .05 and .15", "rates by action")
    assert "from day 6 on" in exchanged.number
    late = finding("conversions an hour late for a day", "delays of each day")
    assert late.number.startswith("day 4: ")
    assert late.numbers["short"]
    six = finding("one action followed for six hours", "delays of each action")
    assert six.number.startswith("action a2: 0 delays of 7.27 h or more")
    robot = finding("one vector at 5 % without conversions", "vectors without conversions")
    assert robot.numbers["conversions"] == 0
    assert robot.effect == pytest.approx(0.05, abs=4 * np.sqrt(0.05 / 40_000))


def test_visitors_who_never_buy_are_no_robots_among_visitors_who_differ() -> None:
    from tests.logs import build_log

    alarms = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        visitor = np.minimum(rng.geometric(0.04, 20_000), 80)
        rate = 0.2 * rng.gamma(0.3, 1 / 0.3, 81).clip(0, 4)
        paid = np.flatnonzero(rng.random(20_000) < rate[visitor])
        log = build_log(
            time=np.sort(rng.integers(0, 864_000, 20_000)), action=rng.integers(0, 3, 20_000), n_actions=3, tick="s",
            context=np.eye(81)[visitor], conversion_display=paid, conversion_time=np.full(len(paid), 900_000),
        )  # fmt: skip
        found = check(log)["vectors without conversions"]
        # Tempting: some visitors have a hundred displays and more, and nothing where ten of them are usual.
        assert found.numbers["lowest_ratio"] < 0.1
        alarms += found.verdict != "pass"
    assert alarms == 0
