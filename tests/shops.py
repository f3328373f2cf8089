"""Shops with refunds and costs, of known truth: tidy ones, a display a round, and untidy ones, in bursts of traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log import Log
from tests.logs import build_log

Floats = npt.NDArray[np.float64]

# Three actions: how often each sells, how often a sale comes back, and what a display costs on average.
SELLS, COMES_BACK, COSTS = np.array([0.15, 0.2, 0.25]), np.array([0.1, 0.2, 0.7]), np.array([0.2, 0.6, 0.3])
LOGGER = np.array([0.5, 0.3, 0.2])
LOWEST, HIGHEST, HANDLING = 2.0, 10.0, 1.0
SALE_DELAY, REFUND_DELAY = 60.0, 400.0


class Shop(NamedTuple):
    """A log, and the expected revenue and cost of each of its displays given its action and time, shape (n,)."""

    log: Log
    revenue: Floats
    cost: Floats


@dataclass(frozen=True)
class World:
    """What varies: bursts of traffic and costs that follow the time, or neither; what the log sees in the end."""

    untidy: bool = False
    observed: bool = False
    window: int | None = None


def revenues() -> Floats:
    """Return the expected revenue of each action: a refund takes back the price and what it costs to handle."""
    price = (LOWEST + HIGHEST) / 2.0
    return SELLS * (price - COMES_BACK * (price + HANDLING))


def make_shop(n: int, *, seed: int, world: World = World()) -> Shop:
    """Return a shop of n displays."""
    rng = np.random.default_rng(seed)
    time = np.arange(n)
    if world.untidy:  # several displays a tick, and gaps
        burst = rng.random(n) < 0.1
        time = np.floor(np.cumsum(np.where(burst, rng.exponential(8.0, n), rng.exponential(0.2, n)))).astype(np.int64)
    action = rng.choice(3, n, p=LOGGER)
    factor = 1.0 + 0.5 * np.sin(time / 500.0) if world.untidy else np.ones(n)
    cost = rng.uniform(0.5, 1.5, n) * COSTS[action] * factor
    sold = np.flatnonzero(rng.random(n) < SELLS[action])
    price = rng.uniform(LOWEST, HIGHEST, len(sold))
    sold_at = time[sold] + rng.geometric(1.0 / SALE_DELAY, len(sold))
    back = rng.random(len(sold)) < COMES_BACK[action[sold]]
    back_at = sold_at[back] + rng.geometric(1.0 / REFUND_DELAY, int(back.sum()))
    of, when, value = (
        np.concatenate(pair) for pair in ((sold, sold[back]), (sold_at, back_at), (price, -price[back] - HANDLING))
    )
    meta = {"observed_until": None, "attribution_window": None}
    if world.observed:
        end = int(time[-1])
        longest = 3_000 if world.window is None else world.window
        seen = (when <= end) & (when - time[of] <= longest)
        of, when, value = of[seen], when[seen], value[seen]
        meta = {"observed_until": end, "attribution_window": longest}
    order = np.lexsort((when, of))
    log = build_log(
        time=time, action=action, n_actions=3, propensity=LOGGER[action],
        conversion_display=of[order], conversion_time=when[order], conversion_value=value[order],
        tick="s" if world.untidy else "round", reward_max=HIGHEST, reward_min=-HANDLING, **meta,
    )  # fmt: skip
    displays = log.displays.append_column("cost", pa.array(cost))
    log = Log(displays, log.conversions, log.actions, log.meta).validated()
    return Shop(log, revenues()[action], COSTS[action] * factor)
