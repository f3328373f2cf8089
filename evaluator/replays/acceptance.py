"""Every replay compares what it accepted with what it should have, and the log's actions with their propensities.

*Sets of eligible actions.* A replay must accept displays of every set alike: their sizes are compared with the log's.
Rejection with one c accepts each display with probability c, whatever its set. A c for each set, waiting for a matching
display, and propensities of 1/K where actions were chosen among |E| all accept small sets more often than large ones:
one mistake, which the mean size of the accepted sets shows where the values themselves may not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evaluator.engine.log_replay import Replay
from evaluator.estimates.confidence import combined, log_evidence, log_tail
from evaluator.findings import codes
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.support import MUCH_SMALLER

# A right log raises one of these alarms with this probability at most: so few that hundreds of replays stay quiet.
ALARM = 1e-4
# Propensities this close to right move a value by no more than that; `evaluate check` lets them pass too.
NEGLIGIBLE = 0.02
_NAMED = 3
# Times at which the evidence is looked at, evenly over the rounds.
_LOOKS = 32
_FEW = 3
_TOO_FEW = (
    "displays of one time sorted by action, an action that was not available at all times or in all contexts, "
    "propensities of another policy or out of date"
)
_HOLE = (
    "an action that was never shown in some contexts or at some times, propensities of another policy or out of date"
)
_TOO_MANY = (
    "propensities of another policy or out of date, an action that was shown for a part of the time only, "
    "duplicated rows"
)
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
# A right replay raises this alarm with this probability at most: that of `evaluator.replays.acceptance`.
# Slopes of the evidence, in units of 1 / (largest deviation of a size from the mean): both signs, each half the last.
_SLOPES = 2.0 ** -np.arange(-1.0, 12.0)


@dataclass(frozen=True, eq=False)
class AcceptedDisplays:
    """The displays that a replay accepted, of those that it read.

    `read` and `accepted` count displays while each action was the policy's choice, and `probability` is that of
    accepting each, shape (K,). Where a policy reads contexts, nobody knows what it would have chosen at the others: the
    shapes are (1,).
    """

    read: npt.NDArray[np.int64]
    accepted: npt.NDArray[np.int64]
    probability: npt.NDArray[np.float64]

    @property
    def expected(self) -> float:
        """Share of the displays read that should be accepted."""
        total = float(self.read.sum())
        return float(self.read @ self.probability) / total if total else math.nan


def accepted_of(plan: ReplayPlan, replay: Replay, action: npt.NDArray[np.int32]) -> AcceptedDisplays | None:
    """Return the displays that a replay accepted, and those expected; None if no acceptance probability is known.

    Rejection accepts each display with probability c, whatever the choice; keep one of action k while it waits for k
    with probability c_k. Without propensities all there is to compare with are the shares of the log's actions: this
    finds an order within the log, but not a logger that is another than was said. Queues accept nothing by chance, and
    propensities clipped at a quantile are accepted too rarely by intention; those clipped by the c of fitted ones lose
    less than is negligible. `action` holds the actions of the accepted displays, shape (T,).
    """
    if plan.sampler in ("queue", "logged") or not replay.read:
        return None
    if plan.matched.clips and plan.options.accept_quantile > 0:
        return None
    c = np.minimum(plan.matched.c, 1.0)
    if plan.matched.propensities.rule is None:
        c = plan.usable / len(plan.rounds)
    c = np.where(plan.usable > 0, c, 0.0 if not plan.per_display else np.inf)
    if plan.per_display:
        return AcceptedDisplays(np.array([replay.read]), np.array([len(replay.displays)]), c.min(keepdims=True))
    waited = np.diff(replay.displays, prepend=-1)
    read = np.bincount(action, weights=waited, minlength=plan.log.n_actions).astype(np.int64)
    accepted = np.bincount(action, minlength=plan.log.n_actions)
    if replay.waiting >= 0:
        read[replay.waiting] += replay.read - int(waited.sum())
    return AcceptedDisplays(read, accepted, c)


def most_suspicious(
    plan: ReplayPlan, replay: Replay, action: npt.NDArray[np.int32], found: AcceptedDisplays | None
) -> AcceptedDisplays | None:
    """Return what had been accepted when the evidence against it was largest, at the end or some time before.

    The evidence is a martingale, so that looking at it all along costs no more false alarms than looking once. An
    action launched late is accepted as often as it should be in the end, but not until then. `found` is what
    `accepted_of` returned for the whole replay.
    """
    if found is None or not len(action):
        return found
    ends = np.unique(np.linspace(0, len(action), _LOOKS + 1).astype(np.int64)[1:])
    ends = ends[ends > 0]
    seen = [found]
    if plan.per_display:
        seen += [replace(found, read=replay.displays[[t - 1]] + 1, accepted=np.array([t])) for t in ends]
    else:
        waited = np.diff(replay.displays, prepend=-1)
        parts = [slice(a, b) for a, b in pairwise([0, *ends.tolist()])]
        read, accepted = (
            np.cumsum([np.bincount(action[of], of_rounds[of], plan.log.n_actions) for of in parts], axis=0)
            for of_rounds in (waited, np.ones(len(action)))
        )
        seen += [
            replace(found, read=r.astype(np.int64), accepted=t.astype(np.int64))
            for r, t in zip(read, accepted, strict=True)
        ]
    return max(seen, key=_evidence)


def _evidence(found: AcceptedDisplays) -> float:
    possible = (found.read > 0) & (found.probability > 0)
    return combined(log_evidence(found.accepted[possible], found.read[possible], found.probability[possible]))


def acceptance_warning(plan: ReplayPlan, found: AcceptedDisplays | None) -> list[Finding]:
    """Return a warning if chance does not explain the number of accepted displays; otherwise none."""
    if found is None:
        return []
    possible = (found.read > 0) & (found.probability > 0)  # actions without a usable display are named elsewhere
    if not possible.any():
        return []
    read, accepted, c = found.read[possible], found.accepted[possible], found.probability[possible]
    log_e = log_evidence(accepted, read, c)
    worst = int(log_e.argmax())
    ratio = accepted / (read * c)
    if combined(log_e) < -math.log(ALARM) or abs(ratio[worst] - 1.0) < NEGLIGIBLE:
        return []
    when = ""
    if not plan.per_display:
        when = f"While the policy chose action {plan.log.labels[int(np.flatnonzero(possible)[worst])]}, "
    known = "its share of the log promises" if plan.matched.propensities.rule is None else "the propensities promise"
    causes = _TOO_FEW if ratio[worst] < 1.0 else _TOO_MANY
    return [
        codes.ACCEPTANCE_OFF.found(
            f"{when}{accepted[worst]:,} of {read[worst]:,} displays were accepted instead of the "
            f"{read[worst] * c[worst]:,.0f} that {known}: more than chance explains, so the value may be far "
            f"off. Likely causes: {causes}.",
            "Run evaluate check on this log.",
            ratio=float(ratio[worst]),
        )
    ]


def waiting_warning(plan: ReplayPlan, found: AcceptedDisplays | None) -> list[Finding]:
    """Return a warning if keep read most of the log while it waited for one rare action; otherwise none."""
    if found is None or plan.sampler != "keep" or len(found.read) < _FEW or not found.accepted.sum():
        return []
    k = int(found.read.argmax())
    read, rounds = int(found.read.sum()), int(found.accepted.sum())
    others = rounds - int(found.accepted[k])
    without = others * read / max(read - int(found.read[k]), 1)
    if not plan.usable[k] or not others or without < MUCH_SMALLER * rounds:
        return []
    return [
        codes.LONG_WAIT.found(
            f"Waiting for action {plan.log.labels[k]} ({plan.usable[k]:,} displays) took {found.read[k]:,} of the "
            f"{read:,} displays read, for {found.accepted[k]:,} of {rounds:,} rounds: without it there would be about "
            f"{without:,.0f}.",
            "Leave it out by `actions`.",
            about=plan.log.labels[k],
        )
    ]


def propensity_warning(plan: ReplayPlan) -> list[Finding]:
    """Return a warning if logged propensities do not fit how often actions were shown; otherwise none.

    The mean over all displays of 1/p of an action's own is 1, or one over the share of the displays that were kept when
    actions were chosen and propensities stayed those of all. Of an uneven sample with sets nothing is known: which sets
    were kept depends on propensities that the log does not hold, those of the actions that were not shown.
    """
    if plan.sets is not None and plan.propensities.tilted:
        return []
    survey, expected = plan.survey, np.full(plan.log.n_actions, 1.0 / plan.propensities.kept_share)
    if plan.sets is not None:  # of an action that is eligible 1, of another 0
        expected = expected * plan.sets.eligible / plan.sets.displays
    if plan.propensities.reads != ("propensity",) or plan.sampler == "logged":
        return []
    known = plan.usable > 0  # the others are named elsewhere
    n = len(survey.log)
    total, squares = survey.inverse[:, known]
    expected = expected[known]
    off = total / n / expected - 1.0
    log_p = log_tail(total, squares, n, expected=expected, largest=1.0 / survey.smallest[known])
    alarming = (log_p < math.log(ALARM / len(off))) & (np.abs(off) >= NEGLIGIBLE)
    if not alarming.any():
        return []
    worst = np.flatnonzero(alarming)[np.argsort(log_p[alarming], kind="stable")]
    labels = [plan.log.labels[k] for k in np.flatnonzero(known)]
    named = ", ".join(f"{(1.0 + off[k]) * expected[k]:.3g} for action {labels[k]}" for k in worst[:_NAMED])
    more = f" and {len(worst) - _NAMED:,} others" if len(worst) > _NAMED else ""
    right = "the share of the displays at which it is eligible" if plan.sets is not None else f"{expected[0]:.3g}"
    hole = bool((off[alarming] < 0).any())
    lost = " What an action earns is known only where it was shown." if hole else ""
    return [
        codes.PROPENSITIES_OFF.found(
            f"The mean of 1/propensity over all displays is {named}{more}, where right propensities give {right}. "
            f"Likely causes: {_HOLE if hole else _TOO_MANY}.{lost}",
            "Run evaluate check on this log.",
            about=labels[worst[0]],
        )
    ]


@dataclass(frozen=True)
class SetSizes:
    """Sizes |E| of the sets of accepted displays beside those of the displays read: number and mean, nan without.

    `log_evidence` is the log of the evidence that acceptance leans to large or to small sets, of mean 1 at most where
    it does not. Where the displays read are no even sample of the traffic (`uneven`), `mean_read` is that of the
    traffic they stand for, and there is no evidence: how likely a display is accepted depends on what its set lost.
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
    """Return how the sizes of accepted sets compare with those read, both counted by |E| from 0, shape (K + 1,). O(K).

    With A_i whether display i is accepted, c its probability and d_i = |E_i| - `mean`, for every slope l

        exp(l sum A_i d_i) / prod (1 - c + c exp(l d_i))

    is a martingale of mean 1, and so is the mean over some slopes: it ever reaches 1 / alpha with probability alpha at
    most (Ville), so that a replay may stop where it likes, and be looked at more than once. `mean` is that of |E| over
    the whole log, known without looking at what was accepted.
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
    """Return the sizes of accepted sets, counted as above, beside those of the traffic that the sample stands for.

    The traffic's mean is that of 1/p over the log's displays, for that of one action is 1 where it is eligible.
    """
    size = np.arange(len(accepted))
    return SetSizes(read, int(accepted.sum()), mean, _mean(size, accepted), 0.0, uneven=True)


def sizes_by_count(sizes: npt.NDArray[np.integer], n_actions: int) -> Counts:
    """Return how many displays have each |E|, shape (K + 1,), from the |E| of each, shape (n,)."""
    return np.bincount(sizes, minlength=n_actions + 1).astype(np.int64)


def set_sizes_assumption(found: SetSizes) -> Finding:
    """Return what was compared."""
    of = "traffic that the log stands for" if found.uneven else "displays read"
    return codes.ELIGIBLE_SETS.found(
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
        codes.TILTED_SETS.found(
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
