"""What a replay claims to tell: the live value, round by round, of what a policy shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.auditor.truth import Truth
from evaluator.delays import DelayCDF
from evaluator.evaluation.plan import Plan
from evaluator.units import NO_WINDOW

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Claim:
    """Share of a round's expected reward that counts, and when its conversions are revealed.

    Parameters
    ----------
    cdf
        Delay CDF in rounds of live traffic at the share that the policy is to serve.
    window
        m in these rounds.
    observed
        Whether rewards count only if revealed by the last round.
    counted
        Share of the eventual rewards that count: tau_m where rewards end with the policy's window, else 1.
    """

    cdf: DelayCDF
    window: int
    observed: bool
    counted: float

    def weights(self, rounds: int) -> Floats:
        """Return the weight of each round's expected eventual reward in the mean of T rounds, shape (T,)."""
        if not self.observed:
            return np.full(rounds, self.counted / max(rounds, 1))
        ages = np.minimum(np.arange(rounds - 1, -1, -1), self.window)
        return np.asarray(self.cdf(ages)) / max(rounds, 1)

    def table(self, rounds: int) -> Floats:
        """Return tau_a for a = 0 up to the longest delay that T rounds reveal."""
        tau = np.asarray(self.cdf(np.arange(min(self.window, max(rounds - 1, 0)) + 1)))
        return tau[: int(np.searchsorted(tau, tau[-1])) + 1]


def claim_of(truth: Truth, plan: Plan) -> Claim:
    """Return what a replay of this plan claims, whose clock must be the traffic's.

    The wall clock is right for one share of the traffic only; a policy that is to serve all of it is what its replay is
    held to.
    """
    share, m = plan.clock.share, plan.window.rounds
    cdf = truth.cdf if share == 1.0 else truth.cdf.scaled(share)
    counted = float(cdf(m)) if plan.rewards_end_with_window and m != NO_WINDOW else 1.0
    return Claim(cdf, m, plan.options.reward == "observed", counted)
