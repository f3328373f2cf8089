"""Traffic whose times are known, written down in time stamps as coarse as one likes, and lived by UCB1."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log import Log
from tests.logs import build_log

DAY, HOUR = 86_400, 3_600
MEANS = np.array([0.05, 0.08, 0.1, 0.12, 0.15, 0.3])

Floats = npt.NDArray[np.float64]


def delays_of(law: str, mean: float, n: int, rng: np.random.Generator) -> Floats:
    """Return delays of a law in seconds: exponential, lognormal, or most a tenth as long and some thrice."""
    if law == "exponential":
        return rng.exponential(mean, n)
    if law == "lognormal":
        return rng.lognormal(np.log(mean) - 0.5 * 1.5**2, 1.5, n)
    return rng.exponential(np.where(rng.random(n) < 0.7, 0.1, 3.1) * mean)


@dataclass(frozen=True)
class StampedWorld:
    """Displays with their times in seconds, and conversions with their delays."""

    seed: int
    time: Floats
    action: npt.NDArray[np.int64]
    of: npt.NDArray[np.int64]
    delay: Floats

    def log(self, stamp: int, *, tick: str = "s", position: bool = False) -> Log:
        """Return the log in stamps of so many seconds; displays of one stamp in random order."""
        unit = DAY if tick == "d" else 1
        shown = (self.time // stamp * stamp).astype(np.int64) // unit
        when = ((self.time[self.of] + self.delay) // stamp * stamp).astype(np.int64) // unit
        order = np.lexsort((np.random.default_rng(self.seed).random(len(shown)), shown))
        place = np.empty(len(shown), np.int64)
        place[order] = np.arange(len(shown))
        rows = np.argsort(place[self.of])
        log = build_log(
            time=shown[order], action=self.action[order], conversion_display=place[self.of][rows],
            conversion_time=when[rows], n_actions=len(MEANS), tick=tick,
        )  # fmt: skip
        if not position:
            return log
        displays = log.displays.append_column("position", pa.array(np.arange(len(shown))))
        return Log(displays, log.conversions, log.actions, log.meta)

    def live(self, rounds: int, rng: np.random.Generator, law: str, mean: float) -> float:
        """Return the mean reward of UCB1 on all this traffic, with fresh outcomes."""
        pulls, sums = np.zeros((2, len(MEANS)))
        coming: list[tuple[float, int]] = []
        total = 0
        for t in range(rounds):
            while coming and coming[0][0] < self.time[t]:
                sums[heapq.heappop(coming)[1]] += 1
            with np.errstate(divide="ignore", invalid="ignore"):
                index = sums / pulls + np.sqrt(2 * np.log(t + 1) / pulls)
            arm = t if t < len(MEANS) else int(np.argmax(index + 1e-9 * rng.random(len(MEANS))))
            pulls[arm] += 1
            if rng.random() < MEANS[arm]:
                total += 1
                heapq.heappush(coming, (self.time[t] + float(delays_of(law, mean, 1, rng)[0]), arm))
        return total / rounds


def drawn(
    seed: int,
    *,
    displays: int = 20_000,
    days: float = 20.0,
    law: str = "exponential",
    mean_delay: float = 2.0 * HOUR,
    rhythm: float = 0.0,
) -> StampedWorld:
    """Return traffic of an even logger, with a daily rhythm of an amplitude between 0 and 1."""
    rng = np.random.default_rng(seed)
    at = rng.random(8 * displays) * days * DAY
    at = at[rng.random(len(at)) * 2 < 1 + rhythm * np.sin(2 * np.pi * at / DAY)][:displays]
    action = rng.integers(0, len(MEANS), displays)
    of = np.flatnonzero(rng.random(displays) < MEANS[action])
    return StampedWorld(seed, np.sort(at), action, of, delays_of(law, mean_delay, len(of), rng))
