"""Whether shares of actions, conversion rates and delays move with the period, the hour or the weekday."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evaluator.checks.absences import pause_cause
from evaluator.checks.propensities import most_off
from evaluator.checks.result import MOST_SHOWN, POWER, POWER_Z, Check, CheckResult, not_applicable
from evaluator.checks.significance import (
    FEWEST,
    GroupTest,
    chi_square_tail,
    homogeneity,
    judge,
    p_words,
    trend,
    worst_numbers,
)
from evaluator.checks.tables import Tables
from evaluator.checks.timeline import HOURS
from evaluator.delays.study.changes import DelayDrift, delay_drift
from evaluator.engine.kernels.solving import squared_length

Floats = npt.NDArray[np.float64]
# Changes of rates (root mean square, relative) and of the delays' place (0.5 without drift) that matter.
RATE_CHANGE, DELAY_CHANGE = 0.05, 0.02
FEWEST_CONVERSIONS, DELAY_ROWS = 50, 20_000
# Factors of the delays above this are not worth saying.
MOST_DELAYS_SHOWN = 5.0
_FEWEST_DAYS = 3
_SHORT = "fewer than three days: hours of the day cannot be told from a drift"
# P-value above which shares do not change from period to period.
_NO_DRIFT = 1e-3


def share_drift(t: Tables, level: float) -> CheckResult:
    """Test that the actions' shares are the same in all periods (chi-square)."""
    if t.logged.constant is None:
        return not_applicable("the propensities may change with time: calibration tests them by period")
    period = t.logged.timeline.period
    counts = t.counts[1 : 1 + t.logged.timeline.periods]
    counts = counts[counts.sum(axis=1) > 0]
    outcome = judge([homogeneity(counts, what=f"by {period}")], level)
    if outcome is None:
        return not_applicable("too few displays a period")
    wrong = outcome.verdict != "pass"
    means, do = (
        "The logger changed its mind along the log, while its propensities are taken as constant: actions shown more "
        "in good times look better than they are.",
        "Give the propensities of each time in a column, or replay a part of the log over which they stood still "
        "(`limit`).",
    )
    return CheckResult(
        verdict=outcome.verdict,
        number=f"shares vary by {outcome.effect:.1%} by {period}, p {p_words(outcome.p_value)}",
        statistic=outcome.worst.statistic, p_value=outcome.p_value, effect=outcome.effect,
        numbers=worst_numbers(outcome),
        what=means if wrong else "The logger kept its shares.", remedy=do if wrong else "",
    )  # fmt: skip


