"""Eligible actions: whether they were shown as their propensities say, and whether the sets depend on the past.

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

from evaluator.checks.result import SERIOUS, TRIVIAL, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.tables import Tables
from evaluator.estimates.confidence import log_tail
from evaluator.log import Log
from evaluator.log.contract import has_eligibility
from evaluator.log.eligible import SetCodes, bits_of, members, sizes
from evaluator.log.schema import ELIGIBLE
from evaluator.replays.rounds.stream import read_sets

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Actions of fewer displays say little of how their 1/p vary, and may be unseen by chance.
_FEWEST_SHOWN = 25
# An action that is eligible at so few displays is hardly in anybody's way, and hardly known.
_HARDLY = 1e-3
_NAMED = 5
# Displays whose propensity is so close to the smallest bind c.
_BINDS = 1.01
# Sets of so many actions and more are compared together.
_LARGEST = 64
# Parts of the log, of as many displays each: spans after which somebody looks, or in which stock runs out.
PARTS = (40, 400)
# Displays that a part has at least, on average.
_FEWEST = 20
# Sweeps of the projections that take level, trend and part out of a number; they converge by a factor each.
_SWEEPS = 60
# How many displays are looked at after each; a log has so many times as many, at least.
_REACHES, _TIMES = (10, 100, 1_000, 10_000), 20
# Displays times actions that are looked at, the first of the log, and at a time.
_CELLS, _AT_ONCE = 20_000_000, 2_000_000


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
        return not_applicable("every action is always eligible")
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
        verdict=verdict, number=f"{worst.effect:+.2%} of the next {worst.reach:,} displays", statistic=worst.statistic,
        p_value=math.exp(log_p), effect=abs(worst.effect),
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
    )  # fmt: skip


class Follows(NamedTuple):
    """What follows on being shown, over so many displays."""

    reach: int  # Number L of displays after each that are looked at
    # Change of the share of these at which an action is eligible where it is shown.
    effect: float
    # Sum of D_i over the root of the sum of their squares: about standard normal where sets follow nothing.
    statistic: float
    log_p: float  # Bound of the log probability of a sum so far from 0, two-sided


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


def eligibility_after_rewards(t: Tables, level: float) -> CheckResult:
    """Compare how actions did in each part of the log with how their eligibility changed to the next one."""
    survey = t.logged.survey
    log = survey.log
    if not has_eligibility(log):
        return not_applicable("every action is always eligible")
    parts = [count for count in PARTS if len(log) >= _FEWEST * count]
    cells = [read_cells(log, survey.display, t.logged.follow_up.mature, count) for count in parts]
    leads = [lead_of(each) for each in cells]
    if not any(lead.z for lead in leads):
        return not_applicable(
            "what is eligible does not change with time, no display has a reward, or there are too few displays"
        )
    first = min(range(len(leads)), key=lambda i: leads[i].p_value)
    lead, mean = leads[first], float(cells[first].rewarded.sum() / cells[first].shown.sum())
    p_value, effect = min(1.0, len(leads) * lead.p_value), abs(lead.slope) / mean
    finding = CheckResult(
        verdict="pass", number=f"{-lead.slope / mean:+.0%} of the mean rate before an action leaves", statistic=lead.z,
        p_value=p_value, effect=effect, numbers={"slope": lead.slope, "mean_rate": mean, "parts": parts[first]},
        what="Nothing tells that what is eligible follows from how it did before.",
    )  # fmt: skip
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


class Cells(NamedTuple):
    """What happened to each action in each part of the log."""

    # Displays that showed the action and were followed to their end, shape (parts, K).
    shown: Floats
    rewarded: Floats  # Those of them with a reward, shape (parts, K)
    share: Floats  # Share of the displays at which it is eligible, shape (parts, K)


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


class Lead(NamedTuple):
    """How rates of reward go with the change of eligibility that follows."""

    z: float = 0.0  # Score over its standard error; 0 where nothing changes
    # Rate of reward less what action, trend, part and present eligibility make of it, per unit of the change that
    # follows.
    slope: float = 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value."""
        return math.erfc(abs(self.z) / math.sqrt(2.0))


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


SHOWN_OF_SETS = Check(
    name="eligible actions",
    finds="propensities that do not fit the eligible actions; actions eligible but never or hardly shown; what binds c",
    run=shown_of_sets,
    instead_of="uniformity",
)
ELIGIBILITY_AFTER_DISPLAYS = Check(
    name="eligibility after displays",
    finds="actions that can be shown less, or more, once they were shown or sold: stock, budgets, withdrawals",
    run=eligibility_after_displays,
    instead_of="drift of action shares",
)
ELIGIBILITY_AFTER_REWARDS = Check(
    name="eligibility after rewards",
    finds="actions that are withdrawn for doing badly, or run out once they have sold",
    run=eligibility_after_rewards,
    instead_of="replay of the logger",
)
