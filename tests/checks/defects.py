"""Logs with one defect each, of a realistic size, and the checks that must see it.

`DEFECTS` gives for each the checks that must warn or fail, and those of which it is no mistake when they do, because
the defect is of their kind too. All others must stay quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from evaluator.checks.dependence import earlier
from evaluator.log import Log
from tests.checks.shops import DAY, HOUR, shop
from tests.logs import in_rounds

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
    def chance(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        tilted = p * np.exp(0.25 * np.outer(x[:, 1], np.linspace(-1, 1, 6)))
        return tilted / tilted.sum(axis=1, keepdims=True)

    made = shop(seed, logger="shares", chance=chance)
    share = np.bincount(made.action, minlength=6) / len(made.action)
    return made.log(share[made.action])


def _by_day(seed: int) -> Log:
    def chance(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
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


def _shared(seed: int, *, values: int = 1) -> Log:
    """A tenth of the conversions, of so many values, are also written on a display of some hours before."""
    made = shop(seed)
    rng = np.random.default_rng(seed)
    made.value = made.value + np.random.default_rng((seed, 1)).integers(values, size=len(made.value))
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

    def chance(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
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

    def chance(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
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


def _tilted(p: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return probabilities of which the first actions' fall and the last ones' rise with a number of each display."""
    tilted = p * np.exp(np.outer(by, np.linspace(-1, 1, p.shape[1])))
    return tilted / tilted.sum(axis=1, keepdims=True)


def _by_hour(seed: int) -> Log:
    return shop(seed, chance=lambda p, x, at: _tilted(p, 0.3 * np.sin(2 * np.pi * at))).log()


def _by_weekday(seed: int) -> Log:
    made = shop(seed, days=42, logger="shares", chance=lambda p, x, at: _tilted(p, 0.4 * (at % 7 >= 5)))
    return made.log(np.bincount(made.action, minlength=6)[made.action] / len(made.action))


