"""Whether a replay accepted displays of every set alike: the sizes of their sets against those of the log.

Rejection with one c accepts each display with probability c, whatever its set. A c for each set, waiting for a matching
display, and propensities of 1/K where actions were chosen among |E| all accept small sets more often than large ones:
one mistake, which the mean size of the accepted sets shows where the values themselves may not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.findings.codes import ELIGIBLE_SETS, TILTED_SETS
from evaluator.findings.finding import Finding

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# A right replay raises this alarm with this probability at most: that of `evaluator.replays.acceptance`.
ALARM = 1e-4
# Slopes of the evidence, in units of 1 / (largest deviation of a size from the mean): both signs, each half the last.
_SLOPES = 2.0 ** -np.arange(-1.0, 12.0)


@dataclass(frozen=True)
class SetSizes:
    """Sizes of the sets of accepted displays beside those of the displays that were read.

    Parameters
    ----------
    read, accepted
        Number of displays read, and of those accepted.
    mean_read, mean_accepted
        Mean |E| of each; nan where there are none.
    log_evidence
        Log of the evidence that acceptance leans to large or to small sets, of mean 1 at most where it does not.
    uneven
        Whether the displays read are no even sample of the traffic: `mean_read` is then that of the traffic they stand
        for, and there is no evidence, for how likely a display is accepted depends on what its set lost.
    """

    read: int
    accepted: int
    mean_read: float
    mean_accepted: float
    log_evidence: float
    uneven: bool = False

    @property
    def alarming(self) -> bool:
        """Whether chance explains this with probability `ALARM` at most, however the replay ended."""
        return self.log_evidence >= -math.log(ALARM)


def set_sizes(read: Counts, accepted: Counts, *, probability: float, mean: float) -> SetSizes:
    """Return how the sizes of accepted sets compare with those read. O(K).

    With A_i whether display i is accepted, c its probability and d_i = |E_i| - `mean`, for every slope l

        exp(l sum A_i d_i) / prod (1 - c + c exp(l d_i))

    is a martingale of mean 1, and so is the mean over some slopes: it ever reaches 1 / alpha with probability alpha at
    most (Ville), so that a replay may stop where it likes, and be looked at more than once.

    Parameters
    ----------
    read, accepted
        Number of displays read, and of those accepted, by |E| from 0, shape (K + 1,) each.
    probability
        Acceptance probability c of every display, in (0, 1].
    mean
        Mean |E| over the whole log, known without looking at what was accepted.
    """
    size = np.arange(len(read))
    n, t = int(read.sum()), int(accepted.sum())
    d = size - mean
    seen = (read > 0) & (d != 0.0)
    if not seen.any() or probability >= 1.0:
        evidence = 0.0
    else:
        slopes = np.concatenate([-_SLOPES, _SLOPES])[:, None] / np.abs(d[seen]).max()
        lean = slopes * d[seen]
        each = (lean * accepted[seen] - np.log1p(probability * np.expm1(lean)) * read[seen]).sum(axis=1)
        highest = float(each.max())
        evidence = highest + math.log(float(np.exp(each - highest).mean()))
    return SetSizes(n, t, _mean(size, read), _mean(size, accepted), evidence)


def uneven_set_sizes(read: int, accepted: Counts, *, mean: float) -> SetSizes:
    """Return the sizes of accepted sets beside those of the traffic that an uneven sample stands for.

    Parameters
    ----------
    read
        Number of displays read.
    accepted
        Number of accepted displays by |E| from 0, shape (K + 1,).
    mean
        Mean |E| of the traffic: the mean of 1/p over the log's displays, for that of one action is 1 where it is
        eligible.
    """
    size = np.arange(len(accepted))
    return SetSizes(read, int(accepted.sum()), mean, _mean(size, accepted), 0.0, uneven=True)


def sizes_by_count(sizes: npt.NDArray[np.integer], n_actions: int) -> Counts:
    """Return how many displays have each |E|, shape (K + 1,), from the |E| of each, shape (n,)."""
    return np.bincount(sizes, minlength=n_actions + 1).astype(np.int64)


def set_sizes_assumption(found: SetSizes) -> Finding:
    """Return what was compared."""
    of = "traffic that the log stands for" if found.uneven else "displays read"
    return ELIGIBLE_SETS.found(
        f"displays have their own eligible actions: {found.mean_read:.4g} on average of the {of}, "
        f"{found.mean_accepted:.4g} of the rounds"
    )


def set_sizes_warning(found: SetSizes) -> list[Finding]:
    """Return a warning if accepted sets are larger or smaller than chance explains; otherwise none."""
    if not found.alarming or not found.accepted:
        return []
    smaller = found.mean_accepted < found.mean_read
    causes = (
        "propensities of 1/K where actions were chosen among the eligible ones (1/|E|), an acceptance probability for "
        "each set instead of one for all, or waiting for a matching display (keep)"
        if smaller
        else "propensities that do not belong to these sets, or sets of another time than their displays"
    )
    return [
        TILTED_SETS.found(
            f"Accepted displays had {found.mean_accepted:.4g} eligible actions on average, where those read had "
            f"{found.mean_read:.4g}: more than chance explains. These rounds are not the log's traffic but lean to "
            f"{'small' if smaller else 'large'} sets, so the value may be far off. Likely causes: {causes}.",
            accepted=found.mean_accepted,
            read=found.mean_read,
        )
    ]


def _mean(size: Counts, count: Counts) -> float:
    total = int(count.sum())
    return float(size @ count) / total if total else math.nan