def rate_drift(t: Tables, level: float) -> CheckResult:
    """Test that the actions' conversion rates are the same in all periods, whatever their shares.

    Displays followed long enough only, and only conversions within that follow-up: otherwise the log's end looks like
    drift. The statistic adds up observed minus expected converted displays over the actions (Cochran, Mantel,
    Haenszel), so that drifting shares of good and bad actions are no drift of rates.
    """
    period, timeline = t.logged.timeline.period, t.logged.timeline
    if t.logged.propensities.weights is not None:
        return not_applicable("displays have weights: the rates in the log are not those of the traffic")
    if timeline.about_a_day:
        return not_applicable(_SHORT)
    display = t.logged.survey.display
    counted = t.logged.follow_up.counted(display)
    converted, at = np.unique(display[counted], return_index=True)
    cells = timeline.period_of(converted) * t.mature.shape[1] + t.action[counted][at]
    seen = np.bincount(cells, minlength=t.mature.size).reshape(t.mature.shape).astype(np.float64)
    compared = compared_periods(t)
    seen, judged = seen[compared], t.mature[compared]
    shape = judged.shape
    if seen.sum() < FEWEST_CONVERSIONS:
        return not_applicable(f"{seen.sum():.0f} conversions; {FEWEST_CONVERSIONS} are the fewest")
    shown = judged.sum(axis=0)
    rate = seen.sum(axis=0) / np.maximum(shown, 1.0)
    expected = judged @ rate
    merged = np.floor((np.cumsum(expected) - expected) / FEWEST).astype(np.int64)
    merged = np.unique(np.minimum(merged, max(int(expected.sum() / FEWEST) - 1, 0)), return_inverse=True)[1]
    together = np.zeros((merged.max() + 1, shape[0]))
    together[merged, np.arange(shape[0])] = 1.0
    seen, mature, expected = together @ seen, together @ judged, together @ expected
    left = seen.sum(axis=1) - expected
    # A sample without replacement: of the converted displays of an action, so many fall into each period.
    by_action = rate * (1.0 - rate) * shown / np.maximum(shown - 1.0, 1.0)
    spread = np.diag(mature @ by_action) - (mature * (by_action / np.maximum(shown, 1.0))) @ mature.T
    df = len(left) - 1
    if df < 1:
        return not_applicable("all conversions are in one period")
    # Visitors who come more than once within an hour: their outcomes go together, so totals of days spread more.
    dispersion = 1.0 if t.additive is None else t.additive.dispersion_in_all
    spread *= dispersion
    statistic, _ = squared_length(left, spread)
    p = chi_square_tail(statistic, df)
    unconverted = 1.0 - float(expected.sum() / mature.sum())
    change = math.sqrt(max(statistic - df, 0.0) * unconverted / float(expected.sum()))
    wrong = p <= level and change >= RATE_CHANGE
    noise = math.sqrt(dispersion * unconverted / float(expected.sum()))
    ratio = seen.sum(axis=1) / np.maximum(expected, 1e-300)
    numbers = {
        "chi_square": statistic, "degrees_of_freedom": df, "relative_change": change, "lowest": float(ratio.min()),
        "highest": float(ratio.max()), "displays": int(mature.sum()), "conversions": int(seen.sum()),
    }  # fmt: skip
    return CheckResult(
        verdict="warn" if wrong else "pass",
        number=f"rates vary by {change:.1%} by {period}, p {p_words(p)}",
        statistic=statistic, p_value=p, effect=change, numbers=numbers, shows=_shown_by(df, noise, level),
        what=(f"From {ratio.min():.2f} to {ratio.max():.2f} times the expected. A replay takes displays as "
               "identically distributed: it plays a mixture of these times, the early ones with a policy that has "
               "learned little."
               if wrong else "The actions convert alike over the log, as far as it can tell."),
        remedy="Replay with `sampler='keep'` or rejection, which keep the order of the log, not with queue; compare "
        "policies with each other rather than with a target; replay parts of the log apart. Where conversions go to "
        "the last click, the last days of a log win them for want of later clicks (the first days with first_click): "
        "`deduplicate='share'` shows whether that is all." if wrong else "",
    )  # fmt: skip


def _shown_by(df: int, noise: float, level: float) -> str:
    """Return the factor between the halves of the log, common to all actions, that the test of rates finds.

    Where rates are 1 - d times theirs in one half and 1 + d times in the other, the statistic is about a noncentral
    chi-square with (d / noise)^2.
    """
    from scipy.special import chdtri, chndtrinc

    d = noise * math.sqrt(float(chndtrinc(chdtri(df, level), df, 1.0 - POWER)))
    d = max(d, RATE_CHANGE + POWER_Z * noise)
    if d > MOST_SHOWN:
        return ""
    return f"rates of all actions that become {(1.0 + d) / (1.0 - d):.2f} times theirs at half time"


