"""What a replay of a twin showed, and what is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evaluator.audits.by_action import ClaimsByLaw, MoneyClaim
from evaluator.audits.truth import LogTruth
from evaluator.audits.twins import TwinLog
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.rewards import observed_rewards

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ShownDisplays:
    """What a replay showed, repeat by repeat."""

    def __init__(
        self, plan: ReplayPlan, result: ReplayResult, claim: ClaimsByLaw, twin: TwinLog, truth: LogTruth
    ) -> None:
        self.plan, self.claim, self.twin = plan, claim, twin
        table = result.trajectory
        repeat, display, action, reward = (
            to_numpy(table[name]) for name in ("repeat", "display_id", "action", "reward")
        )
        bounds = np.searchsorted(repeat, np.arange(plan.options.repeats + 1))
        parts = [slice(low, high) for low, high in pairwise(bounds.tolist())]
        self.rounds = tuple(part.stop - part.start for part in parts)
        self.displays = [display[part] for part in parts]
        self._rewards = [reward[part] for part in parts]
        rates = shown_rates(truth, twin, display, action) * truth.mean_value
        self._expected = [rates[part] for part in parts]
        self._law = [claim.law[action[part]] for part in parts]
        self._action = [action[part] for part in parts]
        self._mean_value = truth.mean_value

    def realised(self, rounds: Sequence[int]) -> float:
        """Return the mean expected reward of the first rounds of all repeats."""
        if self.claim.money is not None:
            means = [self._net(repeat, t, self.claim.money) for repeat, t in enumerate(rounds)]
        else:
            each = zip(rounds, self._expected, self._law, strict=True)
            means = [self.claim.weights(t)[law[:t], np.arange(t)] @ own[:t] for t, own, law in each]
        return float(np.average(means, weights=rounds)) if sum(rounds) else float("nan")

    def _net(self, repeat: int, rounds: int, money: MoneyClaim) -> float:
        """Return the mean of what the first rounds of a repeat bring, less refunds and costs."""
        at, action = np.arange(rounds), self._action[repeat][:rounds]
        sold = self._expected[repeat][:rounds]
        refunds = money.refunds
        brought = self.claim.weights(rounds)[self._law[repeat][:rounds], at] @ (sold * money.sold[action])
        returned = refunds.weights(rounds)[refunds.law[action], at] @ (sold * money.owed[action])
        return float(brought - returned - money.cost[action].sum() * self._mean_value / max(rounds, 1))

    def rewards(self, repeat: int, rounds: int) -> Floats:
        """Return the rewards of the first rounds of a repeat, as a replay of so many rounds would count them."""
        if self.plan.options.reward == "observed":
            return observed_rewards(self.plan, self.displays[repeat][:rounds] - self.plan.before)
        return self._rewards[repeat][:rounds]


def shown_rates(truth: LogTruth, twin: TwinLog, display: Ints, action: Ints) -> Floats:
    """Return the conversion probability of what was shown at some displays of a twin, shape (n,)."""
    time = to_numpy(twin.log.displays["time"])[display]
    return np.minimum(truth.rates[twin.entry[display], action] * truth.hours.factor(time), 1.0)
