"""The bandit problem played live where a policy learns at pushes, without a log: what a replay of a schedule must be.

Nothing of the replayer is used, only the policies' own functions. Traffic arrives in time: evenly, with a daily rhythm,
or growing; each arrival that the policy serves is a round. Production pushes what was learned at times of its own. At a
push the policy is shown its rounds and told their conversions in the order in which they happened, up to the push less
the lag. Until the next push it serves from what it then knows; draws and ties are new each round.

`Ways` are mistakes: what the same loop lives where a replay times pushes, or feedback, as it should not.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import compiled
from evaluator.log import Log
from evaluator.policies import dispatch
from evaluator.policies.base import Setting
from tests.logs import build_log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Way = Literal[
    "right",
    "log's calendar",
    "mean rate",
    "display's own time",
    "delays in displays",
    "displays at once",
    "draws held",
]
HOUR, DAY = 3600.0, 86_400.0
# 2 March 2026, 10:00 UTC: seven hours after a nightly push.
START = 1_772_445_600


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Arrivals of a Poisson process in time.

    Parameters
    ----------
    per_day
        Arrivals a day at the beginning.
    rhythm
        Amplitude of the day: 0 for none; fewest arrivals at 03:00.
    growth, over
        The rate grows to `growth` times the first one in so many days, evenly in its logarithm, and stays there.
    """

    per_day: float
    rhythm: float = 0.0
    growth: float = 1.0
    over: float = 1.0

    @functools.cache  # noqa: B019 (a few rates, for thousands of logs)
    def _expected(self) -> tuple[Floats, Floats]:
        """Return seconds from the start, by quarters of an hour over two years, and arrivals to be expected by then."""
        step = DAY / 96
        at = np.arange(0.0, 730 * DAY, step)
        hour = (START % DAY + at + step / 2) % DAY / HOUR
        rate = 1.0 + self.rhythm * np.sin(2 * np.pi * (hour - 9.0) / 24.0)
        rate *= self.growth ** np.minimum((at + step / 2) / (self.over * DAY), 1.0)
        return at, np.concatenate([[0.0], np.cumsum(rate[:-1]) * self.per_day * step / DAY])

    def arrivals(self, n: int, rng: np.random.Generator) -> Floats:
        """Return the times of the first n arrivals, seconds from the start, shape (n,)."""
        at, expected = self._expected()
        times: Floats = np.interp(np.cumsum(rng.exponential(size=n)), expected, at, right=np.nan)
        assert not np.isnan(times[-1])
        return times

    def mean_rate(self, n: int) -> float:
        """Return the arrivals a second to be expected until n have come."""
        at, expected = self._expected()
        return n / float(np.interp(n, expected, at))


@dataclass(frozen=True, kw_only=True)
class World:
    """Traffic, what actions earn, and when: the delays are exponential in time.

    Parameters
    ----------
    means
        Reward probabilities, shape (K,); of as many linear arms where there is a dimension.
    dimension
        0 for none, or each action has a fresh unit vector at each arrival, and theta is 1/sqrt(d).
    sets
        Whether an action is eligible by chance: the first at a third of the arrivals, the last at nine tenths.
    mean_delay
        Seconds.
    """

    traffic: Traffic
    means: tuple[float, ...]
    mean_delay: float
    dimension: int = 0
    sets: bool = False


class Rows(NamedTuple):
    """Arrivals: when, and what each action would earn of them.

    `luck` decides of an action whether it converts, `event_at` when it would. Vectors have shape (n, K, d).
    """

    shown_at: Floats
    event_at: Floats
    luck: Floats
    expected: Floats
    vectors: Floats
    eligible: npt.NDArray[np.bool_]


def draw_rows(world: World, shown_at: Floats, rng: np.random.Generator) -> Rows:
    """Return what happens at arrivals at these times."""
    n, k, d = len(shown_at), len(world.means), world.dimension
    vectors = rng.random((n, k if d else 1, d))
    expected = np.tile(np.array(world.means), (n, 1))
    if d:
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        expected = vectors @ np.full(d, 1.0 / np.sqrt(d))
    eligible = np.ones((n, k), np.bool_)
    if world.sets:
        eligible = rng.random((n, k)) < np.linspace(0.33, 0.9, k)
        eligible[~eligible.any(axis=1), 0] = True
    return Rows(shown_at, shown_at + rng.exponential(world.mean_delay, n), rng.random(n), expected, vectors, eligible)