def _hour_unsaid(seed: int) -> Log:
    """The logger looks at contexts and at the hour, and logs propensities as if the hour was none of its business."""
    said = []

    def chance(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        said.append(p)
        return _tilted(p, 0.3 * np.sin(2 * np.pi * at))

    made = shop(seed, logger="context", chance=chance)
    return made.log(said[0][np.arange(len(made.action)), made.action])


def _by_action(seed: int) -> Log:
    made = shop(seed)
    return made.stamped(DAY, made.action).log()


def _minutes_by_action(seed: int) -> Log:
    """A few displays a minute, sorted by a code of the action that has nothing to do with its number."""
    made = shop(seed)
    return made.stamped(60, np.array([3, 1, 5, 0, 2, 4])[made.action]).log()


def _by_age(seed: int) -> Log:
    made = shop(seed, logger="context")
    return made.stamped(HOUR, made.context[:, 3]).log()


def _by_outcome(seed: int) -> Log:
    made = shop(seed, logger="context")
    return made.stamped(HOUR, ~np.isin(np.arange(len(made.time)), made.display)).log()


def _without(chance: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a logger that never shows the fourth action where `chance` says so."""

    def left(p: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        p = p.copy()
        p[chance(x, at), 3] = 0.0
        return p / p.sum(axis=1, keepdims=True)

    return left


def _hole(seed: int) -> Log:
    return shop(seed, logger="context", chance=_without(lambda x, at: x[:, 0] > 0.5)).log()


def _launched(seed: int) -> Log:
    return shop(seed, logger="context", chance=_without(lambda x, at: at < 2)).log()


def _retired(seed: int) -> Log:
    """Shares of the whole log, taken as constant, where the last third never shows one action."""
    made = shop(seed, chance=_without(lambda x, at: at > 4))
    share = np.bincount(made.action, minlength=6) / len(made.action)
    return made.log(share[made.action]).with_meta(propensity="estimated")


def _young(seed: int) -> Log:
    return shop(seed, logger="shares", chance=_without(lambda x, at: at < 5)).log()


def _outage(seed: int) -> Log:
    made = shop(seed)
    return made.without_conversions((made.when >= 4.2 * DAY) & (made.when < 4.6 * DAY)).log()


def _standstill(seed: int) -> Log:
    """Nothing is logged for ten hours, and the conversions of that time are never fetched."""
    made = shop(seed)
    made = made.without_conversions((made.when >= 4.2 * DAY) & (made.when < 4.6 * DAY))
    return made.kept(np.flatnonzero((made.time < 4.2 * DAY) | (made.time >= 4.6 * DAY))).log()


def _stray(seed: int) -> Log:
    """The log ends with its displays, but for one conversion two days later, which is taken for its end."""
    made = shop(seed)
    later = int(made.time[-1]) + 2 * DAY
    free = int(np.setdiff1d(np.arange(len(made.time) - 50, len(made.time)), made.display)[0])
    made.display, made.when = np.append(made.display, free), np.append(made.when, later)
    made.value = np.append(made.value, 1.0)
    made.meta["observed_until"] = later
    return made.log()


def _long_window(seed: int) -> Log:
    made = shop(seed)
    made.meta["attribution_window"] = 30 * DAY
    return made.log()


def _worn_out(seed: int) -> Log:
    """Each earlier display of an action to a user takes a quarter of what it earns from them."""
    made = shop(seed, logger="context")
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 2_000, len(made.time))
    lost = rng.random(len(made.display)) >= 0.75 ** earlier(user * 6 + made.action)[made.display]
    log = made.without_conversions(lost).log()
    return replace(log, displays=log.displays.append_column("user_id", pa.array(user)))


def _worth(seed: int, factor: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Log:
    """Conversions are worth something lognormal, times a factor of the day and the action."""
    made = shop(seed)
    of = made.display
    worth = np.exp(np.random.default_rng(seed).normal(1, 1, len(of)))
    made.value = np.round(worth * factor(made.time[of] / DAY, made.action[of]), 2)
    return made.log()


def _cents(seed: int) -> Log:
    """From half time on, at noon, values are written in cents instead of euros."""
    return _worth(seed, lambda at, action: np.where(at > 3.5, 100.0, 1.0))


def _dearer(seed: int) -> Log:
    return _worth(seed, lambda at, action: np.where(at > 4, 1.5, 1.0))


def _one_dearer(seed: int) -> Log:
    return _worth(seed, lambda at, action: np.where((at > 4) & (action == 2), 3.0, 1.0))


Names = set[str]
DEFECTS: dict[str, tuple[Callable[[int], Log], Names, Names]] = {
    "propensities of one action 1.4 times too large": (_factor, {"calibration"}, {"replay of the logger"}),
    "constant propensity of one action 1.3 times too large": (_constant_factor, {"calibration"}, set()),
    "uniform claimed, one action 1.3 times as often": (_favoured, {"uniformity"}, set()),
    "action depends on the context, propensities constant": (
        _by_context, {"independence"}, {"calibration"}),
    "logger drifts by day, propensities constant": (_by_day, {"drift of action shares"}, {"calibration"}),
    "conversion rates fall by a quarter": (_rate, {"drift of conversion rates"}, set()),
    "values in cents from half time on": (_cents, {"drift of values"}, {"rewards"}),
    "values become 1.5 times theirs at half time": (_dearer, {"drift of values"}, set()),
    "values of one action become 3 times theirs at half time": (_one_dearer, {"drift of values"}, set()),
    "delays halve": (_delays, {"drift of delays", "delays of young displays"}, {"drift of conversion rates"}),
    "2 % of the displays twice": (_duplicates, {"duplicated displays"}, {"shared conversions"}),
    "a tenth of the conversions on two displays": (_shared, {"shared conversions"}, set()),
    "the same by a clock that counts displays, sales of many values": (
        lambda seed: in_rounds(_shared(seed, values=300)), {"shared conversions"}, {"delays of young displays"}),
    "conversions end with the log, unsaid": (_unannounced, {"immature displays"}, set()),
    "no attribution window": (_no_window, {"immature displays"}, set()),
    "an action with a propensity of 1e-5": (_tiny, {"overlap"}, set()),
    "an action never shown": (_never, {"overlap"}, set()),
    "five hours without traffic": (_gap, {"traffic"}, set()),
    "no choice in a fifth of the contexts": (
        _deterministic, {"overlap", "calibration"}, {"replay of the logger"}),
    "one conversion worth 1000": (_huge, {"rewards"}, set()),
    "the logger follows the hour, uniform claimed": (_by_hour, {"uniformity", "hours and weekdays"}, {
        "drift of action shares"}),
    "the logger shows others at weekends, shares constant": (_by_weekday, {"hours and weekdays"}, {
        "calibration", "drift of action shares"}),
    "the logger follows contexts and, unsaid, the hour": (_hour_unsaid, {"calibration"}, set()),
    "whole days sorted by action": (_by_action, {"order within ties"}, {"immature displays"}),
    "minutes of few displays sorted by action": (_minutes_by_action, {"order within ties"}, set()),
    "hours sorted by a column of the context": (_by_age, {"order within ties"}, set()),
    "hours sorted by outcome": (_by_outcome, {"order within ties"}, set()),
    # Rates by action: by chance at the seed of the tests (p = .0009), at none of forty others.
    "an action never shown in 31 % of the contexts, right propensities": (
        _hole, {"calibration"}, {"rates by action"}),
    "an action launched on day 3, right propensities": (
        _launched, {"overlap"}, set()),
    "an action retired on day 5, estimated propensities": (
        _retired, {"overlap"}, set()),
    "an action too young for a single judged display": (
        _young, {"overlap"}, set()),
    "ten hours of conversions lost": (_outage, {"gaps in conversions"}, {
        "drift of conversion rates", "drift of delays", "delays of each day", "delays of young displays"}),
    "ten hours of displays and conversions lost": (_standstill, {"gaps in conversions", "traffic"}, {
        "drift of conversion rates", "drift of delays", "delays of each day", "delays of young displays"}),
    "one stray conversion two days after all others": (_stray, {"immature displays"}, set()),
    "an attribution window longer than the log": (_long_window, {"immature displays"}, set()),
    "each display of an action to a user takes a quarter": (_worn_out, {"wear-out"}, {"drift of conversion rates"}),
}  # fmt: skip
