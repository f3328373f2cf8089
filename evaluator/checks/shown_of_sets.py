"""Whether actions were shown as often as their propensities say where they were eligible."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evaluator.checks.record import Check
from evaluator.checks.result import SERIOUS, TRIVIAL, CheckResult, Verdict
from evaluator.checks.tables import Tables
from evaluator.estimates.martingales import log_tail
from evaluator.log.eligible import SetCodes, bits_of, members, sizes
from evaluator.log.schema import ELIGIBLE
from evaluator.replays.rounds.batch import read_sets

NAME = "eligible actions"
# An action that is eligible at so few displays is hardly in anybody's way, and hardly known.
_HARDLY = 1e-3
_NAMED = 5
# Displays whose propensity is so close to the smallest bind c.
_BINDS = 1.01
# Sets of so many actions and more are compared together.
_LARGEST = 64
# Actions of fewer displays say little of how their 1/p vary, and may be unseen by chance.
_FEWEST_SHOWN = 25


def shown_of_sets(t: Tables, level: float) -> CheckResult:
    """Compare the mean of 1[a = k] / p over all displays with the share of those at which action k was eligible.

    Given any set, the mean is 1 for each eligible action and 0 for the others: what was shown without being eligible, a
    logger that chose among other sets than the log says, and propensities of 1/K break that. So is the mean of 1 / (p
    |E|), for every size of the set: errors that follow the size may cancel out in every action. Both are silent on an
    uneven sample of the traffic, whose sets are not those that the logger met.
    """
    survey = t.logged.survey
    log, n, labels = survey.log, len(survey.log), survey.log.labels
    sets = read_sets(log)
    if sets is None:
        return CheckResult(name=NAME, verdict="not applicable", number="", what="every action is always eligible")
    p = t.logged.propensities
    rare = sets.eligible / sets.eligible.sum() * n < _FEWEST_SHOWN
    total, by_size = np.zeros((2, log.n_actions)), _BySize((survey.shown > 0) | rare)
    among = np.zeros(log.n_actions)
    binding, largest_binding = 0, 0
    for _, batch in log.batches(list(dict.fromkeys(["action", ELIGIBLE, *p.reads])), coded=True):
        own = p.of(batch)
        for row, power in enumerate((1, 2)):
            total[row] += np.bincount(batch["action"], own**-power, log.n_actions)
        by_size.add(batch[ELIGIBLE], own)
        among += _actions_beside(batch[ELIGIBLE], log.n_actions)
        binds = own <= _BINDS * p.least
        binding += int(binds.sum())
        largest_binding = max(largest_binding, int(sizes(batch[ELIGIBLE])[binds].max(initial=0)))
    share = sets.eligible / n
    known = survey.shown > 0
    # Shown once, with a large p, an action would seem to have no spread: that of a logger without favourites is taken.
    few = survey.shown < _FEWEST_SHOWN
    total[1, few] = np.maximum(total[1, few], among[few])
    off, log_p, size_off, size_log_p = np.zeros((4, int(known.sum())))
    if not p.tilted:
        off = total[0, known] / n / share[known] - 1.0
        log_p = log_tail(total[0, known], total[1, known], n, expected=share[known], largest=1.0 / p.smallest[known])
        size_off, size_log_p = by_size.test()
    tests = len(off) + int((size_log_p <= 0.0).sum())
    told = log_p < math.log(level / tests)
    # Of what is told the largest; else what comes nearest.
    worst = int(np.argmax(np.where(told, np.abs(off), -1.0))) if told.any() else int(np.argmin(log_p))
    alarming = told[worst] and abs(off[worst]) >= TRIVIAL
    label = labels[int(np.flatnonzero(known)[worst])]
    unseen = np.flatnonzero((sets.eligible > 0) & ~known)
    hardly = np.flatnonzero((sets.eligible > 0) & (share < _HARDLY))
    said, do = [], []
    verdict: Verdict = "pass"
    if alarming:
        verdict = "fail" if abs(off[worst]) >= SERIOUS else "warn"
        said.append(
            f"action {label} was shown {1.0 + off[worst]:.3g} times as often as its propensities say where it was "
            "eligible, so the logger chose among other sets, or with other propensities, than the log says"
        )
        do.append("Give the propensity of the action among those that were eligible, 1/|E| where all were alike.")
    size_told = (size_log_p < math.log(level / tests)) & (np.abs(size_off) >= TRIVIAL)
    if size_told.any() and not alarming:
        size = int(np.argmax(np.where(size_told, np.abs(size_off), -1.0)))
        verdict = "fail" if abs(size_off[size]) >= SERIOUS else "warn"
        said.append(
            f"where {size} actions are eligible, propensities are {1.0 / (1.0 + size_off[size]):.3g} times what they "
            "were, on average, so rounds lean to sets of some sizes"
        )
        do.append("Give the propensity of the action among those that were eligible, 1/|E| where all were alike.")
    if int(sets.eligible.sum()) == n:
        verdict = "warn" if verdict == "pass" else verdict
        said.append("every display has one eligible action, so no policy has a choice")
    for what, found in (("eligible and never shown", unseen), ("hardly ever eligible", hardly)):
        if len(found):
            named = ", ".join(labels[k] for k in found[:_NAMED])
            more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
            verdict = "warn" if verdict == "pass" else verdict
            said.append(f"{what}: {named}{more}")
            do.append("Leave them out with `actions`; replays let no policy choose what was never shown.")
    said.append(
        f"{binding:,} displays have the smallest propensity, {p.least:.3g}, with up to {largest_binding:,} eligible "
        "actions: they bind how many displays a replay accepts"
    )
    if p.tilted:
        said.append("how often actions were shown is not compared with their propensities: the sample is uneven")
    nearest = min(float(log_p.min()), float(size_log_p.min()))
    p_value = float(min(1.0, math.exp(nearest) * tests))
    compared = "" if p.tilted else f", off by {np.abs(off[worst]):.1%}"
    return CheckResult(
        name=NAME,
        verdict=verdict,
        number=f"{float(share.sum()):.3g} eligible on average, c {p.least:.2g}{compared}",
        statistic=None if p.tilted else float(off[np.argmin(log_p)]),
        p_value=None if p.tilted else p_value,
        effect=float(np.abs(off[worst])),
        numbers={
            "mean_eligible": float(share.sum()), "c": p.least, "binding_displays": binding,
            "largest_binding_set": largest_binding, "moves_with_time": sets.moving >= 0,
            "never_shown": len(unseen), "hardly_eligible": len(hardly),
        },
        what=". ".join(line[0].upper() + line[1:] for line in said) + ".",
        remedy=" ".join(dict.fromkeys(do)),
    )  # fmt: skip


def _actions_beside(sets: npt.NDArray[np.int32], n_actions: int) -> npt.NDArray[np.float64]:
    """Return the sum of |E| over the displays at which each action is eligible, shape (K,)."""
    assert isinstance(sets, SetCodes)
    first, member = members(sets.distinct)
    size = np.diff(first)
    displays = np.bincount(np.asarray(sets), minlength=len(size))
    return np.bincount(member, np.repeat(displays * size, size), n_actions).astype(np.float64)


class _BySize:
    """Sums of 1 / (p |E|) and of its square by the size of the set, of actions that were shown or are rare."""

    def __init__(self, known: npt.NDArray[np.bool_]) -> None:
        self._mask = bits_of(known[None])
        self._sums = np.zeros((3, _LARGEST + 1))
        self._largest = np.zeros(_LARGEST + 1)

    def add(self, sets: npt.NDArray[np.int32], p: npt.NDArray[np.float64]) -> None:
        """Count some displays."""
        assert isinstance(sets, SetCodes)
        size = sizes(sets.distinct & self._mask)[np.asarray(sets)]
        ratio, row = 1.0 / (p * size), np.minimum(size, _LARGEST)
        self._sums += [np.bincount(row, ratio**power, _LARGEST + 1) for power in (0, 1, 2)]
        np.maximum.at(self._largest, row, ratio)

    def test(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return how far each mean is off 1, and a bound of its log probability; 0 and 1 for sizes of no display."""
        n, total, squares = self._sums
        shown = n > 0
        off, log_p = np.zeros(_LARGEST + 1), np.ones(_LARGEST + 1)
        off[shown] = total[shown] / n[shown] - 1.0
        log_p[shown] = log_tail(
            total[shown], squares[shown], int(n.sum()), expected=n[shown] / n.sum(), largest=self._largest[shown]
        )
        return off, log_p


SHOWN_OF_SETS = Check(
    name=NAME,
    finds="propensities that do not fit the eligible actions; actions eligible but never or hardly shown; what binds c",
    run=shown_of_sets,
    instead_of="uniformity",
)
