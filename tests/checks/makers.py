"""Defects of logs of other makers: of clocks, labels, follow-up, robots, copies with times of their own, last days.

As in `tests.checks.defects`: a log of a seed, the checks that must see it, and those that may. How often they do is
what `python -m tests.bench.check` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evaluator.log import Log
from tests.checks.awkward import slept
from tests.checks.shops import DAY, HOUR, Shop, shop
from tests.logs import build_log


def _exchanged(seed: int, rates: tuple[float, float]) -> Log:
    """Two actions, whose rates are exchanged when half the displays were shown."""
    rng = np.random.default_rng(seed)
    n = 40_000
    time = np.sort(rng.integers(0, 10 * DAY, n))
    action = rng.integers(0, 2, n)
    means = np.array([rates, rates[::-1]])
    paid = np.flatnonzero(rng.random(n) < means[(np.arange(n) >= n // 2).astype(int), action])
    return build_log(time=time, action=action, n_actions=2, tick="s", conversion_display=paid,
                     conversion_time=time[paid] + rng.exponential(HOUR, len(paid)).astype(int))  # fmt: skip


def _swapped_for_a_day(seed: int) -> Log:
    """The best and the worst action are written for each other on the third day."""
    made = shop(seed)
    day = made.time // DAY == 2
    made.action = np.where(day & (made.action == 0), 3, np.where(day & (made.action == 3), 0, made.action))
    return made.log()


def _merged(made: Shop, copied: np.ndarray, time: np.ndarray) -> Shop:
    """Return the shop with copies of some displays at other times, without their conversions."""
    times = np.concatenate((made.time, time))
    order = np.argsort(times, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = np.concatenate((np.arange(len(made.time)), copied))[order]
    return replace(made, time=times[order], context=made.context[rows], action=made.action[rows],
                   chance=made.chance[rows], display=place[made.display])  # fmt: skip


def _jittered(seed: int, columns: slice) -> Log:
    """Two in a hundred displays come again one to eight seconds later; of the context some columns are logged."""
    made = shop(seed)
    made.context = made.context[:, columns]
    rng = np.random.default_rng(seed + 1)
    copied = rng.choice(len(made.time), len(made.time) // 50, replace=False)
    copied = copied[made.time[copied] < made.time[-1] - 10]
    return _merged(made, copied, made.time[copied] + rng.integers(1, 9, len(copied))).log()


def _robot(seed: int, columns: slice = slice(None)) -> Log:
    """One visitor has a twentieth of the displays and never buys."""
    made = shop(seed)
    made.context = made.context[:, columns]
    robot = np.random.default_rng(seed + 1).random(len(made.time)) < 0.05
    made.context[robot] = 0.25
    return made.without_conversions(robot[made.display]).log()


def _last_day(made: Shop) -> int:
    return int(made.time[-1] // DAY * DAY)


def _half_shown(seed: int) -> Log:
    """Half of the displays of the last day are missing, with their conversions."""
    made = shop(seed, days=13)
    lost = (made.time >= _last_day(made)) & (np.random.default_rng(seed + 1).random(len(made.time)) < 0.5)
    return made.kept(np.flatnonzero(~lost)).log()


def _half_converted(seed: int) -> Log:
    """Half of the conversions that come on the last day are missing."""
    made = shop(seed, days=13)
    luck = np.random.default_rng(seed + 1).random(len(made.when))
    return made.without_conversions((made.when >= _last_day(made)) & (luck < 0.5)).log()


def _hour_late(seed: int) -> Log:
    """Conversions that come on the fourth day are written an hour late."""
    made = shop(seed)
    made.when = made.when + np.where(made.when // DAY == 3, HOUR, 0)
    end = made.meta["observed_until"]
    late = (made.when > end) | (made.when - made.time[made.display] > made.meta["attribution_window"])
    return made.without_conversions(late).log()


def _followed_six_hours(seed: int) -> Log:
    made = shop(seed)
    of = made.display
    return made.without_conversions((made.action[of] == 2) & (made.when - made.time[of] > 6 * HOUR)).log()


def _night(seed: int) -> Log:
    """As `_hour_late`, of a site that sleeps."""
    made = shop(seed, followed=False)
    rng = np.random.default_rng(seed + 1)
    made.when = made.time[made.display] + slept((22.0, 7.0), 4.0)(rng, made.time[made.display]).astype(np.int64)
    made.when = made.when + np.where(made.when // DAY == 3, HOUR, 0)
    end = int(made.time[-1])
    made.meta = {"observed_until": end, "attribution_window": 2 * DAY}
    return made.without_conversions((made.when > end) | (made.when - made.time[made.display] > 2 * DAY)).log()


Names = set[str]
MAKERS: dict[str, tuple[Callable[[int], Log], Names, Names]] = {
    "rates of two actions exchanged at half time, .05 and .15": (
        lambda seed: _exchanged(seed, (0.05, 0.15)), {"rates by action"}, set()),
    "the same, .02 and .30": (lambda seed: _exchanged(seed, (0.02, 0.30)), {"rates by action"}, set()),
    "the same, .02 and .03": (
        lambda seed: _exchanged(seed, (0.02, 0.03)), {"rates by action"}, {"drift of conversion rates"}),
    "two actions swapped for a day": (_swapped_for_a_day, {"rates by action"}, set()),
    "2 % of the displays again some seconds later": (
        lambda seed: _jittered(seed, slice(None)), {"near copies"}, set()),
    "the same, a context of three kinds": (lambda seed: _jittered(seed, slice(4, 5)), {"near copies"}, set()),
    "one vector at 5 % without conversions": (_robot, {"vectors without conversions"}, {"independence"}),
    "the same, beside a context of three kinds": (
        lambda seed: _robot(seed, slice(4, 5)), {"vectors without conversions"}, {"independence"}),
    "half of the last day's displays missing": (_half_shown, {"last day"}, {"immature displays"}),
    "half of the last day's conversions missing": (_half_converted, {"last day"}, {
        "drift of delays", "delays of each day"}),
    "conversions an hour late for a day": (_hour_late, {"delays of each day"}, {
        "drift of delays", "gaps in conversions", "delays of young displays"}),
    "the same, nights without conversions": (_night, {"delays of each day"}, {
        "drift of delays", "gaps in conversions", "delays of young displays"}),
    "one action followed for six hours": (_followed_six_hours, {"delays of each action"}, set()),
}  # fmt: skip
