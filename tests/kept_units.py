"""The bandit problem played live where a unit keeps its action, without a log: what a replay with `keep_for` must be.

Nothing of the replayer is used, only the policies' own functions. Units come by a Poisson process, and come back after
exponential times, each a chance number of times. They did so long before: traffic that began with the log would grow in
it, and a replay passes through what grows with the log's calendar faster than a live run (Thompson +27 %). At the first
display of a unit, and at the first one after its action has lapsed, the policy chooses; at the others the unit sees
what it was given. Every display is a round: the policy is shown what was displayed, and told what it earned. A unit's
rates have a part of its own.

`Way` has mistakes, too: what the same loop lives where a replay puts later displays, or choices, elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.compiling import compiled
from evaluator.log import Log
from evaluator.policies import dispatch
from evaluator.policies.base import Setting
from tests.logs import build_log
from tests.scheduled import START, Floats, Ints

Way = Literal["right", "share of the units", "order of the log", "asked at each display", "first displays alone"]
# Seconds between two displays, on average.
PACE = 100.0


@dataclass(frozen=True, kw_only=True)
class World:
    """Units that come back, and what actions earn of them.

    Parameters
    ----------
    means
        Reward probabilities, shape (K,); of as many linear arms where there is a dimension.
    mean_delay
        Of conversions, in displays.
    again
        Probability that one more display of a unit follows.
    gap
        Displays between two of a unit, on average.
    dimension
        0 for none, or each action has a fresh unit vector at each display, and theta is 1/sqrt(d).
    effect
        What a unit's rates are above or below those of the actions.
    lapse
        Displays, on average, after which a unit is asked anew; None for never.
    """

    means: tuple[float, ...]
    mean_delay: float
    again: float
    gap: float
    dimension: int = 0
    effect: float = 0.1
    lapse: float | None = None


class Rows(NamedTuple):
    """Displays: when, of which unit, and what each action would earn of them; vectors have shape (n, K, d).

    `asked` is the display at which the action was chosen that is seen here.
    """

    shown_at: Floats
    unit: Ints
    asked: Ints
    event_at: Floats
    luck: Floats
    expected: Floats
    vectors: Floats


def draw_rows(world: World, n: int, rng: np.random.Generator) -> Rows:
    """Return the first n displays of traffic that is as dense then as ever: some units came before, and come back."""
    each = 1.0 / (1.0 - world.again)
    before = int(10 * world.gap)  # for ten times as long as a unit stays
    units = before + int(n / each + 8 * np.sqrt(n) + 4 * world.gap)
    arrived = np.cumsum(rng.exponential(PACE * each, units))
    arrived -= arrived[before - 1]
    unit = np.repeat(np.arange(units), rng.geometric(1.0 - world.again, units))
    later = np.r_[False, unit[1:] == unit[:-1]]
    gaps = np.cumsum(np.where(later, rng.exponential(PACE * world.gap, len(unit)), 0.0))
    start = np.flatnonzero(~later)
    shown_at = arrived[unit] + gaps - gaps[start][unit]
    order = np.argsort(shown_at, kind="stable")
    order = order[shown_at[order] >= 0.0][:n]
    assert len(order) == n
    assert shown_at[order[-1]] < arrived[-1]
    shown_at, unit = np.floor(shown_at[order]), unit[order]
    asked = _asked(shown_at, unit, np.full(units, -1), np.inf if world.lapse is None else np.rint(world.lapse * PACE))
    k, d = len(world.means), world.dimension
    vectors = rng.random((n, k if d else 1, d))
    expected = np.tile(np.array(world.means), (n, 1))
    if d:
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        expected = 0.8 * vectors @ np.full(d, 1.0 / np.sqrt(d))
    expected = expected + world.effect * rng.choice([-1.0, 1.0], units)[unit][:, None]
    event_at = shown_at + np.floor(rng.exponential(PACE * world.mean_delay, n))
    return Rows(shown_at, unit, asked, event_at, rng.random(n), expected, vectors)


@compiled
def _asked(shown_at: Floats, unit: Ints, since: Ints, lapse: float) -> Ints:
    asked = np.arange(len(unit))
    for row in range(len(unit)):
        before = since[unit[row]]
        if before >= 0 and shown_at[row] - shown_at[before] < lapse:
            asked[row] = before
        else:
            since[unit[row]] = row
    return asked


def draw_log(world: World, n: int, seed: int, logger: npt.ArrayLike | None = None) -> Log:
    """Return a log of n displays, stamped in seconds, with the column ``user``; each unit kept its chance action."""
    rng = np.random.default_rng([seed, 1])
    rows = draw_rows(world, n, rng)
    k = len(world.means)
    p = np.full(k, 1.0 / k) if logger is None else np.asarray(logger, np.float64)
    action = rng.choice(k, n, p=p)[rows.asked]
    sold = np.flatnonzero(rows.luck < rows.expected[np.arange(n), action])
    log = build_log(
        time=START + rows.shown_at.astype(np.int64),
        action=action,
        conversion_display=sold,
        conversion_time=START + rows.event_at[sold].astype(np.int64),
        n_actions=k,
        propensity=None if logger is None else p[action],
        action_set=rows.vectors if world.dimension else None,
        expected_reward=rows.expected,
        attribution_window=int(100 * world.mean_delay * PACE),  # that none outlasts
        tick="s",
        reward_max=1.0,
    )
    return replace(log, displays=log.displays.append_column("user", pa.array(np.char.add("u", rows.unit.astype(str)))))


def displays_for(world: World, rounds: int) -> int:
    """Return how many displays give that many rounds: a K-th of the units match; the slack is 8 deviations."""
    each = 1.0 / (1.0 - world.again)
    waiting = each * world.gap * each
    return len(world.means) * int(rounds + waiting + 8 * (2 * each * rounds) ** 0.5)


def live_regrets(
    policy: Any,
    setting: Setting,
    world: World,
    *,
    runs: int,
    seed: int,
    push_every: int | str = 1,
    way: Way = "right",
    first_alone: bool = False,
) -> Floats:
    """Return the pseudo-regret after `setting.horizon` rounds of each run, shape (runs,).

    Parameters
    ----------
    push_every
        Rounds between two pushes, or hours ("8h"); the policy learns at pushes alone. 1 for one that learns at each
        event.
    way
        "right"; or for a rollout on a share of the units, as large as the share that is accepted; or the mistake of a
        replay.
    first_alone
        Return what a round is worth at displays where the policy was asked instead.
    """
    out = np.zeros(runs)
    for run, stream in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        rng, own = (np.random.default_rng(s) for s in stream.spawn(2))
        rows, due = _lived(world, setting.horizon, way, rng)
        due = np.where(due - np.arange(len(due)) > setting.window, len(due), due)
        regret, worth, asked = _play(
            policy.start(setting), own, rows.asked, rows.luck, rows.expected, rows.vectors, due,
            _pushed(rows.shown_at, push_every), push_every != 1,
        )  # fmt: skip
        out[run] = worth / asked if first_alone else regret
    return out


def _pushed(shown_at: Floats, every: int | str) -> npt.NDArray[np.bool_]:
    """Return before which rounds a push comes, shape (n,)."""
    if isinstance(every, int):
        return np.asarray(np.arange(len(shown_at)) % every == 0)
    passed = (shown_at - shown_at[0]) // (3600.0 * int(every.removesuffix("h")))
    return np.asarray(np.diff(passed, prepend=0.0) > 0)


def _lived(world: World, horizon: int, way: Way, rng: np.random.Generator) -> tuple[Rows, Ints]:
    """Return the rounds of a run and the rounds in which they are rewarded."""
    k = len(world.means)
    if way in ("right", "asked at each display"):
        rows = draw_rows(world, horizon, rng)
        if way != "right":
            rows = rows._replace(asked=np.arange(horizon))
        return rows, np.searchsorted(rows.shown_at, rows.event_at, side="right") - 1
    # What a replay takes of a log with even propensities does not depend on the policy: every K-th unit, by chance.
    alone = way == "first displays alone"
    log = draw_rows(world, displays_for(world, horizon) * (4 if alone else 1), rng)
    taken = (rng.random(len(log.asked)) < 1.0 / k)[log.asked]
    if alone:
        taken &= log.asked == np.arange(len(log.asked))
    kept = np.flatnonzero(taken)[:horizon]
    assert len(kept) == horizon
    place = np.full(len(taken), -1)
    place[kept] = np.arange(horizon)
    late = np.searchsorted(log.shown_at, log.event_at, side="right") - 1 - np.arange(len(taken))
    rows = Rows._make(column[kept] for column in log)
    if way == "share of the units":
        due = np.searchsorted(rows.shown_at, rows.event_at, side="right") - 1
        return rows._replace(asked=place[rows.asked]), due
    return rows._replace(asked=place[rows.asked]), np.arange(horizon) + late[kept]


@compiled
def _play(
    state: Any,
    own: np.random.Generator,
    asked: Ints,
    luck: Floats,
    expected: Floats,
    vectors: Floats,
    due: Ints,
    pushed: npt.NDArray[np.bool_],
    scheduled: bool,
) -> tuple[float, float, int]:
    n = expected.shape[0]
    first = np.full(n, -1)  # conversions that fall into a round, named by their own rounds
    following = np.full(n, -1)
    actions = np.zeros(n, np.int64)
    wide = vectors.shape[2] > 0
    passes = dispatch.ages(state)
    regret, worth, choices, known = 0.0, 0.0, 0, 0
    for r in range(n):
        if pushed[r]:
            while known < r:
                if passes and scheduled:
                    dispatch.begin(state, own)
                dispatch.shown(state, vectors[known], actions[known])
                s = first[known]
                while s >= 0:
                    dispatch.told(state, vectors[s, actions[s] if wide else 0], actions[s], known - s, 1.0)
                    s = following[s]
                known += 1
        dispatch.begin(state, own)
        if asked[r] == r:
            actions[r] = dispatch.choose(state, vectors[r])
            worth += expected[r, actions[r]]
            choices += 1
        else:
            actions[r] = actions[asked[r]]
        regret += expected[r].max() - expected[r, actions[r]]
        if luck[r] < expected[r, actions[r]] and due[r] < n:
            following[r] = first[due[r]]
            first[due[r]] = r
    return regret, worth, choices
