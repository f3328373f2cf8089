"""Paired weighted differences on logs of known truth: ``python -m tests.bench.weighted_differences``.

A world draws traffic, what its logger showed with which propensities, and rewards; A and B are two policies that do not
learn, B most often the logger itself. Of each world the table says how far the estimates are off on average, on which
share of the logs the 95 % interval held, on which it lay wholly above or below the truth, and on which it did so by an
end that anything is concluded from; what an interval that knows nothing of users and of skewness would have held; how
many times as wide the interval of the two values unpaired is; and that of the displays that a replay matches. Logs with
too few rewards give no interval.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np

from evaluator.estimates.weighted import mean_value, snips
from evaluator.estimates.weighted_difference import influence, paired_values
from tests.bench.spread import add_options, spread_by
from tests.bench.tables import Row, print_table

_TRUTH_OF = 1_000_000
_KINDS = 4


class Logged(NamedTuple):
    """A log as arrays, shape (n,): rewards, propensities, probabilities under A and B (None: the logger), clusters."""

    reward: np.ndarray
    propensity: np.ndarray
    a: np.ndarray
    b: np.ndarray | None
    clusters: np.ndarray | None


class World(NamedTuple):
    """A world of displays of four kinds, whose rates by kind and action are the same in all its logs.

    Parameters
    ----------
    n, actions
        Number of displays of a log, and of actions.
    rate, spread
        Typical rate of conversion, and the standard deviation of its logarithm over kinds and actions.
    skewed
        How uneven the logger is: 0 for uniform.
    target, against
        Names of the policies A and B, of `_policies`.
    money
        Standard deviation of the logarithm of a conversion's value; 0 for conversions worth 1.
    users
        Largest number of displays of a user, who has a liking of their own; 0 where displays are independent.
    sets
        Whether each display has its own eligible actions.
    """

    n: int = 20_000
    actions: int = 5
    rate: float = 0.05
    spread: float = 0.5
    skewed: float = 0.0
    target: str = "fixed"
    against: str = "logger"
    money: float = 0.0
    users: int = 0
    sets: bool = False

    def draw(self, seed: int) -> Logged:
        """Draw a log."""
        rng = np.random.default_rng([seed, 11])
        kind, liking, sets, user = self._traffic(rng, self.n)
        policies = self._policies()
        chances, a = (_among(policies[name][kind], sets) for name in ("logger", self.target))
        shown = (rng.random((self.n, 1)) > np.cumsum(chances, axis=1)).sum(axis=1).clip(max=self.actions - 1)
        rows = np.arange(self.n)
        reward = (rng.random(self.n) < np.minimum(self._rates()[kind, shown] * liking, 1.0)).astype(float)
        if self.money:
            reward *= rng.lognormal(-(self.money**2) / 2, self.money, self.n)
        b = None if self.against == "logger" else _among(policies[self.against][kind], sets)[rows, shown]
        return Logged(reward, chances[rows, shown], a[rows, shown], b, user if self.users else None)

    def truth(self) -> float:
        """Return the mean difference; where users or sets matter, over displays so many that it is as good as exact."""
        if not self.users and not self.sets:
            policies = self._policies()
            return float(((policies[self.target] - policies[self.against]) * self._rates()).sum(axis=1).mean())
        if self not in _TRUTHS:
            kind, liking, sets, _ = self._traffic(np.random.default_rng(12), _TRUTH_OF)
            a, b = (_among(self._policies()[name][kind], sets) for name in (self.target, self.against))
            expected = np.minimum(self._rates()[kind] * liking[:, None], 1.0)
            _TRUTHS[self] = float(((a - b) * expected).sum(axis=1).mean())
        return _TRUTHS[self]

    def _traffic(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        user = np.arange(n)
        if self.users:
            user = np.repeat(user, rng.integers(1, self.users + 1, n))[:n]
        kind = rng.integers(0, _KINDS, n)[user]
        liking = rng.gamma(1.0, 1.0, n)[user] if self.users else np.ones(n)
        sets = np.ones((n, self.actions), bool)
        if self.sets:
            sets = rng.random((n, self.actions)) < 0.6
            sets[np.arange(n), rng.integers(0, self.actions, n)] = True
        return kind, liking, sets, user

    def _rates(self) -> np.ndarray:
        draws = np.random.default_rng(7).normal(0.0, self.spread, (_KINDS, self.actions))
        return np.minimum(self.rate * np.exp(draws), 0.95)

    def _policies(self) -> dict[str, np.ndarray]:
        rng, k, rates = np.random.default_rng(8), self.actions, self._rates()
        logger = np.full((_KINDS, k), 1.0 / k)
        if self.skewed:
            logger = 0.95 * rng.dirichlet(np.full(k, 1.0 / self.skewed), _KINDS) + 0.05 / k
        best = np.eye(k)[rates.argmax(axis=1)]
        return {
            "logger": logger,
            "fixed": np.eye(k)[np.zeros(_KINDS, int)],
            "another": np.eye(k)[np.ones(_KINDS, int)],
            "soft": rng.dirichlet(np.ones(k), _KINDS),
            "best": best,
            "worst": np.eye(k)[rates.argmin(axis=1)],
            "near": 0.9 * logger + 0.1 * best,
            "no best": 0.9 * logger * (1 - best) / (logger * (1 - best)).sum(axis=1, keepdims=True) + 0.1 * logger,
        }


_TRUTHS: dict[World, float] = {}


def _among(policy: np.ndarray, sets: np.ndarray) -> np.ndarray:
    if sets.all():
        return policy
    p = policy * sets
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), sets / sets.sum(axis=1, keepdims=True))


WORLDS = {
    "tidy": World(),
    "best against logger": World(target="best"),
    "near the logger": World(target="near"),
    "two rules": World(target="best", against="fixed"),
    "soft against soft": World(target="soft", against="near"),
    "uneven logger": World(target="soft", skewed=1.0),
    "very uneven logger": World(target="soft", skewed=2.0),
    "many actions": World(actions=20, target="best"),
    "rare": World(rate=0.01),
    "very rare": World(rate=0.004, target="best"),
    "frequent": World(rate=0.6, spread=0.3, target="best", n=3_000),
    "short": World(n=1_500, rate=0.2, target="soft"),
    "away from the best": World(rate=0.01, target="no best"),
    "worst": World(rate=0.02, target="worst"),
    "sets": World(target="best", sets=True, skewed=1.0),
    "users": World(target="best", users=20),
    "users, uneven": World(target="soft", users=20, skewed=1.0),
    "few users": World(target="best", users=200, n=6_000, rate=0.1),
    "money": World(rate=0.15, target="best", money=1.0),
    "money, worst": World(rate=0.15, target="worst", money=1.0),
    "money, two rules": World(rate=0.15, target="worst", against="best", money=1.0),
    "money near the logger": World(rate=0.1, target="near", money=1.0),
    "money away from the best": World(rate=0.3, target="no best", money=1.5),
    "heavier money": World(rate=0.3, target="best", money=1.3),
    "heavy money": World(rate=0.1, target="best", money=1.8),
    "money of users": World(rate=0.15, target="best", users=20, money=1.0),
}


class Found(NamedTuple):
    """What logs say, shape (logs,): errors, whether there is an interval, its ends less the truth, widths of others."""

    error: np.ndarray
    given: np.ndarray
    low: np.ndarray
    high: np.ndarray
    low_known: np.ndarray
    high_known: np.ndarray
    plain: np.ndarray
    width: np.ndarray
    unpaired: np.ndarray
    matched: np.ndarray


def on_log(name: str, seed: int, *, widths: bool = True) -> tuple[float, ...]:
    """Return what a log of a world says, in the order of `Found`; `widths`: of other intervals, too."""
    world = WORLDS[name]
    log, truth = world.draw(seed), world.truth()
    a = influence(log.reward, log.a / log.propensity)
    b = influence(log.reward, None if log.b is None else log.b / log.propensity)
    found = paired_values(log.reward, a, b, clusters=log.clusters).difference(0.95)
    of, z = found.value, a.terms - b.terms
    plain = 1.96 * float(z.std()) / math.sqrt(z.size)
    return (
        a.value - b.value - truth,
        found.given,
        of.low - truth,
        of.high - truth,
        found.low_known,
        found.high_known,
        abs(a.value - b.value - truth) <= plain,
        of.high - of.low,
        *(_other_widths(log, seed) if widths else (math.nan, math.nan)),
    )


def _other_widths(log: Logged, seed: int) -> tuple[float, float]:
    """Return the width of an interval of the two values unpaired, and of that of the displays that a replay matches."""
    asked = {"clusters": log.clusters, "level": 0.95}
    one = snips(log.reward, log.a, log.propensity, **asked)
    other = mean_value(log.reward, **asked) if log.b is None else snips(log.reward, log.b, log.propensity, **asked)
    n = len(log.reward)
    matches = np.random.default_rng(seed).random(n) < log.a * log.propensity.min() / log.propensity
    m = max(int(matches.sum()), 1)
    both = 2 * 1.96 * math.hypot(one.standard_error, other.standard_error)
    return both, 2 * 1.96 * float(log.reward.std()) * math.sqrt(1 / m + 1 / n)


def rows(name: str, found: list[tuple[float, ...]]) -> list[Row]:
    """Return the row of a world."""
    of = Found(*(np.array(column) for column in zip(*found, strict=True)))
    bias = of.error.mean() / (of.error.std(ddof=1) / math.sqrt(len(of.error)))
    on = of.given > 0
    if not on.any():
        return [(name, f"{bias:+.1f}", "0%", *[""] * 7)]
    above, below = of.low[on] > 0, of.high[on] < 0
    told = above & (of.low_known[on] > 0), below & (of.high_known[on] > 0)
    return [
        (
            name,
            f"{bias:+.1f}",
            f"{on.mean():.0%}",
            f"{np.mean(~(above | below)):.1%}",
            f"{above.mean():.1%}",
            f"{below.mean():.1%}",
            f"{told[0].mean():.1%} {told[1].mean():.1%}",
            f"{of.plain[on].mean():.1%}",
            f"{np.median(of.unpaired[on] / of.width[on]):.2f}",
            f"{np.median(of.matched[on] / of.width[on]):.2f}",
        )
    ]


HEADERS = (
    "world", "bias in its errors", "given", "held", "above", "below", "told", "normal, no users", "unpaired", "matches",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.weighted_differences", description=__doc__)
    parser.add_argument("--logs", type=int, default=600)
    parser.add_argument("--worlds", nargs="*", choices=WORLDS, default=list(WORLDS))
    add_options(parser)
    asked = parser.parse_args()
    reach = 4 * math.sqrt(0.95 * 0.05 / asked.logs)
    print(f"{asked.logs} logs a world; a right 95 % interval holds on {0.95 - reach:.1%} or more")
    with spread_by(asked) as by:
        found = by.rows(on_log, [((name,), range(asked.logs)) for name in asked.worlds])
        print_table(HEADERS, [row for name, of in zip(asked.worlds, found, strict=True) for row in rows(name, of)])


if __name__ == "__main__":
    main()
