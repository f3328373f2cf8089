"""Logs that end with their last display, of known truth: delays by action, by device, with revenue and daily rhythm."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log import Log
from tests.logs import build_log

DAY = 86_400
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Young:
    """What a log is drawn from.

    Parameters
    ----------
    displays, days, attribution_days
        Displays, evenly over so many days, and for how long each would be followed. Every conversion comes within that.
    rates
        Of the actions.
    delays
        Mean delay of each action in days: exponential, given that it comes within the attribution window.
    device
        Factor of the delays of one half of the displays, whatever the action; 1 for none.
    values
        Mean value of each action's conversions; None for 1. They are spread evenly from 0.5 to 1.5 times that.
    rhythm
        Amplitude of the daily rhythm of arrivals and, the other way round, of the rates.
    """

    displays: int = 6_000
    days: float = 3.0
    attribution_days: float = 2.0
    rates: tuple[float, ...] = (0.4, 0.4)
    delays: tuple[float, ...] = (0.2, 1.0)
    device: float = 1.0
    values: tuple[float, ...] | None = None
    rhythm: float = 0.0

    @property
    def rewards(self) -> Floats:
        """Expected reward of each action at a neutral time, shape (K,)."""
        return np.array(self.rates) * (1.0 if self.values is None else np.array(self.values))

    def draw(self, seed: int) -> Log:
        """Return the log of a seed, with the column ``device`` and every display's expected rewards."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(79,)))
        n, k = self.displays, len(self.rates)
        time = _arrivals(self.days, self.rhythm, rng.random(n))
        action, device = rng.integers(k, size=n), rng.integers(2, size=n)
        factor = 1.0 + self.rhythm * np.cos(2 * np.pi * time / DAY)
        mean = np.array(self.delays)[action] * np.where(device == 1, self.device, 1.0) * DAY
        longest = self.attribution_days * DAY
        delay = (-mean * np.log1p(-rng.random(n) * -np.expm1(-longest / mean))).astype(np.int64)
        worth = 1.0 if self.values is None else np.array(self.values)[action] * (0.5 + rng.random(n))
        converts = rng.random(n) < np.array(self.rates)[action] * factor
        seen = np.flatnonzero(converts & (time + delay <= time[-1]))
        log = build_log(
            time=time, action=action, n_actions=k,
            conversion_display=seen, conversion_time=(time + delay)[seen],
            conversion_value=np.broadcast_to(worth, n)[seen],
            expected_reward=factor[:, None] * self.rewards, tick="s",
            observed_until=int(time[-1]), attribution_window=int(longest),
            reward_max=1.0 if self.values is None else 1.5 * max(self.values),
        )  # fmt: skip
        names = pa.array(np.array(["phone", "desktop"])[device])
        return replace(log, displays=log.displays.append_column("device", names))


def _arrivals(days: float, rhythm: float, uniform: Floats) -> npt.NDArray[np.int64]:
    grid = np.linspace(0.0, days * DAY, 10_001)
    middle = (grid[1:] + grid[:-1]) / 2
    rate = np.concatenate([[0.0], np.cumsum(1.0 - rhythm * np.cos(2 * np.pi * middle / DAY))])
    return np.interp(np.sort(uniform), rate / rate[-1], grid).astype(np.int64)