def delays_drift(t: Tables, level: float, seed: int) -> CheckResult:
    """Test that delays are the same in all periods, allowing for what each period could show (permutations)."""
    period, timeline = t.logged.timeline.period, t.logged.timeline
    survey, follow = t.logged.survey, t.logged.follow_up
    if timeline.about_a_day:
        return not_applicable(_SHORT)
    delay, window = follow.delay, survey.log.meta.attribution_window
    days = timeline.period_of(survey.display)
    limit = None
    if follow.until is not None:
        # One limit a day: all its hours, of which some may have longer delays, are followed as long.
        limit = follow.until - (survey.shown_at if timeline.ends is None else timeline.ends[days])
    if window is not None:
        limit = np.full(len(delay), window) if limit is None else np.minimum(limit, window)
    usable = (delay >= 0) & timeline.whole[days]
    if limit is not None:
        usable &= delay <= limit
    delay, limit, days = delay[usable], None if limit is None else limit[usable], days[usable]
    if len(delay) < FEWEST_CONVERSIONS or delay.min() == delay.max():
        return not_applicable("too few conversions, or all with one delay")
    found = delay_drift(
        delay, limit, days=days, longest=None if limit is None else float(np.median(limit)), false_alarms=level,
        permutations=math.ceil(2.0 / level), rows=DELAY_ROWS, seed=seed,
    )  # fmt: skip
    places = [day.position for day in found.days if day.conversions >= 30 and math.isfinite(day.position)]
    shift = max((abs(place - 0.5) for place in places), default=0.0)
    wrong = found.changed and shift >= DELAY_CHANGE
    since = timeline.name(min((found.change_after or 0) + 1, timeline.periods - 1))
    return CheckResult(
        verdict="warn" if wrong else "pass",
        number=f"mean place shifts by {shift:.3f} by {period}, p {p_words(found.p)}",
        statistic=found.statistic, p_value=found.p, effect=shift,
        numbers={"change_after": found.change_after, "largest_shift": shift, "permutations": found.permutations,
                 "conversions": found.rows},
        shows=_delays_shown(found),
        what=(f"Conversions come sooner or later than before from about {since} on: "
               "one delay CDF for the whole log is wrong for parts of it." if wrong else
               "One law of delays does for the log."),
        remedy="Look at `evaluate delays`; replay with the delays known at the time (`delays_from='first:20%'`), or "
        "replay the time after the change." if wrong else "",
    )  # fmt: skip


def _delays_shown(found: DelayDrift) -> str:
    """Return by what factor delays must become longer at half time to be found."""
    half = found.shown[0].ratio if found.shown else None
    if half is None or half > MOST_DELAYS_SHOWN:
        return ""
    return f"delays that become {half:.2f} times as long at half time"


def compared_periods(t: Tables) -> npt.NDArray[np.bool_]:
    """Return the periods whose rates are compared, shape (P,): whole and judged ones, or all if these are too few.

    Rates go with the time of day, so a day of which only the morning can be judged differs from the others.
    """
    timeline = t.logged.timeline
    if timeline.ends is None:
        return timeline.whole
    compared = timeline.whole & (timeline.edges[1:] <= t.logged.follow_up.mature)
    return compared if compared.sum() >= _FEWEST_DAYS else np.ones(len(compared), bool)


SHARE_DRIFT = Check(
    name="drift of action shares",
    finds="shares of the actions that change along the log",
    run=share_drift,
    of_all=True,
)
RATE_DRIFT = Check(
    name="drift of conversion rates",
    finds="rates of all actions that change along the log, of judged displays only",
    run=rate_drift,
    by_kind=True,
)
DELAY_DRIFT = Check(
    name="drift of delays",
    finds="delays that become longer or shorter along the log",
    run=delays_drift,
    by_kind=True,
)


def hours_and_weekdays(t: Tables, level: float) -> CheckResult:
    """Test that actions have the same shares at all hours and weekdays (chi-square; waves of a day and half a day).

    Where shares also change from one day to another at the same hour, or from one week to another on the same weekday,
    hours and weekdays must differ by more than that: a logger that learned moved on while the clock did.
    """
    if t.logged.constant is None:
        return not_applicable("the propensities may change with time: calibration tests them by hour and weekday")
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
        return not_applicable("the log counts rounds or days, covers less than a day, or has too few displays")
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
        verdict=outcome.verdict,
        number=f"shares vary by {outcome.effect:.1%} by {outcome.worst.what}, p {p_words(outcome.p_value)}",
        statistic=outcome.worst.statistic, p_value=outcome.p_value, effect=outcome.effect,
        numbers=worst_numbers(outcome),
        what=means if wrong else "The logger kept its shares at all hours and on all weekdays, as far as it can tell.",
        remedy=do if wrong else "",
    )  # fmt: skip


def _beyond_drift(test: GroupTest, shown: Floats) -> GroupTest:
    """Return a test of one grouping by the clock, with its statistic lowered to allow for drift.

    The statistic becomes the one whose p-value holds where groups also change from period to period. `shown` counts the
    displays of each period, group and action, shape (P, G, A).
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
    name="hours and weekdays",
    finds="a logger that followed the clock although its propensities are constant",
    run=hours_and_weekdays,
    of_all=True,
)
