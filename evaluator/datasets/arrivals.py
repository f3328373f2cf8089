"""When the displays of a synthetic log come: a Poisson process whose rate follows the hour, grows and jumps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.datasets.scenario import ScenarioArrivals
from evaluator.errors import ParameterError

Floats = npt.NDArray[np.float64]

DAY_S = 86_400
# The rate is taken as constant for so long.
STEP_S = 60
_LONGEST_DAYS = 10_000


def intensity(arrivals: ScenarioArrivals, seconds: Floats) -> Floats:
    """Return the displays a second expected at each time, shape of `seconds` (since the start of the log)."""
    days = seconds / DAY_S
    rhythm = 1.0 - arrivals.amplitude * np.cos(2 * np.pi * (seconds - arrivals.trough_s) / DAY_S)
    jumped: Floats | float = 1.0
    if arrivals.step is not None and arrivals.step_at_s is not None:
        jumped = np.where(seconds < arrivals.step_at_s, 1.0, arrivals.step)
    return np.asarray(arrivals.displays_per_day / DAY_S * arrivals.growth**days * rhythm * jumped)


def arrival_times(arrivals: ScenarioArrivals, n: int, rng: np.random.Generator) -> Floats:
    """Return the times of the first `n` displays in seconds, increasing, shape (n,).

    The process of rate 1 is stretched: its times are the cumulative rates at ours. More displays begin with fewer.

    Raises
    ------
    ParameterError
        The traffic falls so fast that `n` displays do not come within 10,000 days.
    """
    due = np.cumsum(rng.exponential(size=n))
    days = 1
    while True:
        edges = np.arange(0, days * DAY_S + 1, STEP_S, dtype=np.float64)
        cumulative = np.concatenate([[0.0], np.cumsum(intensity(arrivals, edges[:-1] + STEP_S / 2) * STEP_S)])
        if cumulative[-1] >= due[-1]:
            return np.interp(due, cumulative, edges)
        if days >= _LONGEST_DAYS:
            raise ParameterError(
                f"{n:,} displays do not come within {days:,} days at {arrivals.displays_per_day:g} a day.",
                hint="ask for fewer displays, more a day, or a growth closer to 1.",
            )
        days = min(2 * days, _LONGEST_DAYS)
