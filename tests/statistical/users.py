"""Logs of users whose displays hang together, with known truth, and how often intervals hold on them.

A user's conversion rates are those of the actions plus a number of his own, the same for all actions; his displays
follow one another, or are spread over the log. Or it is days that have such numbers. What intervals of expected and
weighted values are for is new users: as many, with as many displays each.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator import compare
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.values.resampled import expected_differences
from tests.logs import build_log

MEANS, MEAN_DELAY, WINDOW = (0.5, 0.3, 0.4), 60.0, 100
POLICIES = ("ucb1", "thompson")
FINAL = "last:50%"
KINDS = ("expected value", "difference of expected values", "doubly robust", "frozen, DR", "frozen, SNIPS", "logger")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Who a log's displays are shown to.

    Parameters
    ----------
    name
        In words.
    users, displays
        Users, and displays of each; with `uneven`, displays of each on average.
    effect
        What a user's rates are above or below those of the actions; 0 for independent displays.
    spread
        Whether a user's displays are spread over the log.
    uneven
        Whether users have very different numbers of displays (lognormal, sigma 1).
    """

    name: str
    users: int = 200
    displays: int = 100
    effect: float = 0.2
    spread: bool = True
    uneven: bool = False

    @property
    def horizon(self) -> int:
        """Rounds that every replay reaches: one display in as many as there are actions is accepted, up to chance."""
        expected = self.users * self.displays / len(MEANS)
        return int(expected - 4 * expected**0.5)

    def log(self, seed: int) -> Log:
        """Return a log with the column ``user``."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(62,)))
        n, k = self.users * self.displays, len(MEANS)
        share = np.exp(rng.standard_normal(self.users)) if self.uneven else np.ones(self.users)
        edges = np.rint(np.cumsum(share) / share.sum() * n).astype(np.int64)
        user = np.searchsorted(edges, np.arange(n), side="right")
        if self.spread:
            user = rng.permutation(user)
        own = self.effect * rng.choice([-1.0, 1.0], self.users)
        expected = np.array(MEANS) + own[user][:, None]
        action = rng.integers(0, k, n)
        sold = np.flatnonzero(rng.random(n) < expected[np.arange(n), action])
        late = rng.geometric(1 / (1 + MEAN_DELAY), len(sold)) - 1
        log = build_log(
            time=np.arange(n), action=action, conversion_display=sold, conversion_time=sold + late, n_actions=k,
            expected_reward=expected,
        )  # fmt: skip
        return replace(log, displays=log.displays.append_column("user", pa.array(np.char.add("u", user.astype(str)))))


CROWDS = (
    Crowd(name="200 users, spread"),
    Crowd(name="200 users, one after the other", spread=False),
    Crowd(name="200 users of uneven size", uneven=True),
    Crowd(name="20 users, spread", users=20, displays=1000),
    Crowd(name="40 days", users=40, displays=500, effect=0.1, spread=False),
    Crowd(name="independent, 200 users", effect=0.0),
)


def replayed(crowd: Crowd, seed: int, **options: Any) -> Any:
    """Replay both policies on a log of a crowd."""
    asked = {"sampler": "rejection", "seed": seed, "horizon": crowd.horizon, "bootstrap": 0, **options}
    return compare(crowd.log(seed), POLICIES, baseline=POLICIES[0], windows=[WINDOW], **asked).results


def values(crowd: Crowd, seed: int) -> tuple[float, ...]:
    """Return the value of both policies on a log of a crowd."""
    return tuple(r.value.estimate for r in replayed(crowd, seed))


@cache
def expected_values(crowd: Crowd, runs: int) -> tuple[float, float]:
    """Return what both policies earn on average, by as many replays of new users, none of them judged."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(partial(values, crowd), range(10**6, 10**6 + runs)))
    first, second = np.mean(found, axis=0)
    return float(first), float(second)


class Held(NamedTuple):
    """Of each interval of `KINDS` on each log, shape (logs, 6)."""

    held: npt.NDArray[np.bool_]
    width: npt.NDArray[np.float64]


def intervals(
    crowd: Crowd, truth: tuple[float, float], bootstrap: int, by: str | None, seed: int
) -> tuple[tuple[float, float], ...]:
    """Return of each interval of `KINDS` on one log whether it holds, and its width; nan where there is none."""
    first, second = replayed(crowd, seed, bootstrap=bootstrap, cluster_by=by, doubly_robust=True)
    learned = replayed(crowd, seed, horizon=None, cluster_by=by, final=FINAL)[0]
    assert first.expected_value is not None
    assert first.doubly_robust is not None
    assert learned.final is not None
    difference = expected_differences([first, second])[1] if first.rounds == second.rounds else None
    # What the policy showed, and shows once it is frozen, to new users: at the rates of the actions alone.
    shown = np.bincount(to_numpy(first.trajectory["action"]), minlength=len(MEANS)) / first.rounds
    frozen = float(np.dot(learned.final.action_share, MEANS))
    truths = (truth[0], truth[1] - truth[0], float(shown @ MEANS), frozen, frozen, float(np.mean(MEANS)))
    found = (
        first.expected_value, difference, first.doubly_robust.value, learned.final.dr.value, learned.final.snips.value,
        learned.final.logging.value,
    )  # fmt: skip
    return tuple(
        (np.nan, np.nan) if interval is None else (interval.low <= true <= interval.high, interval.high - interval.low)
        for interval, true in zip(found, truths, strict=True)
    )


def coverage(crowd: Crowd, *, by: str | None, logs: int, bootstrap: int, runs: int) -> Held:
    """Return how often the intervals hold for new users, clustered by a column or not at all."""
    truth = expected_values(crowd, runs)
    with ThreadPoolExecutor(2) as pool:
        return together(list(pool.map(partial(intervals, crowd, truth, bootstrap, by), range(logs))))


def together(logs: Sequence[tuple[tuple[float, float], ...]]) -> Held:
    """Return how often the intervals of some logs (`intervals`) hold."""
    found = np.array(logs)
    return Held(found[:, :, 0], found[:, :, 1])


def realised(crowd: Crowd, seed: int) -> list[bool]:
    """Return whether the intervals of realised value, uplift and difference hold for the users of a log."""
    log = crowd.log(seed)
    found = compare(
        log, POLICIES, baseline=POLICIES[0], windows=[WINDOW], sampler="rejection", seed=seed, horizon=crowd.horizon,
        bootstrap=0,
    )  # fmt: skip
    expected, all_displays = log.column("expected_reward"), np.arange(len(log))
    first, second = (
        float(expected[to_numpy(r.trajectory["display_id"]), to_numpy(r.trajectory["action"])].mean())
        for r in found.results
    )
    of_logger = float(expected[all_displays, log.column("action")].mean())
    difference = found.differences[0].realised
    assert difference is not None
    truths = (
        (found.results[0].value, first),
        (found.results[0].uplift, first - of_logger),
        (difference, second - first),
    )
    return [interval.low <= true <= interval.high for interval, true in truths]
