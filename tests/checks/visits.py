"""Logs of users who come again, of known truth: what their earlier displays do to them, and what else goes with these.

Ten days, in seconds; conversions come within hours, and every display is followed for two days.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.checks.dependence import earlier
from evaluator.log import Log
from tests.checks.shops import DAY, HOUR
from tests.logs import build_log

Logger = Literal["uniform", "shares", "rotation", "rotation by user", "personal"]


@dataclass(frozen=True, kw_only=True)
class Visits:
    """Who comes how often, who logs, and what displays do to each other.

    Parameters
    ----------
    n, users
        Displays and users. Users have very different numbers of displays (exponential).
    rates
        Conversion rates of the actions at a user's first display.
    logger
        Who shows the actions: by chance, in turn (over all displays, or a user's), or what the user likes.
    same, any_
        Factor on a user's rate with each earlier display of the same action, and of any.
    spread, of_heavy
        Standard deviation of the log of users' own rates, and how these go with how often they come.
    taste
        The same of users' rates of each action.
    drift
        Factor on all rates at the end of the log.
    rhythm
        Size of the daily wave of traffic and of rates.
    grows, launched
        Whether users come to the site one after the other; whether the first action is shown from day 4 on alone.
    leaves
        Share of a user's displays that are never shown once the user converted.
    """

    n: int = 10_000
    users: int = 600
    rates: tuple[float, ...] = (0.08, 0.11, 0.14, 0.17, 0.2)
    logger: Logger = "uniform"
    same: float = 1.0
    any_: float = 1.0
    spread: float = 0.0
    of_heavy: float = 0.0
    taste: float = 0.0
    drift: float = 1.0
    rhythm: float = 0.0
    grows: bool = False
    launched: bool = False
    leaves: float = 0.0

    def log(self, seed: int, *, named: bool = True) -> Log:
        """Return a log, with the column ``user`` or without."""
        rng, n, k = np.random.default_rng([seed, 29]), self.n, len(self.rates)
        weight = rng.exponential(1.0, self.users)
        own = np.exp(self.spread * rng.normal(size=self.users) + self.of_heavy * np.log(weight + 0.05))
        taste = np.exp(self.taste * rng.normal(size=(self.users, k)))
        at = rng.random(3 * n)
        wave = self.rhythm * np.sin(20 * np.pi * at)
        at = np.sort(rng.choice(at[rng.random(3 * n) < 0.5 * (1 + wave)], n, replace=False))
        user = self._users(rng, at, weight)
        p = np.full((n, k), 1.0 / k)
        if self.logger == "shares":
            p *= np.arange(1.0, k + 1.0)
        if self.logger == "personal":
            p = taste[user] ** 1.5
        if self.launched:
            p[at < 0.4, 0] = 0.0
        p /= p.sum(axis=1, keepdims=True)
        action = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), k - 1)
        if self.logger.startswith("rotation"):
            action = (np.arange(n) if self.logger == "rotation" else earlier(user) + user) % k
        rate = np.array(self.rates)[action] * own[user] / own.mean() * taste[user, action]
        rate *= self.drift**at * (1 + self.rhythm * np.sin(20 * np.pi * at))
        rate *= self.same ** earlier(user * k + action) * self.any_ ** earlier(user)
        sold = rng.random(n) < np.minimum(rate, 1.0)
        if self.leaves:
            first = np.full(self.users, n)
            np.minimum.at(first, user[sold], np.flatnonzero(sold))
            stays = (np.arange(n) <= first[user]) | (rng.random(n) >= self.leaves)
            at, user, action, sold, p = at[stays], user[stays], action[stays], sold[stays], p[stays]
        time = (at * 10 * DAY).astype(np.int64)
        of = np.flatnonzero(sold)
        log = build_log(
            time=time, action=action, n_actions=k, tick="s", conversion_display=of,
            conversion_time=time[of] + rng.exponential(3 * HOUR, len(of)).astype(np.int64),
            propensity=p[np.arange(len(action)), action] if self._told else None,
            observed_until=int(time[-1]) + 2 * DAY, attribution_window=2 * DAY,
        )  # fmt: skip
        return log if not named else replace(log, displays=log.displays.append_column("user", _names(user))).validated()

    @property
    def _told(self) -> bool:
        return self.logger in ("shares", "personal") or self.launched

    def _users(
        self, rng: np.random.Generator, at: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """Return whose displays these are, among those who came before."""
        start = np.sort(rng.random(self.users) * 0.8) if self.grows else np.zeros(self.users)
        came = np.maximum(np.searchsorted(start, at, side="right"), 1)
        upto = np.cumsum(weight)
        return np.searchsorted(upto, rng.random(len(at)) * upto[came - 1])


def _names(user: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(np.char.add("u", user.astype(str)))


UNTIDY = {
    "nobody differs": Visits(),
    "heavy users buy less, rates fall, shares": Visits(
        spread=0.8, of_heavy=-0.4, drift=0.5, rhythm=0.5, logger="shares"
    ),
    "users come later and later, a launch, a logger that knows them": Visits(
        spread=0.5, of_heavy=-0.3, taste=0.8, drift=0.5, grows=True, launched=True, logger="personal",
        rates=(0.05, 0.06, 0.07, 0.08, 0.1),
    ),
    "heavy users buy more, rates rise": Visits(
        spread=0.5, of_heavy=0.3, drift=1.8, grows=True, rhythm=0.5, rates=(0.05, 0.06, 0.07, 0.08, 0.1)
    ),
    "actions in turn": Visits(logger="rotation by user", spread=0.5, of_heavy=-0.4, drift=0.6),
    "buyers leave": Visits(spread=0.5, leaves=0.9, n=20_000),
}  # fmt: skip
WORN = {
    "each display of an action takes 15 %": Visits(n=20_000, users=1_000, same=0.85),
    "the same, actions in turn": Visits(n=20_000, users=1_000, same=0.85, logger="rotation"),
    "the same, in turn for each user": Visits(n=20_000, users=1_000, same=0.85, logger="rotation by user"),
    "the same, a logger that knows users": Visits(n=20_000, users=1_000, same=0.85, logger="personal", taste=0.8),
    "each display takes 3 %": Visits(n=20_000, users=1_000, any_=0.97, spread=0.5, of_heavy=0.3, rhythm=0.5),
}
