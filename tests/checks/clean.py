"""Logs without defects, of every kind of logger: no check should warn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluator.log import Log
from tests.checks.shops import DAY, shop, sleeping
from tests.checks.visits import Visits
from tests.logs import bernoulli_log, build_log, in_rounds, linear_log
from tests.statistical.young_logs import Young


def _estimated(seed: int) -> Log:
    made = shop(seed, logger="shares", n=20_000)
    share = np.bincount(made.action, minlength=6) / len(made.action)
    return made.log(share[made.action]).with_meta(propensity="estimated")


def _pages(seed: int) -> Log:
    """Return a log of pages of four places: one second, contexts that say the place, the first place converts best."""
    rng = np.random.default_rng(seed)
    n, k = 20_000, 5
    place = np.tile(np.arange(4), n // 4)
    time = np.repeat(np.sort(rng.integers(0, 5 * DAY, n // 4)), 4)
    # The logger likes its first actions at the first place.
    p = np.exp(-0.1 * place[:, None] * np.arange(k)) + 0.2
    p /= p.sum(axis=1, keepdims=True)
    action = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), k - 1)
    paid = np.flatnonzero(rng.random(n) < np.array([0.3, 0.2, 0.1, 0.05])[place])
    return build_log(
        time=time, action=action, n_actions=k, propensity=p[np.arange(n), action], tick="s",
        context=np.column_stack((place, rng.normal(size=n))).astype(np.float32), conversion_display=paid,
        conversion_time=time[paid] + rng.integers(60, 3600, len(paid)),
    )  # fmt: skip


def _by_hour(at: np.ndarray) -> np.ndarray:
    return 1 + 0.5 * np.sin(2 * np.pi * at)


def _shuffled(seed: int, unit: int) -> Log:
    made = shop(seed, n=20_000, days=40)
    return made.stamped(unit, np.random.default_rng(seed).random(len(made.time))).log()


UNTIDY_USERS = Visits(n=20_000, users=1_200, spread=0.5, of_heavy=-0.3, grows=True)


def _cheap_and_dear(seed: int, *, mixed: bool) -> Log:
    """An action is worth a hundred times another: the logger shows more and more of the dear ones, or weekends do well.

    Its propensities are right.
    """

    def more_and_more(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        tilted = p * np.exp(np.outer((at - 3) / 3, np.linspace(-1, 1, 6)))
        return tilted / tilted.sum(axis=1, keepdims=True)

    made = shop(seed, n=20_000, days=10 if mixed else 34, logger="shares", chance=more_and_more if mixed else None)
    of = made.display
    worth = np.exp(np.random.default_rng(seed).normal(size=len(of))) * 2.5 ** made.action[of]
    made.value = worth * np.where((made.time[of] // DAY % 7 >= 5) & ~mixed, 2.0, 1.0)
    return made.log()


CLEAN: dict[str, Callable[[int], Log]] = {
    "uniform, no context, not followed": lambda seed: bernoulli_log(
        20_000, [0.05, 0.1, 0.2], mean_delay=300, seed=seed
    ),
    "logged shares, no context": lambda seed: bernoulli_log(
        20_000, [0.05, 0.1, 0.2], mean_delay=300, seed=seed, logger=[0.2, 0.3, 0.5]
    ),
    "uniform, context, followed": lambda seed: shop(seed, n=20_000).log(),
    "logged by context, followed": lambda seed: shop(seed, n=20_000, logger="context").log(),
    "estimated shares, context, followed": _estimated,
    "uniform, action sets": lambda seed: linear_log(10_000, n_actions=5, dimension=4, mean_delay=100, seed=seed),
    "logged by context, action sets": lambda seed: linear_log(
        10_000, n_actions=5, dimension=4, mean_delay=100, seed=seed, temperature=0.2
    ),
    "no conversions at night, ends in the morning": lambda seed: sleeping(seed).log(),
    "the same, and rates go with the hour": lambda seed: sleeping(seed, rate=_by_hour).log(),
    "four weeks, logged shares": lambda seed: shop(seed, n=20_000, days=42, logger="shares").log(),
    "the dear actions are shown more and more": lambda seed: _cheap_and_dear(seed, mixed=True),
    "three weeks, dear at weekends": lambda seed: _cheap_and_dear(seed, mixed=False),
    "four weeks of days, shuffled": lambda seed: _shuffled(seed, DAY),
    "minutes, shuffled": lambda seed: _shuffled(seed, 60),
    "pages of four places in order": _pages,
    "a clock that counts displays which came at any time": lambda seed: in_rounds(
        Young(displays=20_000, days=10.0, rates=(0.4, 0.5), delays=(0.3, 0.3)).draw(seed)
    ),
    "users who differ and come later and later": lambda seed: UNTIDY_USERS.log(seed),
}
