"""What the logging policy of a twin is expected to earn, of the displays that a replay used."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.audits.means_in_blocks import mean_in_blocks
from evaluator.audits.shown_displays import rates_at
from evaluator.audits.truth import LogTruth
from evaluator.audits.twin_log import TwinLog
from evaluator.replays.plan import ReplayPlan

Floats = npt.NDArray[np.float64]


class LoggingValues:
    """Expected values of the logging policy's rounds on one twin, each found once for all replays that ask the same.

    Parameters
    ----------
    truth, twin
        Twin, and what it was drawn from.
    """

    def __init__(self, truth: LogTruth, twin: TwinLog) -> None:
        self._truth, self._twin = truth, twin
        self._found: dict[tuple[object, ...], float] = {}

    def of(self, plan: ReplayPlan, counted: Floats, cost: Floats) -> float:
        """Return the mean expected value of the displays that a replay used, in one pass over them.

        Parameters
        ----------
        plan
            Plan of the replay.
        counted
            What counts of a conversion of each action, as a share of their mean value, shape (K,).
        cost
            What a display of each action costs on average, shape (K,).
        """
        key = (plan.before, plan.rounds.used, counted.tobytes(), cost.tobytes())
        if key not in self._found:
            self._found[key] = self._mean(plan.before, plan.rounds.used, counted, cost)
        return self._found[key]

    def _mean(self, before: int, used: int, counted: Floats, cost: Floats) -> float:
        drawn = self._twin.drawn

        def sold_and_spent(first: int, end: int) -> Floats:
            part = before + first, before + end
            action = drawn.action.read(*part)
            rates = rates_at(self._truth, drawn.entries(*part), action, drawn.times(*part))
            return np.stack([rates * counted[action], cost[action]])

        sold, spent = mean_in_blocks(used, sold_and_spent)
        return float(sold) * self._truth.mean_value - float(spent)
