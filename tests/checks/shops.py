"""A shop's log of known truth, clean or with one defect: whatever a test varies is an argument."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from tests.logs import build_log

HOUR, DAY = 3600, 86_400
Logger = Literal["uniform", "shares", "context"]


@dataclass
class Shop:
    """A log in the making: columns that a defect may change.

    Ten days of traffic with a daily cycle, in seconds; four numbers and a category as context; conversions that depend
    on action and context, exponential delays of a day on average, followed for three days until the last display.
    """

    time: npt.NDArray[np.int64]
    context: npt.NDArray[np.float32]
    action: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64]
    display: npt.NDArray[np.int64]
    when: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    meta: dict[str, Any]
    uniform: bool

    @property
    def propensity(self) -> npt.NDArray[np.float64]:
        return self.chance[np.arange(len(self.action)), self.action]

    def log(self, propensity: npt.NDArray[np.float64] | None = None) -> Log:
        if propensity is None and not self.uniform:
            propensity = self.propensity
        order = np.lexsort((self.when, self.display))
        return build_log(
            time=self.time, action=self.action, context=self.context, n_actions=self.chance.shape[1],
            propensity=propensity, conversion_display=self.display[order], conversion_time=self.when[order],
            conversion_value=self.value[order], tick="s", **self.meta,
        )  # fmt: skip

    def without_conversions(self, lost: npt.NDArray[np.bool_]) -> Shop:
        """Return the shop without some conversions."""
        return replace(self, display=self.display[~lost], when=self.when[~lost], value=self.value[~lost])

    def stamped(self, unit: int, key: npt.NDArray[Any]) -> Shop:
        """Return the shop with times cut to whole units, and displays of one time sorted by a key, shape (n,).

        It ends with its last whole unit, as a file that is written once a unit.
        """
        end = self.time[-1] // unit * unit
        time = self.time // unit * unit
        order = np.lexsort((key, time))
        order = order[time[order] < end]
        place = np.full(len(time), -1)
        place[order] = np.arange(len(order))
        when = self.when // unit * unit
        seen = (place[self.display] >= 0) & (when < end)
        meta = {**self.meta, "observed_until": int(end - unit)} if self.meta else {}
        return replace(
            self, time=time[order], context=self.context[order], action=self.action[order], chance=self.chance[order],
            display=place[self.display[seen]], when=when[seen], value=self.value[seen], meta=meta,
        )  # fmt: skip

    def kept(self, rows: npt.NDArray[np.int64]) -> Shop:
        """Return the shop with these displays (repeats too), in order, with their conversions."""
        rows = np.sort(rows)
        copies = [np.searchsorted(rows, self.display, side=side) for side in ("left", "right")]
        count = copies[1] - copies[0]
        first = np.repeat(copies[0], count)
        within = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
        return replace(
            self, time=self.time[rows], context=self.context[rows], action=self.action[rows], chance=self.chance[rows],
            display=first + within, when=np.repeat(self.when, count), value=np.repeat(self.value, count),
        )  # fmt: skip


def shop(
    seed: int,
    *,
    n: int = 40_000,
    k: int = 6,
    logger: Logger = "uniform",
    chance: Any = None,
    rate: Any = None,
    delay: Any = None,
    followed: bool = True,
    days: float = 10,
) -> Shop:
    """Return a shop.

    Parameters
    ----------
    days
        The n displays are about two thirds of those of so many days.
    chance, rate, delay
        Replace the logger's probabilities (from context and day, shape (n, k)), the factor on conversion rates and that
        on delays (from the day): what the log says of them is up to the test.
    """
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(3 * n) * days)
    at = at[rng.random(3 * n) < 0.5 * (1 + 0.8 * np.sin(2 * np.pi * at))][:n]
    n = len(at)
    time = (at * DAY).astype(np.int64)
    context = np.column_stack((rng.normal(size=(n, 3)), rng.exponential(size=n), rng.integers(0, 3, n)))
    context = context.astype(np.float32)
    if logger == "uniform":
        p = np.full((n, k), 1 / k)
    elif logger == "shares":
        p = np.tile(np.arange(2.0, k + 2.0) / np.arange(2.0, k + 2.0).sum(), (n, 1))
    else:
        p = np.exp(0.4 * context[:, :4] @ rng.normal(size=(4, k)))
        p = 0.3 / k + 0.7 * p / p.sum(axis=1, keepdims=True)
    if chance is not None:
        p = chance(p, context, at)
    action = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), k - 1)
    theta = 0.1 * (1 + 0.3 * np.cos(np.arange(k)))[action] * (1 + 0.3 * np.tanh(context[:, 0] + 0.3 * action))
    if rate is not None:
        theta = theta * rate(at)
    display = np.flatnonzero(rng.random(n) < theta)
    late = rng.exponential(1.0, len(display)) * (1.0 if delay is None else delay(at[display]))
    when = time[display] + (late * DAY).astype(np.int64)
    end = int(time[-1])
    meta: dict[str, Any] = {}
    if followed:
        meta = {"observed_until": end, "attribution_window": 3 * DAY}
        seen = (when <= end) & (late <= 3)
        display, when = display[seen], when[seen]
    return Shop(time, context, action, p, display, when, np.ones(len(when)), meta, logger == "uniform")


def sleeping(seed: int, *, until: float = 6.25, rate: Any = None) -> Shop:
    """Return a shop in which no one buys from 21:00 to 07:00: such conversions come on the next morning.

    The log ends `until` days after its start, in a morning before the first conversions, and says so.
    """
    made = shop(seed, rate=rate, followed=False)
    hour = made.when % DAY / HOUR
    morning = (made.when // DAY + (hour >= 21)) * DAY + 7 * HOUR
    slept = (morning + np.random.default_rng(seed).exponential(2 * HOUR, len(hour))).astype(np.int64)
    made.when = np.where((hour >= 21) | (hour < 7), slept, made.when)
    made = made.kept(np.flatnonzero(made.time <= until * DAY))
    end = int(until * DAY)
    made.meta = {"observed_until": end, "attribution_window": 2 * DAY}
    return made.without_conversions((made.when > end) | (made.when - made.time[made.display] > 2 * DAY))
