"""The tempting wrong way for each kind of untidiness, in a few lines of NumPy: what it gives, and the truth.

These numbers come from the log alone, as somebody who did not see the defect would take them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.untidy.defects import Rows, rows_of
from tests.untidy.kinds import KINDS, Kind
from tests.untidy.live import play_live
from tests.untidy.settings import HOUR_S
from tests.untidy.traffic import Floats, Ints, Traffic, draw_traffic, seen_within
from tests.untidy.truth import expected_rewards, value_of_fixed, value_of_random

Wrong = Callable[[Kind, Traffic, Rows, int], tuple[float, float]]
# Kinds that only a product that overdoes things gets wrong.
HARMLESS = {
    "tidy", "tidy, two contexts", "tidy, uneven logger", "tidy, two contexts, uneven logger", "rates by hour",
    "heavy revenue", "delays by action", "gap", "heavy tails",
}  # fmt: skip


def wrong_and_right(name: str, seed: int) -> tuple[float, float]:
    """Return what the tempting way gives on a log of a kind, and the truth."""
    kind = KINDS[name]
    traffic = draw_traffic(kind.untidy, seed)
    return TEMPTING[name](kind, traffic, rows_of(traffic, seed), seed)


def _rewards(rows: Rows) -> Floats:
    """Return the value of each display's conversions, shape (n,)."""
    return np.bincount(rows.conversion_of, weights=rows.conversion_value, minlength=len(rows.of))


def _all(traffic: Traffic) -> Ints:
    return np.arange(len(traffic.time))


def _window_of_mean_rate(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """Share of the conversions within as many displays as the window's time has on average."""
    displays = np.searchsorted(rows.time, rows.conversion_time, side="right") - 1 - rows.conversion_of
    window = (kind.window_s or 0) * (len(rows.of) - 1) / (rows.time[-1] - rows.time[0])
    return float((displays <= window).mean()), float(seen_within(kind.untidy, float(kind.window_s or 0))[0])


def _beginning(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """What the displays earn that even queues serve before the rarest action's runs dry."""
    rarest = int(np.bincount(rows.action).min())
    first = [np.flatnonzero(rows.action == k)[:rarest] for k in range(kind.untidy.n_actions)]
    reward = _rewards(rows)
    right = value_of_random(traffic, expected_rewards(traffic), _all(traffic))
    return float(np.mean([reward[at].mean() for at in first])), right


def _mean_where_shown(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """The last action's mean over its own displays, whenever and wherever these were."""
    last = kind.untidy.n_actions - 1
    window = None if kind.window_s is None else float(kind.window_s)
    right = value_of_fixed(expected_rewards(traffic, window_s=window), _all(traffic), last)
    return float(_rewards(rows)[rows.action == last].mean()), right


def _rounds_of_the_rarest(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """As many rounds as the rarest action has displays old enough to be judged, as a share of all."""
    old = rows.time <= rows.until - (kind.untidy.attribution_s or 0)
    return float(np.bincount(rows.action[old], minlength=3).min() / old.sum()), 1 / 3


def _matches_in_order(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """Share of the displays that match a choice which is held until one does, in the order of the file."""
    choice, matched, rng = 0, 0, np.random.default_rng(seed)
    for action in rows.action:
        if action == choice:
            matched, choice = matched + 1, int(rng.integers(kind.untidy.n_actions))
    return matched / len(rows.of), 1 / kind.untidy.n_actions


def _untold_money(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """Share of the rounds that UCB1 shows the best action in, told money instead of shares of the largest reward."""
    largest = float(rows.conversion_value.max())
    shares = [
        (play_live(kind.untidy, "ucb1", rounds=1500, window_s=None, seed=seed, scale=scale)[1] == 2).mean()
        for scale in (1.0, largest / 10)
    ]
    return float(shares[0]), float(shares[1])


def _sales_only(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """The logger's mean without what is taken back."""
    sold = float(np.maximum(rows.conversion_value, 0.0).sum() / len(rows.of))
    expected = expected_rewards(traffic)
    return sold, float((traffic.logger * expected).sum(axis=1).mean())


def _other_users(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """Squared standard errors of independent displays, up to 9, by which all users earn otherwise; 1 if they were."""
    reward = _rewards(rows)
    error = np.sqrt(reward.var() / len(reward))
    return float(min(((reward.mean() - np.mean(kind.untidy.means)) / error) ** 2, 9.0)), 1.0


def _clock_of_the_sample(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """What UCB1 earns in 1,500 rounds where the log's displays are all the traffic there is, and where they are not."""
    alone = replace(kind.untidy, displays=int(kind.untidy.displays * kind.untidy.sampled), sampled=1.0)
    wrong, right = (play_live(u, "ucb1", rounds=1500, window_s=None, seed=seed)[0] for u in (alone, kind.untidy))
    return wrong, right


def _one_law_for_all(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """The slowest action's mean, what was seen divided by the chance to see a conversion of whatever action."""
    u = kind.untidy
    left = np.minimum(rows.until - rows.time, u.attribution_s or 0)
    tau = np.stack([np.clip(left / (u.longest_s * s), 0, 1) for s in u.slowness or ()])
    pooled = (np.array(u.means)[:, None] * tau).sum(axis=0) / sum(u.means)
    some = (rows.action == 2) & (left > HOUR_S)
    return float((_rewards(rows) / np.maximum(pooled, 1e-9))[some].mean()), u.means[2]


def _rows_as_they_stand(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """The logger's mean."""
    expected = expected_rewards(traffic)
    return float(_rewards(rows).mean()), float((traffic.logger * expected).sum(axis=1).mean())


def _claimed_shares(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """What a policy that shows each context's best action earns, weighted by 1 / propensity as claimed."""
    best = np.where(traffic.context == 0, 2, 0)[rows.of]
    mine = rows.action == best
    right = expected_rewards(traffic)[_all(traffic), np.where(traffic.context == 0, 2, 0)].mean()
    return float((_rewards(rows) * mine / rows.propensity).mean()), float(right)


def _by_stamps(kind: Kind, traffic: Traffic, rows: Rows, seed: int) -> tuple[float, float]:
    """Share of the conversions whose stamps are no further apart than the window."""
    apart = rows.conversion_time - rows.time[rows.conversion_of]
    return float((apart <= (kind.window_s or 0)).mean()), float(seen_within(kind.untidy, float(kind.window_s or 0))[0])


TEMPTING: dict[str, Wrong] = {
    "daily rhythm": _window_of_mean_rate,
    "growth": _window_of_mean_rate,
    "drift of the rates": _beginning,
    "launch and retirement": _mean_where_shown,
    "newcomer": _rounds_of_the_rarest,
    "ties by minute, sorted by action": _matches_in_order,
    "ties by day, sorted by action": _matches_in_order,
    "revenue": _untold_money,
    "refunds": _sales_only,
    "few users": _other_users,
    "sample of the traffic": _clock_of_the_sample,
    "delays by action, young corrected": _one_law_for_all,
    "heavy tails, no window": _rows_as_they_stand,
    "hole in the overlap": _mean_where_shown,
    "swapped propensities": _claimed_shares,
    "stale propensities": _claimed_shares,
    "logger follows the hour": _mean_where_shown,
    "copied displays": _rows_as_they_stand,
    "copied conversions": _rows_as_they_stand,
    "outage": _rows_as_they_stand,
    "stray conversion": _rows_as_they_stand,
    "stamps coarser than the window": _by_stamps,
}
