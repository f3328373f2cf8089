"""What a replay claims to tell: the live value, round by round, of what a policy shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.audits.truth import LogTruth
from evaluator.delays.cdf import DelayCDF
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.window import ReplayWindow
from evaluator.units import NO_WINDOW

Floats = npt.NDArray[np.float64]

# Pairs of a display and a delay that a mean is taken of, and the step of the lattice.
_PAIRS, _GOLDEN = 262_144, (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Claim:
    """Share of a round's expected reward that counts, and when its conversions are revealed.

    Parameters
    ----------
    cdf
        Delay CDF in rounds of live traffic at the share that the policy is to serve, of the conversions that come
        within `longest`.
    window
        The window m, in the same rounds.
    longest
        The longest delay that is revealed, in ticks of the twins, where the window is a duration; None elsewhere.
    share
        Number of rounds per display of the traffic.
    observed
        Whether rewards count only if revealed by the last round.
    counted
        Share of the eventual rewards that count: tau_m where rewards end with the policy's window, else 1.
    """

    cdf: DelayCDF
    window: int
    longest: int | None
    share: float
    observed: bool
    counted: float

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
