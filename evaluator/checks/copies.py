"""Copied rows: displays logged twice or nearly so, and conversions shared by several displays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.row_pairs import EqualRowPairs, hashes
from evaluator.checks.significance import normal_tail
from evaluator.checks.tables import Tables
from evaluator.log.schema import to_numpy
from evaluator.units import ROUND

Ints = npt.NDArray[np.int64]

# Shares of rows in pairs beyond chance: of displays that matter; of conversions that matter, and that bias a value.
DISPLAYS, CONVERSIONS, MANY_CONVERSIONS = 0.002, 0.01, 0.1


def duplicated_displays(t: Tables, level: float) -> CheckResult:
    """Count displays with the time, context and action of another, beyond those that chance makes."""
    name, copies = DUPLICATED_DISPLAYS.name, t.copies
    if copies.crowded:
        return not_applicable(name, "too many displays share a time and a context by chance")
    p = _one_sided(copies)
    wrong = p <= level and copies.excess >= DISPLAYS
    return CheckResult(
        name=name, verdict="warn" if wrong else "pass", number=_number(copies, p), statistic=copies.z, p_value=p,
        effect=copies.excess, numbers=_numbers(copies),
        what="The same display stands in the log more than once: it counts several times, so that intervals are "
        "narrower than they should be, and its conversions may be counted again too." if wrong
        else "No more displays are alike than chance makes.",
        remedy="Remove repeated rows at the source, by the id of the display." if wrong else "",
    )  # fmt: skip


def shared_conversions(t: Tables, level: float) -> CheckResult:
    """Count conversions of different displays with one time and value, beyond those that chance makes."""
    name = SHARED_CONVERSIONS.name
    table = t.logged.survey.log.conversions
    when = to_numpy(table["time"]).astype(np.int64, copy=False)
    value = to_numpy(table["value"]).astype(np.float64)
    display, delay = t.logged.survey.display, t.logged.follow_up.delay
    if not len(when):
        return not_applicable(name, "the log has no conversions")
    several = len(display) - len(np.unique(display))
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
            name=name, verdict="fail", numbers=numbers,
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
        name=name, verdict="pass" if not wrong else "fail" if excess >= MANY_CONVERSIONS else "warn",
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


def _split(when: Ints, value: npt.NDArray[np.float64]) -> bool:
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


DUPLICATED_DISPLAYS = Check(
    name="duplicated displays",
    finds="displays logged twice, beyond what chance makes",
    run=duplicated_displays,
)
SHARED_CONVERSIONS = Check(
    name="shared conversions",
    finds="one conversion written on several displays",
    run=shared_conversions,
)
