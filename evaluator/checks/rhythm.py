"""Whether the logger followed the hour of the day or the day of the week."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.checks.absences import pause_cause
from evaluator.checks.propensities import homogeneity, most_off, p_words, trend, worst_numbers
from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.significance import GroupTest, chi_square_tail, judge
from evaluator.checks.tables import Tables
from evaluator.checks.timeline import HOURS

Floats = npt.NDArray[np.float64]

NAME = "hours and weekdays"
# P-value above which shares do not change from period to period.
_NO_DRIFT = 1e-3


def hours_and_weekdays(t: Tables, level: float) -> CheckResult:
    """Test that actions have the same shares at all hours and weekdays (chi-square; waves of a day and half a day).

    Where shares also change from one day to another at the same hour, or from one week to another on the same weekday,
    hours and weekdays must differ by more than that: a logger that learned moved on while the clock did.
    """
    if t.logged.constant is None:
        return not_applicable(NAME, "the propensities may change with time: calibration tests them by hour and weekday")
    n = float(len(t.logged.survey.log))
    tests: list[GroupTest] = []
    for table, (what, rows) in zip(t.rhythms, t.families_by("rhythm"), strict=True):
        counts = t.counts[rows]
        if np.count_nonzero(counts.sum(axis=1)) < 2:
            continue  # the log's times are whole days
        of_clock = [homogeneity(counts, what=what, rows=rows)]
        if what == HOURS:
            angle = 2.0 * np.pi * np.arange(24) / 24.0
            waves = [(shape(k * angle), f"wave {i}") for k in (1, 2) for i, shape in enumerate((np.sin, np.cos), 2 * k)]
            of_clock += [GroupTest(what, name, *trend(counts, wave), n, tuple(rows)) for wave, name in waves]
        tests += [_beyond_drift(test, table.shown) for test in of_clock]
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable(NAME, "the log counts rounds or days, covers less than a day, or has too few displays")
    wrong = outcome.verdict != "pass"
    said, do = (pause_cause(t) if wrong else None) or (
        most_off(t, outcome.worst.rows).strip(),
        "Give the propensities of each time in a column or, where the logger looked at the clock only, let them be "
        "estimated from it: put the hour and the weekday among the context columns of the spec, and read with "
        "`propensity='estimate:context'`.",
    )
    means = (
        "The logger followed the clock, while its propensities are taken as constant: an action shown at hours at "
        f"which people buy looks better than it is. {said}"
    )
    return CheckResult(
        name=NAME, verdict=outcome.verdict,
        number=f"shares vary by {outcome.effect:.1%} by {outcome.worst.what}, p {p_words(outcome.p_value)}",
        statistic=outcome.worst.statistic, p_value=outcome.p_value, effect=outcome.effect,
        numbers=worst_numbers(outcome),
        what=means if wrong else "The logger kept its shares at all hours and on all weekdays, as far as it can tell.",
        remedy=do if wrong else "",
    )  # fmt: skip


def _beyond_drift(test: GroupTest, shown: Floats) -> GroupTest:
    """Return a test, its statistic taken down to what has its p-value where groups also change from period to period.

    Parameters
    ----------
    test
        Test of one grouping by the clock, all periods together.
    shown
        Number of displays of each period, group and action, shape (P, G, A).
    """
    from scipy.special import chdtri, fdtrc

    together = shown.sum(axis=0)
    cells = shown.reshape(-1, shown.shape[2])
    each, all_periods = (homogeneity(counts[counts.sum(axis=1) > 0], what="") for counts in (cells, together))
    left, df = each.statistic - all_periods.statistic, each.df - all_periods.df
    if df <= 0.0 or test.df <= 0.0 or chi_square_tail(left, df) > _NO_DRIFT:
        return test
    tail = float(fdtrc(test.df, df, test.statistic / test.df / (left / df)))
    return test._replace(statistic=min(float(chdtri(test.df, max(tail, 1e-300))), test.statistic))


RHYTHM = Check(
    name=NAME,
    finds="a logger that followed the clock although its propensities are constant",
    run=hours_and_weekdays,
    of_all=True,
)
