"""Whether what can be shown later depends on what was shown: stock that runs out, actions withdrawn for how they sold.

A replay takes the eligible actions of each display for given. Where they follow outcomes, the log holds the sets that
came of the logging policy's choices, and another policy would have met others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, Verdict, not_applicable
from evaluator.checks.tables import Tables
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE
from evaluator.log.set_kinds import has_eligibility

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAME = "eligibility after displays"
# How many displays are looked at after each; a log has so many times as many, at least.
_REACHES, _TIMES = (10, 100, 1_000, 10_000), 20
# Displays times actions that are looked at, the first of the log, and at a time.
_CELLS, _AT_ONCE = 20_000_000, 2_000_000


class Follows(NamedTuple):
    """What follows on being shown, over so many displays.

    Parameters
    ----------
    reach
        Number L of displays after each that are looked at.
    effect
        Change of the share of these at which an action is eligible where it is shown.
    statistic
        Sum of D_i over the root of the sum of their squares: about standard normal where sets follow nothing.
    log_p
        Bound of the log probability of a sum so far from 0, two-sided.
    """

    reach: int
    effect: float
    statistic: float
    log_p: float


def eligibility_after_displays(t: Tables, level: float) -> CheckResult:
    """Compare the eligible actions after an action was shown with those after others were shown: `what_follows`."""
    log, p = t.logged.survey.log, t.logged.propensities
    if not has_eligibility(log):
        return not_applicable(NAME, "every action is always eligible")
    if p.rule is None:
        return not_applicable(NAME, "without propensities nothing says what might have been shown")
    n = min(len(log), max(_CELLS // log.n_actions, 1))
    time, of, truths, action, propensity = [], [], [], [], []
    distinct = 0
    for first, batch in log.batches(list(dict.fromkeys(["time", "action", ELIGIBLE, *p.reads])), coded=True):
        if first >= n:
            break
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        used, codes = np.unique(np.asarray(sets), return_inverse=True)
        begins, member = members(sets.distinct[used])
        own = np.zeros((len(used), log.n_actions), np.bool_)
        own[np.repeat(np.arange(len(used)), np.diff(begins)), member] = True
        of.append(codes + distinct)
        truths.append(own & (t.logged.survey.shown > 0))
        distinct += len(used)
        time.append(batch["time"])
        action.append(batch["action"])
        propensity.append(p.of(batch))
    columns = (np.concatenate(column)[:n] for column in (time, of, action, propensity))
    at, sets_of, shown, p_shown = columns
    found = what_follows(at, sets_of, shown, p_shown, np.concatenate(truths))
    if not found:
        return not_applicable(NAME, f"{n:,} displays are too few to see what follows on them")
    worst = min(found, key=lambda one: one.log_p)
    log_p = min(worst.log_p + math.log(len(found)), 0.0)
    alarms = log_p < math.log(level)
    verdict: Verdict = "warn" if alarms else "pass"
    less = "less" if worst.effect < 0 else "more"
    return CheckResult(
        name=NAME,
        verdict=verdict,
        number=f"{worst.effect:+.2%} of the next {worst.reach:,} displays",
        statistic=worst.statistic,
        p_value=math.exp(log_p),
        effect=abs(worst.effect),
        numbers={"displays": n, **{f"after_{one.reach}": one.effect for one in found}},
        what=f"An action is eligible {less} often after it was shown, by {abs(worst.effect):.2%} of the next "
        f"{worst.reach:,} displays: sets follow what was shown, or what it earned. A replay takes the log's sets for "
        "given, and a policy that shows other actions would have met other sets."
        if alarms
        else "No sign that what was eligible later depends on what was shown.",
        remedy="Take actions whose stock or budget ran out for eligible again, if they might have been shown; or leave "
        "them out with `actions`. Where *eligible actions* alarms, mend that first: both rest on the propensities."
        if alarms
        else "",
    )


def what_follows(
    time: Ints, of: Ints, action: Ints, propensity: Floats, truths: npt.NDArray[np.bool_]
) -> list[Follows]:
    """Return what follows on being shown, for each reach that the log is long enough for.

    Let f_i(k) be the share of the first L displays later than display i at which action k is eligible, and m_i its mean
    over the set E_i. The logger drew a_i with probabilities p_i over E_i: where the sets to come do not depend on a_i,

        D_i = (f_i(a_i) - m_i) / p_i(a_i)

    has mean sum over E_i of (f_i(k) - m_i) = 0 given all sets, contexts and earlier choices, and the sum of D_i is a
    martingale. This is Fisher's randomisation test with the logger's own draws: calendars, contexts that decide sets,
    users who come back, ties and nights are given, and cannot set it off. Rewards are not asked, for what sold tells of
    the context, which tells of later sets; what follows a sale follows the showing as well, as often as it sells.
    Freedman's bound, with squares in the place of conditional variances, holds for propensities that are small, too.

    Displays of one time are not later than each other: a file may have them in the order of what they showed.

    Parameters
    ----------
    time, of
        Time of each display, not decreasing, and number of its set, shape (n,).
    action, propensity
        Action shown at each display, and its propensity, shape (n,).
    truths
        Sets as truths, shape (m, K): actions that could be shown.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Freedman (1975), Annals of Probability 3: tail probabilities
    of martingales.
    """
    n, k = len(of), truths.shape[1]
    before = np.zeros((n + 1, k), np.int32)
    np.cumsum(truths[of], axis=0, out=before[1:])
    later = np.searchsorted(time, time, side="right")
    found = []
    for reach in _REACHES:
        if _TIMES * reach > n:
            break
        last = int(np.searchsorted(later, n - reach, side="right"))
        if last < _TIMES:
            break
        d, weight = np.empty(last), 1.0 / propensity[:last]
        step = max(_AT_ONCE // k, 1)
        for low in range(0, last, step):
            high = min(low + step, last)
            i = np.arange(low, high)
            share = (before[later[i] + reach] - before[later[i]]) / reach
            own = truths[of[i]]
            mean = (share * own).sum(axis=1) / np.maximum(own.sum(axis=1), 1)
            d[low:high] = (share[np.arange(len(i)), action[i]] - mean) * weight[i]
        total, squares, largest = float(d.sum()), float((d**2).sum()), float(np.abs(d).max())
        if squares == 0.0:
            found.append(Follows(reach, 0.0, 0.0, 0.0))
            continue
        bound = math.log(2.0) - total**2 / (2.0 * squares + 2.0 * largest * abs(total) / 3.0)
        found.append(Follows(reach, total / float(weight.sum()), total / math.sqrt(squares), min(bound, 0.0)))
    return found


ELIGIBILITY_AFTER_DISPLAYS = Check(
    name=NAME,
    finds="actions that can be shown less, or more, once they were shown or sold: stock, budgets, withdrawals",
    run=eligibility_after_displays,
    instead_of="drift of action shares",
)
