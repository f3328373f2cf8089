"""What repeats in other orders of a log do to the numbers of a replay: on tidy and untidy logs whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator import compare
from evaluator.estimates.confidence import Interval
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from tests.logs import bernoulli_log, build_log
from tests.untidy.defects import rows_of
from tests.untidy.live import play_live
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards
from tests.untidy.writing import as_log

Floats = npt.NDArray[np.float64]

# What learns, and what it is compared with.
POLICIES = ("ucb1", "thompson")
INTERVALS = ("value", "regret", "difference")


@dataclass(frozen=True)
class Known:
    """A log and the expected reward of each action at each of its displays, shape (n, K)."""

    log: Log
    expected: Floats


@dataclass(frozen=True)
class Case:
    """Logs of one kind.

    Parameters
    ----------
    draw
        Returns the log of a seed.
    horizon
        T, so few that every replay has them.
    live
        The traffic on which the policy is played live; None where its rounds are other displays than a replay's: with
        time they are worth more or less, and T rounds live take less of it than T accepted displays.
    """

    draw: Callable[[int], Known]
    horizon: int
    live: Untidy | None = None


@dataclass(frozen=True)
class Found:
    """What replays of one log tell.

    Parameters
    ----------
    value, regret
        Estimates.
    realised
        What the rounds are expected to earn.
    width
        Of the value's interval.
    held
        Whether each of `INTERVALS` holds its truth.
    """

    value: float
    regret: float
    realised: float
    width: float
    held: tuple[bool, ...]


def untidy(what: Untidy) -> Callable[[int], Known]:
    def draw(seed: int) -> Known:
        traffic = draw_traffic(what, seed)
        log, of = as_log(traffic, rows_of(traffic, seed))
        return Known(log, expected_rewards(traffic)[of])

    return draw


def crossing(seed: int, *, n: int = 8192, mean_delay: float = 30.0) -> Known:
    """Return a log in which the best of three actions becomes the worst, steadily: time is all that matters."""
    rng = np.random.default_rng(seed)
    way = np.linspace(0.0, 1.0, n)
    expected = np.stack([0.7 - 0.6 * way, 0.1 + 0.6 * way, np.full(n, 0.3)], axis=1)
    action = rng.integers(0, 3, n)
    shown = np.flatnonzero(rng.random(n) < expected[np.arange(n), action])
    delay = rng.geometric(1.0 / (1.0 + mean_delay), len(shown)) - 1
    log = build_log(
        time=np.arange(n), action=action, conversion_display=shown, conversion_time=shown + delay, n_actions=3
    )
    return Known(log, expected)


def ten_arms(seed: int) -> Known:
    """Return a tidy log of ten actions: a replay uses a tenth of it."""
    means = np.linspace(0.1, 0.3, 10)
    return Known(bernoulli_log(6000, means, mean_delay=30.0, seed=seed), np.tile(means, (6000, 1)))


_TIDY = Untidy(displays=6000, days=2.5)
_RHYTHM = Untidy(displays=6000, days=2.5, rhythm=0.8, rate_by_hour=0.5)
_TIES = Untidy(displays=7000, days=0.12, stamp_s=60, by_action=True, in_files=True)
CASES = {
    "ten arms": Case(ten_arms, 480),
    "tidy": Case(untidy(_TIDY), 1500, _TIDY),
    "rhythm": Case(untidy(_RHYTHM), 1500),
    "drift": Case(untidy(Untidy(displays=6000, days=2.5, drift=0.6, logger=(0.5, 0.3, 0.2))), 900),
    "ties": Case(untidy(_TIES), 1200, _TIES),
    "crossing": Case(crossing, 2400),
}


def found_of(known: Known, case: Case, *, repeats: int, seed: int, **options: Any) -> Found:
    """Replay and compare the policies on a log."""
    done = compare(
        known.log,
        list(POLICIES),
        baseline=next(iter(POLICIES)),
        repeats=repeats,
        horizon=case.horizon,
        seed=seed,
        **{"bootstrap": 0, **options},
    )
    result, other = done.results
    assert result.rounds == other.rounds == case.horizon
    realised = [realised_of(known, one) for one in (result, other)]
    best = float(known.expected[: result.plan["displays_used"]].mean(axis=0).max())
    difference = done.differences[0].realised
    assert difference is not None
    truths = (
        (result.value, realised[0]),
        (result.regret, result.rounds * (best - realised[0])),
        (difference, realised[1] - realised[0]),
    )
    value = result.value
    return Found(
        value=value.estimate,
        regret=result.regret.estimate,
        realised=realised[0],
        width=value.high - value.low,
        held=tuple(_holds(interval, truth) for interval, truth in truths),
    )


def realised_of(known: Known, result: ReplayResult) -> float:
    """Return what the rounds of all repeats are expected to earn, on average."""
    display, action = (result.trajectory[name].to_numpy() for name in ("display_id", "action"))
    return float(known.expected[display, action].mean())


def live_values(case: Case, runs: int) -> Floats:
    """Return what the first policy is expected to earn in T rounds live, run by run; nothing where it is not played."""
    if case.live is None:
        return np.zeros(0)
    return np.array([live_value(case, run) for run in range(runs)])


def live_value(case: Case, run: int) -> float:
    """Return what the first policy is expected to earn in T rounds live, in one run."""
    assert case.live is not None
    return play_live(case.live, POLICIES[0], rounds=case.horizon, window_s=None, seed=50_000 + run)[0]


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high
