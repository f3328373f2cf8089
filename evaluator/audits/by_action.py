"""What a replay claims where delays depend on the action: the share of a reward that counts, and when it is revealed.

A claim (`evaluator.audits.claim`) is of one delay law; here is one of each law of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evaluator.audits.claim import Claim, claim_of
from evaluator.audits.truth import LogTruth
from evaluator.replays.plan import ReplayPlan

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MoneyClaim:
    """What else a replay counts, as shares of the mean value of a sale, so that it adds up with what sales bring.

    Parameters
    ----------
    sold, owed
        What a sale of each action brings, and what its refund is expected to take back, shape (K,).
    cost
        What a display of each action costs, shape (K,); 0 where costs do not count.
    refunds
        Claims of the refunds.
    """

    sold: Floats
    owed: Floats
    cost: Floats
    refunds: ClaimsByLaw


@dataclass(frozen=True, eq=False)
class ClaimsByLaw:
    """Claims of one plan, one a law.

    Parameters
    ----------
    of_laws
        The claims in the order of the truth's laws; a single one where laws need not be told apart.
    law
        Number in `of_laws` of each action's claim, shape (K,).
    money
        What else counts of a display where twins have refunds or costs; None elsewhere.
    """

    of_laws: tuple[Claim, ...]
    law: npt.NDArray[np.int64]
    money: MoneyClaim | None = None

    @property
    def observed(self) -> bool:
        """Whether rewards count only if revealed by the last round."""
        return self.of_laws[0].observed

    @property
    def longest(self) -> int | None:
        """The longest delay that is revealed, in ticks of the twins, where the window is a duration."""
        return self.of_laws[0].longest

    @property
    def share(self) -> float:
        """Rounds per display of the traffic."""
        return self.of_laws[0].share

    def weights(self, rounds: int) -> Floats:
        """Return what each round's expected eventual reward counts in the mean of T rounds, by law, shape (R, T)."""
        return np.stack([claim.weights(rounds) for claim in self.of_laws])

    def counted(self, rounds: int) -> Floats:
        """Return the share of each action's eventual rewards that counts in the mean of T rounds, shape (K,)."""
        share: Floats = self.weights(rounds).sum(axis=1)[self.law]
        return share

    def net(self, rounds: int) -> Floats:
        """Return what counts of a conversion of each action, as a share of their mean value, shape (K,)."""
        share = self.counted(rounds)
        if self.money is None:
            return share
        return self.money.sold * share - self.money.owed * self.money.refunds.counted(rounds)

    def tables(self, rounds: int) -> Floats:
        """Return tau_a of each law up to the longest delay that T rounds reveal, shape (R, J)."""
        tables = [claim.table(rounds) for claim in self.of_laws]
        longest = max(table.size for table in tables)
        return np.stack([np.pad(table, (0, longest - table.size), mode="edge") for table in tables])


def claims_of(truth: LogTruth, plan: ReplayPlan) -> ClaimsByLaw:
    """Return what a replay of this plan claims, whose clock must be the traffic's.

    Eventual rewards count whatever their delay, so that one claim does for all actions where twins have times, by which
    live runs reveal them.
    """
    return replace(_of_sales(truth, plan), money=None if truth.money is None else _of_money(truth, plan))


def _of_sales(truth: LogTruth, plan: ReplayPlan) -> ClaimsByLaw:
    late = _late(plan)
    if truth.traffic is not None and not late:
        return ClaimsByLaw((claim_of(truth, plan),), np.zeros(len(truth.laws.of_action), np.int64))
    return ClaimsByLaw(tuple(claim_of(replace(truth, cdf=cdf), plan) for cdf in truth.laws.cdfs), truth.laws.of_action)


def _late(plan: ReplayPlan) -> bool:
    """Whether it depends on its delay how much of a reward counts."""
    return plan.options.reward == "observed" or plan.rewards_end_with_window


def _of_money(truth: LogTruth, plan: ReplayPlan) -> MoneyClaim:
    money = truth.money
    assert money is not None
    k = len(truth.laws.of_action)
    refunds = ClaimsByLaw((claim_of(truth, plan),), np.zeros(k, np.int64))
    if money.refunds is not None and _late(plan):
        laws = tuple(claim_of(replace(truth, cdf=cdf), plan) for cdf in money.refunds.totals)
        refunds = ClaimsByLaw(laws, money.refunds.laws[1])
    cost = money.costs.means if plan.of_profit and money.costs is not None else np.zeros(k)
    unit = truth.mean_value
    return MoneyClaim(money.worth / unit, money.owed / unit, cost / unit, refunds)
