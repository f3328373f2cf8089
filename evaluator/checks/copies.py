"""Whether rows are copies: displays logged twice or again within seconds, conversions on several displays.

More pairs of rows that are the same but for their numbers than chance makes are copies or repeats. The pass over a log
counts such pairs: `EqualRowPairs`, `NearPairs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evaluator.checks.contexts import Hashes, hashes
from evaluator.checks.result import POWER_Z, Check, CheckResult, not_applicable
from evaluator.checks.significance import (
    Flags,
    Floats,
    Ints,
    homogeneity,
    normal_tail,
    p_words,
    poisson_tail,
    upper_normal_quantile,
)
from evaluator.log.schema import to_numpy
from evaluator.streams import STEP, mixed
from evaluator.units import ROUND

if TYPE_CHECKING:
    from evaluator.checks.tables import Tables

_LAGS = (1, 2)
# Chance pairs a row beyond which times are too coarse to tell copies.
_CROWDED_TIMES = 1.0
# Displays of one time among which more than `_CROWDED_TIMES` pairs a row are equal were sent together: they show no
# copies.
_SENT_TOGETHER = 20
# Standard errors by which more rows share a time than neighbouring times lead to expect, where rows come together.
_TOGETHER = 6.0
# Two displays are near within so many seconds, or rounds; a copy is looked for among so many that share its vector.
_NEAR_S, _NEAR_ROUNDS, _NEIGHBOURS = 10.0, 10, 4
# Shares of rows in pairs beyond chance: of displays that matter; of conversions that matter, and that bias a value.
DISPLAYS, CONVERSIONS, MANY_CONVERSIONS = 0.002, 0.01, 0.1
# Share of the displays that are copies from which it matters.
COPIES = 0.002
# Near displays of one vector, a display, among which copies are lost.
CROWDED = 0.75 * _NEIGHBOURS
# P-value above which shares do not change from period to period.
_NO_DRIFT = 1e-3


@dataclass
class EqualRowPairs:
    """Counts of equal rows at one time, and of rows equal but for a time one or two steps later.

    Arrivals that do not know of each other make as many pairs within a time as half of those between neighbouring
    times, so what exceeds that is not chance. Where rows may come `in_batches`, as mails of one second do, neighbouring
    times are empty: as many of the pairs of one time are equal by chance as of any other pairs. Where a clock spreads
    rows evenly over time, fewer share a time than neighbouring times let expect, and fewer are equal in proportion.
    """

    # Whether rows of one time may belong together although they are not the same.
    in_batches: bool = False
    rows: int = 0  # Number of rows counted so far
    same: float = 0.0  # Number of pairs of equal rows at one time
    apart: float = 0.0  # Number of pairs of equal rows one step apart, the mean over `_LAGS`
    rows_again: int = 0  # Number of rows that repeat an earlier one at the same time
    # Number of rows that were sent together, so many that no copies show; no other number counts them.
    crowd: int = 0
    # Number of pairs of rows, equal or not, as `same` and `apart`.
    together: float = 0.0
    together_apart: float = 0.0
    # Number of equal pairs among pairs of rows far apart, and of these.
    alike: float = 0.0
    any_pairs: float = 0.0
    # Ticks of which all times are whole multiples, as far as seen; 0 before the first rows.
    step: int = 0

    def add(self, time: Ints, key: Hashes) -> None:
        """Count the pairs within some rows: time in ticks, and hash of the rest of each row, shape (n,)."""
        self.rows += len(time)
        if len(time) < 2:
            return
        if self.step == 0:
            self.step = max(int(np.gcd.reduce(np.diff(np.sort(time)))), 1)
        ticks = (time // self.step).astype(np.uint64)
        times, of, size = np.unique(ticks, return_inverse=True, return_counts=True)
        codes, at, count = np.unique(mixed(key) + ticks * STEP, return_index=True, return_counts=True)
        pairs = np.bincount(of[at], count * (count - 1) / 2, minlength=len(times))
        crowd = (size >= _SENT_TOGETHER) & (pairs > _CROWDED_TIMES * size)
        if crowd.any():
            self.crowd += int(size[crowd].sum())
            times, size, key = times[~crowd], size[~crowd], key[~crowd[of]]
            codes, count = codes[~crowd[of[at]]], count[~crowd[of[at]]]
            if not len(codes):
                return
        half = len(key) // 2
        self.alike += float(np.count_nonzero(key[:half] == key[half : 2 * half]))
        self.any_pairs += half
        self.together += float((size * (size - 1) // 2).sum())
        self.rows_again += int((count - 1).sum())
        self.same += float((count * (count - 1) // 2).sum())
        for lag in _LAGS:
            near = np.minimum(np.searchsorted(times, times + np.uint64(lag)), len(times) - 1)
            self.together_apart += float((size * size[near])[times[near] == times + np.uint64(lag)].sum()) / len(_LAGS)
            later = codes + np.array([lag], np.uint64) * STEP
            at = np.minimum(np.searchsorted(codes, later), len(codes) - 1)
            self.apart += float((count * count[at])[codes[at] == later].sum()) / len(_LAGS)

    @property
    def expected(self) -> float:
        """Pairs at one time that chance makes."""
        usual = self.together_apart / 2.0
        # A clock that spreads its rows evenly, as one of rounds or of minutes, brings fewer together than chance does.
        if self.together < usual - _TOGETHER * math.sqrt(1.5 * usual + 1.0):
            return self.apart / 2.0 * self.together / usual
        if not self.in_batches or self.together <= usual + _TOGETHER * math.sqrt(1.5 * usual + 1.0):
            return self.apart / 2.0
        return max(self.apart / 2.0, self.together * self.alike / max(self.any_pairs, 1.0))

    @property
    def excess(self) -> float:
        """Pairs beyond those, in shares of the rows."""
        return (self.same - self.expected) / max(self.rows, 1)

    @property
    def crowded(self) -> bool:
        """Whether too many rows share a time by chance."""
        return self.expected > _CROWDED_TIMES * self.rows or self.crowd > self.rows / 2

    @property
    def z(self) -> float:
        """Excess in standard errors.

        With m pairs expected, the difference has variance 2 m times 3 / 4 when counts are Poisson: terms of first order
        cancel between a time and its neighbours.
        """
        return (self.same - self.expected) / math.sqrt(1.5 * self.expected + 1.0)


class NearPairs:
    """Pairs of displays with one vector that follow each other closely, and those of them with one action.

    Given what was shown before, the next display with the same vector has the same action with the propensity of that
    action, so the differences of `same` and `expected` add up to a martingale, whatever vectors there are and however
    often visitors come again.
    """

    def __init__(self, tick_seconds: float | None) -> None:
        # Ticks within which displays are near; 0 where ticks are too long to tell.
        self.near = _NEAR_ROUNDS if tick_seconds is None else int(_NEAR_S / tick_seconds)
        # Number of pairs of displays that are near, and of neighbours that are not; of those pairs with one action; how
        # many of these their propensities make expected; variance of the difference of these two: shape (2,) each.
        self.pairs, self.same, self.expected, self.variance = np.zeros((4, 2))

    def add(self, time: Ints, key: Hashes, action: Ints, p: Floats) -> None:
        """Count the pairs within some rows, in order of time; pairs of one time are left to `EqualRowPairs`.

        Time in ticks, hash of the vector, action, and probability with which it was shown, of each display: shape (n,).
        """
        order = np.argsort(key, kind="stable")
        time, key, action = time[order], key[order], action[order]
        p = np.minimum(p[order], 1.0)
        n = len(time)
        earlier: list[tuple[Flags, Ints, Floats]] = []
        for lag in range(1, min(_NEIGHBOURS, n - 1) + 1):
            gap = time[lag:] - time[:-lag]
            paired = np.zeros(n, bool)
            paired[lag:] = (key[lag:] == key[:-lag]) & (gap > 0)
            close = paired.copy()
            close[lag:] &= gap <= self.near
            of, chance = np.roll(action, lag), np.roll(p, lag)
            # Far ones are a standard of comparison: of these, next neighbours are enough.
            for row, used in enumerate((close, paired & ~close)):
                if row == 1 and lag > 1:
                    continue
                self.pairs[row] += np.count_nonzero(used)
                self.same[row] += np.count_nonzero(used & (action == of))
                self.expected[row] += chance[used].sum()
                self.variance[row] += (chance * (1.0 - chance))[used].sum()
            for other, its_action, its_chance in earlier:
                both = close & other
                alike = both & (its_action == of)
                self.variance[0] += 2.0 * (chance[alike].sum() - (chance * its_chance)[both].sum())
            earlier.append((close, of, chance))

    @property
    def z(self) -> Floats:
        """Same minus expected, in standard errors, shape (2,)."""
        return (self.same - self.expected) / np.sqrt(np.maximum(self.variance, 1.0))


def duplicated_displays(t: Tables, level: float) -> CheckResult:
    """Count displays with the time, context and action of another, beyond those that chance makes."""
    copies = t.copies
    if copies.crowded:
        return not_applicable("too many displays share a time and a context by chance")
    p = _one_sided(copies)
    wrong = p <= level and copies.excess >= DISPLAYS
    return CheckResult(
        verdict="warn" if wrong else "pass", number=_number(copies, p), statistic=copies.z, p_value=p,
        effect=copies.excess, numbers=_numbers(copies),
        what="The same display stands in the log more than once: it counts several times, so that intervals are "
        "narrower than they should be, and its conversions may be counted again too." if wrong
        else "No more displays are alike than chance makes.",
        remedy="Remove repeated rows at the source, by the id of the display." if wrong else "",
    )  # fmt: skip


def shared_conversions(t: Tables, level: float) -> CheckResult:
    """Count conversions of different displays with one time and value, beyond those that chance makes."""
    table = t.logged.survey.log.conversions
    when = to_numpy(table["time"]).astype(np.int64, copy=False)
    value = to_numpy(table["value"]).astype(np.float64)
    display, delay = t.logged.survey.display, t.logged.follow_up.delay
    if not len(when):
        return not_applicable("the log has no conversions")
    several = int(np.count_nonzero(np.diff(display) == 0))
    key = hashes(value[:, None])
    again = np.concatenate(([False], (np.diff(display) == 0) & (np.diff(when) == 0) & (np.diff(key) == 0)))
    # A clock of rounds ran through long rounds and short ones: conversions come together in the long ones.
    copies = EqualRowPairs(in_batches=t.logged.survey.log.meta.tick == ROUND)
    copies.add(when[~again], key[~again])
    numbers = {**_numbers(copies), "further_conversions_of_a_display": several,
               "repeated_on_one_display": int(again.sum()),
               "before_display": int((delay < 0).sum()), "at_display": int((delay == 0).sum())}  # fmt: skip
    if (delay < 0).any():
        return CheckResult(
            verdict="fail", numbers=numbers,
            number=f"{(delay < 0).sum():,} conversions before their display",
            what="A conversion that precedes its display was not caused by it.",
            remedy="Check the time columns, their units, and how conversions were joined.",
        )  # fmt: skip
    p = 1.0 if copies.crowded else _one_sided(copies)
    repeated = float(again.mean())
    excess = max(copies.excess if p <= level else 0.0, repeated)
    split = excess >= CONVERSIONS and _split(when, value)
    wrong = excess >= CONVERSIONS and not split
    counts = t.logged.survey.log.meta.counts
    removed = {name: counts[name] for name in ("conversions_shared", "conversion_rows_deduplicated") if name in counts}
    numbers |= removed
    said = "" if not several else f" {several:,} are further conversions of a display that had one."
    return CheckResult(
        verdict="pass" if not wrong else "fail" if excess >= MANY_CONVERSIONS else "warn",
        number=_number(copies, p), statistic=copies.z, p_value=p, effect=excess, numbers=numbers,
        what=("One conversion is written on several displays, so the log counts it several times: rewards are too "
               "high, most for actions shown often to one user." if wrong else
               "Conversions are shared out, each display has its part of the value: rewards are right, but such "
               "displays go together, so intervals are a little too narrow." if split else
               "Too many conversions share a time by chance to tell copies." if copies.crowded else
               "No more conversions are alike than chance makes.") + said,
        remedy="Give the spec the conversion's id and choose who gets it: `deduplicate='last_click'`, first_click or "
        "share."
        if wrong else "",
    )  # fmt: skip


def _split(when: Ints, value: Floats) -> bool:
    """Return whether equal conversions only share one value: together they are worth no more than the largest one."""
    pairs = np.stack((when.astype(np.float64), value), axis=1)
    found, count = np.unique(pairs, axis=0, return_counts=True)
    several = count > 1
    within = found[several, 1] * count[several] <= value.max() * (1.0 + 1e-9)
    return bool(within.mean() > 0.9)


def _one_sided(copies: EqualRowPairs) -> float:
    return normal_tail(copies.z) / 2.0 if copies.z > 0 else 1.0


def _number(copies: EqualRowPairs, p: float) -> str:
    return f"{copies.same:,.0f} equal pairs, {copies.expected:,.0f} by chance, p {p_words(p)}"


def _numbers(copies: EqualRowPairs) -> dict[str, float]:
    return {"rows": copies.rows, "equal_pairs": copies.same, "expected_pairs": copies.expected,
            "excess_share": copies.excess, "repeating_rows": copies.rows_again}  # fmt: skip


def near_copies(t: Tables, level: float) -> CheckResult:
    """Test that a display soon after one with the same vector has the same action no more often than its propensity.

    One-sided; the larger of a normal and of a Poisson tail, which holds for few pairs too (Hoeffding 1956). What
    neighbours further apart exceed their propensities by is taken off, and what displays of one period do: wrong
    propensities, a visitor who is kept on one action, or a logger that learned, are no copies.
    """
    found, survey = t.repeats, t.logged.survey
    seconds = survey.log.meta.tick_seconds
    if survey.stamp > found.near / 2 or found.near < 2:
        return not_applicable("times are too coarse to tell displays some seconds apart")
    if t.logged.propensities.tilted:
        return not_applicable("displays are no even sample of the traffic, so the chance of an action is not known")
    rows = len(survey.log)
    if found.pairs[0] > CROWDED * rows:
        return not_applicable("too many displays share a vector within seconds to tell copies")
    far = max(float(found.same[1] / found.expected[1]), 1.0) if found.z[1] > 2.0 else 1.0
    far = max(far, _of_one_period(t))
    expected = found.expected[0] * far
    # Of displays that copy nothing, this share would have another action.
    anew = max(1.0 - float((t.logged.shares**2).sum()), 1e-9)
    excess = (found.same[0] - expected) / (anew * rows)
    z = float((found.same[0] - expected) / math.sqrt(max(found.variance[0], 1.0) * far**2))
    p = max(normal_tail(z) / 2.0, poisson_tail(float(found.same[0]), expected)) if z > 0.0 else 1.0
    wrong = p <= level and excess >= COPIES
    error = math.sqrt(max(found.variance[0], 1.0)) * far / (anew * rows)
    share = max((upper_normal_quantile(level) + POWER_Z) * error, COPIES + POWER_Z * error)
    share = math.ceil(1e4 * share / max(1.0 - share, 1e-9)) / 1e4  # the copies are displays themselves
    within = f"{found.near} rounds" if seconds is None else f"{_NEAR_S:g} s"
    return CheckResult(
        verdict="warn" if wrong else "pass", statistic=z, p_value=p, effect=excess,
        shows=f"{share:.2%} of the displays again within {within}" if share < 1.0 else "",
        number=f"{found.same[0]:,.0f} repeats within {within}, {expected:,.0f} by chance, p {p_words(p)}",
        numbers={"near_pairs": found.pairs[0], "same_action": found.same[0], "expected": expected,
                 "far_pairs": found.pairs[1], "excess_share": excess},
        what=(f"Displays come again within {within} with the same vector and the same action, {excess:.1%} of all "
               "beyond those that chance makes: copies with times of their own, or a logger that does not draw anew. "
               "One draw counts several times, so intervals are narrower than they should be, and outcomes of such "
               "displays go together." if wrong else
               "A display soon after another of its vector has its action no more often than drawn anew."),
        remedy="Remove repeated rows at the source, by the id of the display; if the logger keeps a choice for a "
        "while, log one display a choice." if wrong else "",
    )  # fmt: skip


def _of_one_period(t: Tables) -> float:
    """Return how much more often displays of one period have one action than those of the log, where shares drift.

    A logger that learned shows the same actions for a time, while its propensities are taken as constant.
    """
    if t.logged.constant is None:
        return 1.0
    counts = t.counts[1 : 1 + t.logged.timeline.periods]
    counts = counts[counts.sum(axis=1) > 1]
    if homogeneity(counts, what="").p_value > _NO_DRIFT:
        return 1.0
    n = counts.sum(axis=1)
    alike = ((counts * (counts - 1.0)).sum(axis=1) / (n - 1.0)).sum() / n.sum()
    return max(float(alike / (t.logged.shares**2).sum()), 1.0)


DUPLICATED_DISPLAYS = Check(
    name="duplicated displays", finds="displays logged twice, beyond what chance makes", run=duplicated_displays
)
SHARED_CONVERSIONS = Check(
    name="shared conversions", finds="one conversion written on several displays", run=shared_conversions
)
NEAR_COPIES = Check(
    name="near copies", finds="displays logged again some seconds later, beyond what chance makes", run=near_copies
)
