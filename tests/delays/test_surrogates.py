"""Outcomes before the reward: their shares against known truth and a slow count, and what reports say of clickbait."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from scipy.stats import beta, binom

from evaluator import study_delays
from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.surrogates import Surrogate
from evaluator.estimates.confidence import Interval, share_interval
from evaluator.log import Log
from evaluator.log.schema import WEIGHT
from evaluator.reports.documents import show
from tests.delays.surrogate_worlds import (
    CLICK_WINDOW,
    DAY,
    DAYS,
    HOUR,
    SALE_WINDOW,
    WORLDS,
    a_log,
    truth,
)
from tests.logs import build_log, with_outcome

QUICK = {"families": ["exponential"], "bootstraps": 19}


def surrogates(log: Log) -> tuple[Surrogate, ...]:
    return study_delays(log, by=None, **QUICK).surrogates


def counted(log: Log, first: float, window: float, last: float, reward_window: float) -> tuple[int, int, int, int]:
    """Return displays followed, with clicks, with sales and with both, display by display.

    They are shown up to the times `first`, to be followed for clicks, and `last`, for sales.
    """
    time = log.column("time")
    kinds = [log.of_outcome("click").conversions.to_pylist(), log.conversions.to_pylist()]
    followed = clicks = sales = both = 0
    for display, shown in enumerate(time.tolist()):
        if shown > min(first, last):
            continue
        followed += 1
        own, sold = (
            [row["time"] - shown for row in rows if row["display_id"] == display and row["time"] - shown <= longest]
            for rows, longest in zip(kinds, (window, reward_window), strict=True)
        )
        clicks += bool(own)
        sales += bool(sold)
        both += bool(own and sold and min(own) <= max(sold))
    return followed, clicks, sales, both


def counts(of: Surrogate) -> tuple[int, int, int, int]:
    return of.followed, of.with_outcome, of.with_reward, of.with_both


@pytest.mark.parametrize("name", WORLDS)
def test_shares_are_the_true_ones_and_actions_differ_where_they_do(name: str) -> None:
    rng = np.random.default_rng(11)
    log, true = a_log(WORLDS[name], 30_000, rng), truth(WORLDS[name], rng)
    study = study_delays(log, **QUICK)
    (of,) = study.surrogates
    assert of.earlier
    assert of.median == study.outcomes["click"].quantiles[2].corrected
    assert of.reward_median == study.quantiles[2].corrected
    assert (of.window, of.reward_window) == (CLICK_WINDOW, SALE_WINDOW)
    assert of.differs == (name == "clickbait")
    assert of.foretells == (name != "clicks of any kind")
    for share, (pooled, *by_action) in ((of.followed_by_reward, true.followed), (of.reward_preceded, true.preceded)):
        assert off(share.pooled, pooled) < 4
        for one in (share.least, share.most):
            assert one is not None
            # All three actions at once.
            assert one.share.level == pytest.approx(1 - 0.05 / 3)
            at_once = share_interval(round(one.share.estimate * one.share.n), one.share.n, alpha=0.05 / 3)
            assert (one.share.low, one.share.high) == pytest.approx((at_once.low, at_once.high))
            assert off(one.share, by_action[int(one.action.removeprefix("a"))]) < 4
    # Displays too young, whose sales are still to come, would make the share smaller by more than chance.
    sold = log.conversions["display_id"].to_numpy()
    naive = np.isin(log.of_outcome("click").conversions["display_id"].to_numpy(), sold)
    loss = 1 if name == "clicks of any kind" else 4
    assert naive.mean() < true.followed[0] - loss * naive.std() / math.sqrt(len(naive))
    for text in (report(study, full=False), report(study)):
        assert "earlier" in text
        assert ("compare --learn-from sales,click" in text) == (name == "clickbait")
        assert (": --learn-from click" in text) == (name == "clicks foretell sales")
        assert ("not shown to foretell" in text) == (name == "clicks of any kind")


def off(share: Interval, true: float) -> float:
    """Return how many standard errors a share is off."""
    return abs(share.estimate - true) / math.sqrt(true * (1 - true) / share.n)


def report(study: DelayStudy, *, full: bool = True) -> str:
    console = Console(width=2000)
    with console.capture() as shown:
        show(console, study, full=full)
    return shown.get()


@pytest.mark.parametrize(
    ("click_window", "sale_window"), [(CLICK_WINDOW, SALE_WINDOW), (CLICK_WINDOW, None), (None, None)]
)
def test_displays_are_counted_where_both_kinds_were_followed(click_window: int | None, sale_window: int | None) -> None:
    log = a_log(WORLDS["clickbait"], 1500, np.random.default_rng(5), click_window=click_window, sale_window=sale_window)
    study = study_delays(log, by=None, **QUICK)
    (of,) = study.surrogates
    # Where the log names no window, that is the recommended one.
    assert of.window == (click_window or study.outcomes["click"].advice.recommended)
    assert of.reward_window == (sale_window or study.advice.recommended)
    end = DAYS * DAY
    assert counts(of) == counted(log, end - of.window, of.window, end - of.reward_window, of.reward_window)
    assert of.followed_by_reward.pooled.n == of.with_outcome
    assert of.reward_preceded.pooled.estimate == of.with_both / of.with_reward


def test_a_display_stamped_with_a_day_was_perhaps_followed_for_one_less() -> None:
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 30, 600)) * DAY
    sold = np.flatnonzero((rng.random(600) < 0.5) & (time <= 25 * DAY))
    log = build_log(
        time=time, action=rng.integers(0, 2, 600), conversion_display=sold, conversion_time=time[sold] + 5 * DAY,
        n_actions=2, tick="s", observed_until=30 * DAY, attribution_window=5 * DAY, reward_max=1.0,
    )  # fmt: skip
    (of,) = surrogates(with_outcome(log, "click", sold, time[sold], observed_until=30 * DAY, attribution_window=DAY))
    assert of.followed == (time <= 24 * DAY).sum()
    assert of.with_reward == (time[sold] <= 24 * DAY).sum()


def test_all_displays_count_where_all_were_followed_to_their_end() -> None:
    log = a_log(WORLDS["clickbait"], 1500, np.random.default_rng(2), click_window=None, sale_window=None)
    ended = log.with_meta(
        observed_until=None, outcomes=tuple(dataclasses.replace(o, observed_until=None) for o in log.meta.outcomes)
    )
    (of,) = surrogates(ended)
    assert of.followed == of.displays == 1500
    assert math.isinf(of.window)
    assert math.isinf(of.reward_window)
    assert counts(of) == counted(ended, math.inf, math.inf, math.inf, math.inf)


def test_displays_that_stand_for_several_count_as_often() -> None:
    rng = np.random.default_rng(6)
    log = a_log(WORLDS["clickbait"], 3000, rng)
    has = np.zeros(3000, np.bool_)
    for events in (log.conversions, log.of_outcome("click").conversions):
        has[events["display_id"].to_numpy()] = True
    weight = np.where(has, 1.0, 4.0)
    sampled = log.changed(displays=log.displays.append_column(WEIGHT, pa.array(weight)))
    (of,) = surrogates(sampled)
    assert of.displays == weight.sum()
    assert of.followed == weight[log.column("time") <= (DAYS * DAY - SALE_WINDOW)].sum()
    assert of.with_outcome < has.sum()


def test_first_outcome_and_last_reward_of_a_display_decide() -> None:
    # Sold before it was clicked; sold, clicked, sold again; clicked and sold at once; clicked alone.
    sales, clicks = {0: [10], 1: [10, 90], 2: [30]}, {0: [20], 1: [40], 2: [30], 3: [5, 50]}
    rows = {kind: [(d, t) for d, times in of.items() for t in times] for kind, of in (("s", sales), ("c", clicks))}
    log = build_log(
        time=np.zeros(4, int), action=np.zeros(4, int), conversion_display=[d for d, _ in rows["s"]],
        conversion_time=[t for _, t in rows["s"]], n_actions=2, tick="s", reward_max=2.0,
    )  # fmt: skip
    (of,) = surrogates(with_outcome(log, "click", [d for d, _ in rows["c"]], [t for _, t in rows["c"]]))
    assert counts(of) == (4, 4, 3, 2)
    # Too few displays to compare actions.
    assert of.followed_by_reward.differs is None
    assert not of.differs


def test_the_short_form_names_no_outcome_that_comes_later() -> None:
    rng = np.random.default_rng(4)
    n = 3000
    time = np.sort(rng.integers(0, 30 * DAY, n))
    sold = np.flatnonzero(rng.random(n) < 0.3)
    log = build_log(
        time=time, action=rng.integers(0, 2, n), conversion_display=sold,
        conversion_time=time[sold] + rng.integers(1, HOUR, len(sold)), n_actions=2, tick="s", reward_max=1.0,
    )  # fmt: skip
    study = study_delays(with_outcome(log, "review", sold[::2], time[sold[::2]] + 2 * DAY), **QUICK)
    (of,) = study.surrogates
    assert not of.earlier
    assert study.to_dict()["surrogates"][0]["outcome"] == "review"
    assert "--learn-from" not in report(study, full=False)
    assert "Outcomes before the reward" in report(study)
    assert "not earlier" in report(study)


def test_losses_and_refunds_are_no_surrogates() -> None:
    log = build_log(
        time=np.arange(200), action=np.zeros(200, int), conversion_display=np.arange(100),
        conversion_time=np.arange(100) + 20, conversion_value=np.where(np.arange(100) % 5, 1.0, -1.0), n_actions=2,
        tick="s",
    )  # fmt: skip
    both = with_outcome(log, "click", np.arange(50), np.arange(50) + 3)
    with_loss = with_outcome(
        both, "damage", np.arange(9), np.arange(9) + 3, -np.ones(9), reward=True, told=True, value_min=-1.0
    )
    assert [of.outcome for of in surrogates(with_loss)] == ["click"]
    # Sales alone are rewards.
    assert surrogates(both)[0].with_reward == 80
    refunded = log.with_conversions(log.conversions.filter(np.arange(100) % 5 == 0))
    assert surrogates(with_outcome(refunded, "click", np.arange(50), np.arange(50) + 3)) == ()


def test_intervals_of_shares_are_exact() -> None:
    ends = [share_interval(k, 40) for k in range(41)]
    for p in np.linspace(0.01, 0.99, 99):
        inside = [of.low <= p <= of.high for of in ends]
        assert binom.pmf(np.flatnonzero(inside), 40, p).sum() >= 0.95
    assert ends[7].low == pytest.approx(beta.ppf(0.025, 7, 34))
    assert ends[7].high == pytest.approx(beta.ppf(0.975, 8, 33))
    none = share_interval(0, 0)
    assert (none.low, none.high) == (0.0, 1.0)
    assert math.isnan(none.estimate)