def draw_log(world: World, n: int, seed: int) -> Log:
    """Return a log of n displays, stamped in seconds, whose actions were chosen evenly among the eligible ones."""
    rng = np.random.default_rng([seed, 1])
    rows = draw_rows(world, world.traffic.arrivals(n, rng), rng)
    action = np.where(rows.eligible, rng.random(rows.eligible.shape), -1.0).argmax(axis=1)
    shown = np.flatnonzero(rows.luck < rows.expected[np.arange(n), action])
    return build_log(
        time=START + rows.shown_at.astype(np.int64),
        action=action,
        conversion_display=shown,
        conversion_time=START + rows.event_at[shown].astype(np.int64),
        n_actions=len(world.means),
        action_set=rows.vectors if world.dimension else None,
        eligible=rows.eligible if world.sets else None,
        expected_reward=rows.expected,
        attribution_window=int(100 * world.mean_delay),  # that none outlasts
        tick="s",
        reward_max=1.0,
    )


def displays_for(rounds: int, n_actions: int) -> int:
    """Return how many displays give that many matches: a K-th of them match, and the slack is 6 deviations."""
    return n_actions * (rounds + int(6 * rounds**0.5))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When a policy learns: `every` "1d@03:00", "1h" or rounds, of what is older than a `lag` in seconds, or rounds."""

    every: str | int
    lag: float = 0.0
    lag_rounds: int = 0

    def pushes(self, shown_at: Floats) -> tuple[Ints, Floats]:
        """Return before which rounds pushes come, counted from 0, and the times up to which each of them teaches."""
        n = len(shown_at)
        if isinstance(self.every, int):
            rounds = np.arange(self.every, n, self.every)
            times = np.nextafter(shown_at[rounds], -np.inf)
        else:
            step, first = (DAY, 3 * HOUR - START % DAY) if self.every == "1d@03:00" else (HOUR, shown_at[0])
            times = np.arange(first, shown_at[-1] + step, step)
            rounds = np.searchsorted(shown_at, times)
        if self.lag_rounds:
            cut = np.where(rounds > self.lag_rounds, shown_at[np.minimum(rounds, n) - self.lag_rounds], -np.inf)
            return rounds, np.nextafter(cut, -np.inf)
        return rounds, times - self.lag


def live_regrets(
    policy: Any,
    setting: Setting,
    world: World,
    schedule: Schedule,
    *,
    runs: int,
    seed: int,
    share: float = 1.0,
    window: float | None = None,
    way: Way = "right",
) -> Floats:
    """Return the pseudo-regret after `setting.horizon` rounds of each run, shape (runs,).

    Parameters
    ----------
    share
        Share of the arrivals that the policy serves.
    window
        Cut-off in seconds; None for the setting's, which counts rounds.
    way
        "right", or the mistake of a replay that accepts a K-th of the displays of a log.
    """
    out = np.zeros(runs)
    for run, stream in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        rng, own = (np.random.default_rng(s) for s in stream.spawn(2))
        rows, (push_at, push_cut) = _timed(world, schedule, setting.horizon, share, way, rng)
        due = np.searchsorted(rows.shown_at, rows.event_at, side="right") - 1
        age = due - np.arange(len(due))
        late = age > setting.window if window is None else rows.event_at - rows.shown_at > window
        due[late] = len(due)
        state = policy.start(setting)
        hold, at_once = way == "draws held", way == "displays at once"
        out[run] = _play(state, own, *rows, due, push_at, push_cut, world.sets, hold, at_once)
    return out


def _timed(
    world: World, schedule: Schedule, horizon: int, share: float, way: Way, rng: np.random.Generator
) -> tuple[Rows, tuple[Ints, Floats]]:
    """Return the rounds of a run, its pushes, and the times up to which they teach: as they are, or by a mistake."""
    traffic, k = world.traffic, len(world.means)
    if way in ("right", "displays at once", "draws held"):
        arrivals = traffic.arrivals(int((horizon + 6 * horizon**0.5) / share) if share < 1 else horizon, rng)
        served = np.flatnonzero(rng.random(len(arrivals)) < share)[:horizon]
        assert len(served) == horizon
        rows = draw_rows(world, arrivals[served], rng)
        return rows, schedule.pushes(rows.shown_at)
    # What is accepted of a log with even propensities does not depend on the policy: every K-th display, by chance.
    log = traffic.arrivals(displays_for(horizon, k), rng)
    accepted = np.flatnonzero(rng.random(len(log)) < 1.0 / k)[:horizon]
    assert len(accepted) == horizon
    rows = draw_rows(world, log[accepted], rng)
    if way == "log's calendar":
        return rows, schedule.pushes(rows.shown_at)
    clock = log[:horizon]
    event_at = clock + (rows.event_at - rows.shown_at)
    if way == "delays in displays":
        # A conversion comes as many rounds after its round as displays of the log lie between.
        due = np.arange(horizon) + np.searchsorted(log, rows.event_at, side="right") - 1 - accepted
        event_at = np.where(due < horizon, np.nextafter(clock[np.minimum(due + 1, horizon - 1)], -np.inf), np.inf)
        return rows._replace(shown_at=clock, event_at=event_at), schedule.pushes(clock)
    assert not isinstance(schedule.every, int)
    step = DAY if schedule.every == "1d@03:00" else HOUR
    if way == "mean rate":
        mean = traffic.mean_rate(len(log))
        at = np.arange(round(step * mean), horizon, round(step * mean))
    else:  # after each push as many rounds as the log has displays from the accepted one to the next push
        times, found = np.arange(3 * HOUR - START % DAY, log[-1] + 2 * DAY, DAY), [0]
        while found[-1] < horizon:
            here = accepted[found[-1]]
            following = times[np.searchsorted(times, log[here], side="right")]
            found.append(found[-1] + max(int(np.searchsorted(log, following) - here), 1))
        at = np.array(found[1:-1], np.int64)
    return rows._replace(shown_at=clock, event_at=event_at), (at, np.nextafter(clock[at], -np.inf) - schedule.lag)


@compiled
def _play(
    state: Any,
    own: np.random.Generator,
    shown_at: Floats,
    event_at: Floats,
    luck: Floats,
    expected: Floats,
    vectors: Floats,
    eligible: npt.NDArray[np.bool_],
    due: Ints,
    push_at: Ints,
    push_cut: Floats,
    sets: bool,
    hold: bool,
    at_once: bool,
) -> float:
    n, k = expected.shape
    first = np.full(n, -1)  # conversions that fall into a round, named by their own rounds, in the order of their times
    following = np.full(n, -1)
    actions = np.zeros(n, np.int64)
    known = 0  # rounds that the policy was shown
    push = 0
    passes = dispatch.ages(state)
    wide = vectors.shape[2] > 0
    regret = 0.0
    for r in range(n):
        fresh = r == 0
        while push < len(push_at) and push_at[push] <= r:
            cut = push_cut[push]
            push += 1
            fresh = True
            told = 0 if at_once else known - 1
            while True:
                if told >= 0:
                    s = first[told]
                    while s >= 0 and event_at[s] <= cut:
                        dispatch.told(state, vectors[s, actions[s] if wide else 0], actions[s], told - s, 1.0)
                        s = following[s]
                    first[told] = s
                told += 1
                if told >= r or shown_at[told] > cut:
                    break
                if not at_once:
                    if passes:
                        dispatch.begin(state, own)
                    dispatch.shown(state, vectors[told], actions[told])
                    known += 1
        if fresh or not hold:
            if sets:
                dispatch.begin_among(state, own)
            else:
                dispatch.begin(state, own)
        if sets:
            action, top, ties, best = -1, -np.inf, 0, 0.0
            for a in range(k):
                if eligible[r, a]:
                    best = max(best, expected[r, a])
                    score = dispatch.score_among(state, vectors[r], a)
                    ties = ties + 1 if score == top and action >= 0 else 1
                    if action < 0 or score > top or (score == top and own.random() * ties < 1.0):
                        action, top = a, score
        else:
            action, best = dispatch.choose(state, vectors[r]), expected[r].max()
        actions[r] = action
        regret += best - expected[r, action]
        if at_once:
            dispatch.shown(state, vectors[r], action)
        if luck[r] < expected[r, action] and due[r] < n:
            before, s = -1, first[due[r]]
            while s >= 0 and event_at[s] <= event_at[r]:
                before, s = s, following[s]
            following[r] = s
            if before < 0:
                first[due[r]] = r
            else:
                following[before] = r
    return regret
