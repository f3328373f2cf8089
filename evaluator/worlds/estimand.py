"""What a replay claims where delays depend on the action: the share of a reward that counts, and when it is revealed.

A `Claim` is of one delay law, and `ClaimsByLaw` hold one for each law of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import ParameterError
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.clock import ReplayWindow
from evaluator.units import NO_WINDOW
from evaluator.worlds.truth import LogTruth

Floats = npt.NDArray[np.float64]
# Pairs of a display and a delay that a mean is taken of, and the step of the lattice.
_PAIRS, _GOLDEN = 262_144, (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Claim:
    """Share of a round's expected reward that counts, and when its conversions are revealed."""

    cdf: DelayCDF  # of conversions within `longest`, in rounds of live traffic at the share that the policy is to serve
    window: int  # m, in the same rounds
    longest: int | None  # longest delay revealed, in ticks of the twins, where the window is a duration
    share: float  # rounds per display of the traffic
    observed: bool  # whether rewards count only if revealed by the last round
    counted: float  # share of the eventual rewards that count: tau_m where rewards end with the policy's window, else 1

    def weights(self, rounds: int) -> Floats:
        """Return the weight of each round's expected eventual reward in the mean of T rounds, shape (T,)."""
        if not self.observed:
            return np.full(rounds, self.counted / max(rounds, 1))
        ages = np.minimum(np.arange(rounds - 1, -1, -1), self.window)
        return np.asarray(self.cdf(ages)) / max(rounds, 1)

    def table(self, rounds: int) -> Floats:
        """Return tau_a for a = 0 up to the longest delay that T rounds reveal, where twins count rounds."""
        tau = np.asarray(self.cdf(np.arange(min(self.window, max(rounds - 1, 0)) + 1)))
        return tau[: int(np.searchsorted(tau, tau[-1])) + 1]


def claim_of(truth: LogTruth, plan: ReplayPlan) -> Claim:
    """Return what a replay of this plan claims, whose clock must be the traffic's.

    The wall clock is right for one share of the traffic only; a policy that is to serve all of it is what its replay is
    held to.
    """
    share, window = plan.clock.share, plan.window
    cdf = _in_rounds(truth, share, window)
    counted = 1.0
    if plan.rewards_end_with_window:
        counted = float(cdf(window.rounds) if window.ticks is None else truth.cdf(window.ticks))
    return Claim(cdf, window.rounds, window.ticks, share, plan.options.reward == "observed", counted)


def _in_rounds(truth: LogTruth, share: float, window: ReplayWindow) -> DelayCDF:
    """Return the CDF of the delays in rounds, of the conversions that a duration does not cut off.

    Where twins have times, it is the mean over displays and delays, evenly spaced over both (a lattice of golden
    section), each turned into rounds by the traffic that follows that display.
    """
    if truth.traffic is None:
        return truth.cdf if share == 1.0 else truth.cdf.scaled(share)
    i = np.arange(_PAIRS)
    arrival = ((i + 0.5) / _PAIRS * len(truth.traffic)).astype(np.int64)
    step = np.searchsorted(truth.cdf.cdf, (i * _GOLDEN) % 1.0, side="right")
    known = step < truth.cdf.delays.size
    ticks = truth.cdf.delays[np.minimum(step, truth.cdf.delays.size - 1)]
    known &= ticks <= (NO_WINDOW if window.ticks is None else window.ticks)
    displays = truth.traffic.displays_within(arrival[known], ticks[known])
    rounds, count = np.unique(np.rint(displays * share).astype(np.int64), return_counts=True)
    if not rounds.size:
        rounds, count = np.array([2**53]), np.array([_PAIRS])
    return DelayCDF(delays=rounds, cdf=np.minimum(np.cumsum(count) / _PAIRS, 1.0), source=truth.cdf.source)


@dataclass(frozen=True, eq=False)
class MoneyClaim:
    """What else a replay counts, as shares of the mean value of a sale, by action, shape (K,) each."""

    sold: Floats  # what a sale brings
    owed: Floats  # what its refund is expected to take back
    cost: Floats  # of a display, where costs count, less what its outcomes are expected to bring
    refunds: ClaimsByLaw
    costs: bool = False  # whether costs count


@dataclass(frozen=True, eq=False)
class ClaimsByLaw:
    """Claims of one plan: one for each law of the truth, or a single one where laws need not be told apart."""

    of_laws: tuple[Claim, ...]
    law: npt.NDArray[np.int64]  # (K,) number of each action's claim
    money: MoneyClaim | None = None  # what else counts of a display where twins have refunds or costs

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
        refunds = ClaimsByLaw(laws, money.refunds.pairs[1])
    cost = money.costs.means if plan.of_profit and money.costs is not None else np.zeros(k)
    unit, costs = truth.mean_value, bool(cost.any())
    if money.outcomes and plan.options.reward == "observed":
        raise ParameterError(
            f"`reward='observed'`: an audit values {money.outcomes[0].kind.name}, which counts as a reward, by what "
            "comes in the end.",
            remedy="audit `reward='eventual'`.",
        )
    for one in money.outcomes:
        cost = cost - one.brought
    return MoneyClaim(money.worth / unit, money.owed / unit, cost / unit, refunds, costs)
