"""Whether eligible actions depend on the past: on rewards, or on what was displayed before.

A replay meets the sets of the log, whatever its policy chooses. That is what would have happened live where sets are
independent of outcomes: a calendar, a rule on contexts, chance. Where an action is withdrawn for selling badly, or runs
out once it has sold, the sets come of the logging policy's choices, and another policy would have met others.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.result import TRIVIAL, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.tables import Tables
from evaluator.log import Log
from evaluator.log.contract import has_eligibility
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE

# Parts of the log, of as many displays each: spans after which somebody looks, or in which stock runs out.
PARTS = (40, 400)
# Displays that a part has at least, on average.
_FEWEST = 20
# Sweeps of the projections that take level, trend and part out of a number; they converge by a factor each.
_SWEEPS = 60
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# How many displays are looked at after each; a log has so many times as many, at least.
_REACHES, _TIMES = (10, 100, 1_000, 10_000), 20
# Displays times actions that are looked at, the first of the log, and at a time.
_CELLS, _AT_ONCE = 20_000_000, 2_000_000


class Cells(NamedTuple):
    """What happened to each action in each part of the log.

    Parameters
    ----------
    shown
        Displays that showed the action and were followed to their end, shape (parts, K).
    rewarded
        Those of them with a reward, shape (parts, K).
    share
        Share of the displays at which it is eligible, shape (parts, K).
    """

    shown: Floats
    rewarded: Floats
    share: Floats


class Lead(NamedTuple):
    """How rates of reward go with the change of eligibility that follows.

    Parameters
    ----------
    z
        Score over its standard error; 0 where nothing changes.
    slope
        Rate of reward less what action, trend, part and present eligibility make of it, per unit of the change that
        follows.
    """

    z: float = 0.0
    slope: float = 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value."""
        return math.erfc(abs(self.z) / math.sqrt(2.0))


def read_cells(log: Log, rewards: npt.NDArray[np.int64], judged: int, parts: int) -> Cells:
    """Return the cells of a log with sets, in one pass over its actions and sets.

    `rewards` are the displays with a reward in any order, shape (c,); the first `judged` displays were followed to
    their end; `parts` is the number of parts, each with as many displays.
    """
    k = log.n_actions
    rewarded = np.zeros(len(log), np.bool_)
    rewarded[rewards] = True
    counts, eligible, sizes = np.zeros((2, parts * k)), np.zeros((parts, k)), np.zeros(parts)
    for first, batch in log.batches(["action", ELIGIBLE], coded=True):
        sets, action = batch[ELIGIBLE], batch["action"].astype(np.int64)
        assert isinstance(sets, SetCodes)
        number = np.arange(first, first + len(action))
        part, mature = number * parts // len(log), number < judged
        cell = part * k + action
        for row, own in enumerate((mature, mature & rewarded[number])):
            counts[row] += np.bincount(cell[own], minlength=parts * k)
        begins, listed = members(sets.distinct)
        for p in np.unique(part):
            of_set = np.bincount(np.asarray(sets)[part == p], minlength=len(sets.distinct))
            eligible[p] += np.bincount(listed, np.repeat(of_set, np.diff(begins)), minlength=k)
            sizes[p] += of_set.sum()
    shown, earned = counts.reshape(2, parts, k)
    return Cells(shown, earned, eligible / np.maximum(sizes, 1.0)[:, None])


def lead_of(cells: Cells) -> Lead:
    """Test whether rates of reward go with the change of eligibility that follows.

    Where sets are strictly exogenous, the change c from a part to the next has no part in the rate of reward y of an
    action's n displays beside fixed effects of the action, of its trend and of the part, and beside what is eligible
    now (Wooldridge 2010, section 10.7.1: a lead of the regressor in the within regression). So with c less all of
    these, the score sum n c y is 0 on average. Its variance is the largest of three: of independent displays; of
    independent cells, whose displays may hang together; of actions whose near cells may (Newey, West 1987).
    """
    n, y = cells.shown, cells.rewarded
    c, now = (_within(x, n) for x in (np.diff(cells.share, axis=0, append=cells.share[-1:]), cells.share))
    c = c - now * _over((n * now * c).sum(), (n * now**2).sum())
    rate = _over(y, n)
    seen = n > 0
    fitted = seen.any(axis=0).sum() * 2 + seen.any(axis=1).sum() + 1
    # What is fitted leaves less than there was (MacKinnon, White 1985: HC1).
    off = n * c * _within(rate, n) * math.sqrt(seen.sum() / max(seen.sum() - fitted, 1))
    spread = float((n * c**2).sum())
    if spread <= 1e-12 * float(n.sum()):
        return Lead()
    score = float((c * y).sum())
    alone = n * c**2 * rate * (1.0 - rate) * _over(n, np.maximum(n - 1.0, 1.0))
    lags = len(n) // 8  # an eighth of the log
    near = sum((1.0 - lag / (lags + 1)) * float((off[lag:] * off[:-lag]).sum()) for lag in range(1, lags + 1))
    variance = max(float(alone.sum()), float((off**2).sum()), float((off**2).sum()) + 2.0 * near)
    return Lead(score / math.sqrt(variance), score / spread) if variance > 0.0 else Lead()


