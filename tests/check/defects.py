"""Logs with one defect each, of a realistic size, and the checks that must see it.

`DEFECTS` gives for each the checks that must warn or fail, and those of which it is no mistake when they do, because
the defect is of their kind too. All others must stay quiet.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluator.log import Log
from tests.check.shops import DAY, HOUR, shop

N = 40_000


def _factor(seed: int) -> Log:
    made = shop(seed, logger="context")
    p = made.propensity
    return made.log(np.where(made.action == 2, np.minimum(1.4 * p, 1.0), p))


def _constant_factor(seed: int) -> Log:
    made = shop(seed, logger="shares")
    return made.log(np.where(made.action == 1, 1.3, 1.0) * made.propensity)


def _favoured(seed: int) -> Log:
    shares = np.array([1.3, 1, 1, 1, 1, 1])
    return shop(seed, chance=lambda p, x, at: np.tile(shares / shares.sum(), (len(p), 1))).log()


def _by_context(seed: int) -> Log:
    def chance(p, x, at):
        tilted = p * np.exp(0.25 * np.outer(x[:, 1], np.linspace(-1, 1, 6)))
        return tilted / tilted.sum(axis=1, keepdims=True)

    made = shop(seed, logger="shares", chance=chance)
    share = np.bincount(made.action, minlength=6) / len(made.action)
    return made.log(share[made.action])


def _by_day(seed: int) -> Log:
    def chance(p, x, at):
        tilted = p * np.exp(np.outer((at - 5) / 12, np.linspace(-1, 1, 6)))
        return tilted / tilted.sum(axis=1, keepdims=True)

    made = shop(seed, logger="shares", chance=chance)
    share = np.bincount(made.action, minlength=6) / len(made.action)
    return made.log(share[made.action])


def _rate(seed: int) -> Log:
    return shop(seed, rate=lambda at: np.where(at > 4, 0.75, 1.0)).log()


def _delays(seed: int) -> Log:
    return shop(seed, delay=lambda at: np.where(at > 4, 0.5, 1.0)).log()


def _duplicates(seed: int) -> Log:
    made = shop(seed)
    again = np.random.default_rng(seed).choice(len(made.time), len(made.time) // 50, replace=False)
    return made.kept(np.concatenate((np.arange(len(made.time)), again))).log()


def _shared(seed: int) -> Log:
    """A tenth of the conversions are also written on a display of some hours before."""
    made = shop(seed)
    rng = np.random.default_rng(seed)
    copied = rng.choice(len(made.display), len(made.display) // 10, replace=False)
    earlier = np.maximum(made.display[copied] - rng.integers(1, 300, len(copied)), 0)
    free = ~np.isin(earlier, made.display) & (made.when[copied] - made.time[earlier] <= 3 * DAY)
    copied, earlier = copied[free], earlier[free]
    _, once = np.unique(earlier, return_index=True)
    copied, earlier = copied[once], earlier[once]
    made.display = np.append(made.display, earlier)
    made.when = np.append(made.when, made.when[copied])
    made.value = np.append(made.value, made.value[copied])
    return made.log()


def _unannounced(seed: int) -> Log:
    made = shop(seed)
    made.meta = {}
    return made.log()


def _tiny(seed: int) -> Log:
    """One action is shown with a chance of one in a hundred thousand in a part of the contexts."""

    def chance(p, x, at):
        p = p.copy()
        rare = x[:, 0] > 1.0
        p[rare, 3] = 1e-5
        return p / p.sum(axis=1, keepdims=True)

    made = shop(seed, logger="context", chance=chance)
    rare = int(np.flatnonzero(made.context[:, 0] > 1.0)[0])
    made.action[rare] = 3
    return made.log()


def _never(seed: int) -> Log:
    made = shop(seed, logger="shares")
    made.chance = np.append(made.chance, np.zeros((len(made.chance), 1)), axis=1)
    return made.log()


def _gap(seed: int) -> Log:
    made = shop(seed)
    # Five busy hours of the fifth day.
    return made.kept(np.flatnonzero((made.time < 4 * DAY + 4 * HOUR) | (made.time > 4 * DAY + 9 * HOUR))).log()


def _deterministic(seed: int) -> Log:
    """In a fifth of the contexts the logger always shows its favourite, with a propensity of 1."""

    def chance(p, x, at):
        p = p.copy()
        sure = x[:, 0] > 0.84
        p[sure] = np.eye(6)[2]
        return p

    return shop(seed, logger="shares", chance=chance).log()


def _huge(seed: int) -> Log:
    made = shop(seed)
    made.value[1000] = 1000.0
    made.meta["reward_max"] = None
    return made.log()


def _no_window(seed: int) -> Log:
    made = shop(seed)
    del made.meta["attribution_window"]
    return made.log()


Names = set[str]
DEFECTS: dict[str, tuple[Callable[[int], Log], Names, Names]] = {
    "propensities of one action 1.4 times too large": (_factor, {"calibration"}, {"replay of the logger"}),
    "constant propensity of one action 1.3 times too large": (_constant_factor, {"calibration"}, set()),
    "uniform claimed, one action 1.3 times as often": (_favoured, {"uniformity"}, set()),
    "action depends on the context, propensities constant": (
        _by_context, {"independence"}, {"calibration"}),
    "logger drifts by day, propensities constant": (_by_day, {"drift of action shares"}, {"calibration"}),
    "conversion rates fall by a quarter": (_rate, {"drift of conversion rates"}, set()),
    "delays halve": (_delays, {"drift of delays"}, {"drift of conversion rates"}),
    "2 % of the displays twice": (_duplicates, {"duplicated displays"}, {"shared conversions"}),
    "a tenth of the conversions on two displays": (_shared, {"shared conversions"}, set()),
    "conversions end with the log, unsaid": (_unannounced, {"immature displays"}, set()),
    "no attribution window": (_no_window, {"immature displays"}, set()),
    "an action with a propensity of 1e-5": (_tiny, {"overlap"}, set()),
    "an action never shown": (_never, {"overlap"}, set()),
    "five hours without traffic": (_gap, {"traffic"}, set()),
    "no choice in a fifth of the contexts": (
        _deterministic, {"overlap", "calibration"}, {"replay of the logger"}),
    "one conversion worth 1000": (_huge, {"rewards"}, set()),
}  # fmt: skip
