"""Displays too young at the end of the log: their conversions may still come, so they are no failures.

A display can be judged once the log has followed it for the attribution window or, where the log names none, for the
policy's window. Younger displays are left out, or kept with what was seen divided by the probability of having seen it,
tau(follow-up): unbiased when the delay does not depend on the action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.delays import product_limit
from evaluator.errors import DataError
from evaluator.log import Log
from evaluator.log.contract import to_numpy
from evaluator.rounds.clock import Window

ImmatureRule = Literal["drop", "correct"]
# A display whose conversions had less than this chance to show says little and would weigh much.
LEAST_SEEN = 0.2


@dataclass(frozen=True)
class Maturity:
    """Which displays are used, and with what weight.

    Parameters
    ----------
    used
        Displays are sorted by time, so the used ones are the first.
    immature
        Displays not followed long enough, used or not.
    weight
        1 / tau(follow-up) of the used displays, shape (used,); None when all weigh 1.
    known
        False when the log stops looking but nothing says how long a display must be followed.
    """

    used: int
    immature: int
    weight: npt.NDArray[np.float64] | None
    known: bool

    @property
    def heaviest(self) -> float:
        """Largest weight."""
        return 1.0 if self.weight is None or not len(self.weight) else float(self.weight.max())


def judge_maturity(log: Log, window: Window, rule: ImmatureRule) -> Maturity:
    """Return which displays were followed long enough, and what becomes of the others.

    Raises
    ------
    DataError
        No display was followed long enough; or ``correct`` on a log without conversions: there is no delay to fit.
    """
    n = len(log)
    if log.meta.observed_until is None:
        return Maturity(n, 0, None, True)
    followed = log.meta.observed_until - to_numpy(log.displays["time"]).astype(np.int64)
    needed = log.meta.attribution_window if log.meta.attribution_window is not None else window.ticks
    if needed is None:
        return Maturity(n, 0, None, False)
    mature = int(np.count_nonzero(followed >= np.floor(needed)))
    if mature == 0:
        raise DataError(
            f"No display of log {log.meta.name!r} was followed for {needed:g} ticks, so none can be judged.",
            hint="give a shorter attribution_window or --window, or a log that covers more time.",
        )
    if rule == "drop" or mature == n:
        return Maturity(mature, n - mature, None, True)
    seen = _chance_to_show(log, followed, int(needed))
    used = int(np.count_nonzero(seen >= LEAST_SEEN))
    return Maturity(used, n - mature, 1.0 / seen[:used], True)


def _chance_to_show(log: Log, followed: npt.NDArray[np.int64], needed: int) -> npt.NDArray[np.float64]:
    of = to_numpy(log.conversions["display_id"])
    if not len(of):
        raise DataError("--immature correct: the log has no conversions to fit delays to.", hint="use --immature drop.")
    delay = to_numpy(log.conversions["time"]).astype(np.int64) - to_numpy(log.displays["time"])[of]
    within = delay <= needed
    limit = np.minimum(followed, needed)
    cdf = product_limit(delay[within], limit[of[within]])
    seen = np.asarray(cdf(limit), dtype=np.float64) / float(cdf(needed))
    # A longer follow-up never shows less; the fit is a step function, so this holds up to ties.
    return np.minimum.accumulate(seen)