def _within(x: Floats, n: Floats) -> Floats:
    """Return numbers of shape (parts, K) less the level and trend of each action and the level of each part.

    `n` weighs them; where it is 0, they are 0. Alternating projections (von Neumann, Halperin).
    """
    x, part = np.where(n > 0, x, 0.0), np.arange(len(n))[:, None]
    at = part - _over((n * part).sum(axis=0), n.sum(axis=0))
    for _ in range(_SWEEPS):
        x = x - _over((n * x).sum(axis=1), n.sum(axis=1))[:, None]
        x = x - _over((n * x).sum(axis=0), n.sum(axis=0))
        x = x - at * _over((n * at * x).sum(axis=0), (n * at**2).sum(axis=0))
    return np.where(n > 0, x, 0.0)


def _over(of: Floats, by: Floats) -> Floats:
    return np.divide(of, by, out=np.zeros(np.shape(of)), where=np.asarray(by) > 0)


def eligibility_after_rewards(t: Tables, level: float) -> CheckResult:
    """Compare how actions did in each part of the log with how their eligibility changed to the next one."""
    survey = t.logged.survey
    log = survey.log
    if not has_eligibility(log):
        return CheckResult(
            verdict="not applicable",
            number="",
            what="every action is always eligible",
        )
    parts = [count for count in PARTS if len(log) >= _FEWEST * count]
    cells = [read_cells(log, survey.display, t.logged.follow_up.mature, count) for count in parts]
    leads = [lead_of(each) for each in cells]
    if not any(lead.z for lead in leads):
        why = "what is eligible does not change with time, no display has a reward, or there are too few displays"
        return CheckResult(verdict="not applicable", number="", what=why)
    first = min(range(len(leads)), key=lambda i: leads[i].p_value)
    lead, mean = leads[first], float(cells[first].rewarded.sum() / cells[first].shown.sum())
    p_value, effect = min(1.0, len(leads) * lead.p_value), abs(lead.slope) / mean
    finding = CheckResult(
        verdict="pass",
        number=f"{-lead.slope / mean:+.0%} of the mean rate before an action leaves",
        statistic=lead.z,
        p_value=p_value,
        effect=effect,
        numbers={"slope": lead.slope, "mean_rate": mean, "parts": parts[first]},
        what="Nothing tells that what is eligible follows from how it did before.",
    )
    if p_value > level or effect < TRIVIAL:
        return finding
    than, because = (
        ("lower", "they are withdrawn for doing badly") if lead.slope > 0
        else ("higher", "they run out once they have sold")
    )  # fmt: skip
    return replace(
        finding,
        verdict="warn",
        what=f"Before actions leave the sets, their rate of reward is {than} than else, as if {because}: another "
        "policy would have met other sets than a replay of this log shows it.",
        remedy="Ask who decides what is eligible. If outcomes do, evaluate on spans between decisions, or among "
        "actions that they leave alone (`actions`).",
    )


ELIGIBILITY_AFTER_REWARDS = Check(
    name="eligibility after rewards",
    finds="actions that are withdrawn for doing badly, or run out once they have sold",
    run=eligibility_after_rewards,
    instead_of="replay of the logger",
)


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
        return not_applicable("every action is always eligible")
    if p.rule is None:
        return not_applicable("without propensities nothing says what might have been shown")
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
        return not_applicable(f"{n:,} displays are too few to see what follows on them")
    worst = min(found, key=lambda one: one.log_p)
    log_p = min(worst.log_p + math.log(len(found)), 0.0)
    alarms = log_p < math.log(level)
    verdict: Verdict = "warn" if alarms else "pass"
    less = "less" if worst.effect < 0 else "more"
    return CheckResult(
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
    martingale. This is Fisher's randomisation test with the logger's own draws (Fisher 1935, The Design of Experiments,
    section 21): calendars, contexts that decide sets, users who come back, ties and nights are given, and cannot set it
    off. Rewards are not used, for what sold tells of the context, which tells of later sets; what follows a sale
    follows the showing as well, as often as it sells. Freedman's bound (1975, Annals of Probability 3: tail
    probabilities of martingales), with squares in the place of conditional variances, holds for small propensities too.

    Displays of one time are not later than each other: a file may have them in the order of what they showed.

    `time` does not decrease; `of` is the number of each display's set, and `action` and `propensity` are those of the
    action shown, all of shape (n,). The rows of `truths` are the sets, shape (m, K): true for actions that could be
    shown.
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
    name="eligibility after displays",
    finds="actions that can be shown less, or more, once they were shown or sold: stock, budgets, withdrawals",
    run=eligibility_after_displays,
    instead_of="drift of action shares",
)
