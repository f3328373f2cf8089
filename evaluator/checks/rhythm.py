"""Whether the logger followed the hour of the day or the day of the week."""

from __future__ import annotations

import numpy as np

from evaluator.checks.finding import Finding, not_applicable
from evaluator.checks.propensities import homogeneity, most_off, p_words, trend, worst_numbers
from evaluator.checks.record import Check
from evaluator.checks.significance import GroupTest, judge
from evaluator.checks.tables import Tables
from evaluator.checks.timeline import HOURS

NAME = "hours and weekdays"


def hours_and_weekdays(t: Tables, level: float) -> Finding:
    """Test that actions have the same shares at all hours and weekdays (chi-square; waves of a day and half a day)."""
    if t.logged.constant is None:
        return not_applicable(NAME, "the propensities may change with time: calibration tests them by hour and weekday")
    n = float(len(t.logged.survey.log))
    tests: list[GroupTest] = []
    for what, rows in t.families_by("rhythm"):
        counts = t.counts[rows]
        if np.count_nonzero(counts.sum(axis=1)) < 2:
            continue  # the log's times are whole days
        tests.append(homogeneity(counts, what=what, rows=rows))
        if what == HOURS:
            angle = 2.0 * np.pi * np.arange(24) / 24.0
            waves = [(shape(k * angle), f"wave {i}") for k in (1, 2) for i, shape in enumerate((np.sin, np.cos), 2 * k)]
            tests += [GroupTest(what, name, *trend(counts, wave), n, tuple(rows)) for wave, name in waves]
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable(NAME, "the log counts rounds or days, covers less than a day, or has too few displays")
    wrong = outcome.verdict != "pass"
    return Finding(
        name=NAME, verdict=outcome.verdict,
        number=f"shares vary by {outcome.effect:.1%} by {outcome.worst.what}, p {p_words(outcome.p_value)}",
        statistic=outcome.worst.statistic, p_value=outcome.p_value, effect=outcome.effect,
        numbers=worst_numbers(outcome),
        means="The logger followed the clock, while its propensities are taken as constant: an action shown at hours "
        "at which people buy looks better than it is." + most_off(t, outcome.worst.rows) if wrong
        else "The logger kept its shares at all hours and on all weekdays, as far as it can tell.",
        do="Give the propensities of each time in a column or, where the logger looked at the clock only, let them be "
        "estimated from it: put the hour and the weekday among the context columns of the spec, and read with "
        "`propensity='estimate:context'`." if wrong else "",
    )  # fmt: skip


RHYTHM = Check(
    name=NAME,
    finds="a logger that followed the clock although its propensities are constant",
    run=hours_and_weekdays,
    of_all=True,
)
