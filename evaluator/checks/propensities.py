"""Are the propensities what the log shows: uniformity, calibration, and independence of the context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evaluator.checks.absences import absences, hole_cause, there, thinning_cause
from evaluator.checks.record import Check
from evaluator.checks.result import POWER_Z, TRIVIAL, CheckResult, not_applicable
from evaluator.checks.significance import (
    FEWEST,
    GroupTest,
    TestOutcome,
    judge,
    lopsided,
    pearson,
    upper_normal_quantile,
    weighted_homogeneity,
    weighted_pearson,
)  # fmt: skip
from evaluator.checks.tables import Tables

Floats = npt.NDArray[np.float64]

# Checks whose alarm follows where displays without conversions were thinned.
OF_THINNING = ("replay of the logger", "independence", "drift of action shares", "hours and weekdays")


def uniformity(t: Tables, level: float) -> CheckResult:
    """Test that every action was shown equally often: in all, by period, by group of contexts (chi-square, Holm)."""
    name = UNIFORMITY.name
    if not said_uniform(t):
        return not_applicable(name, "the log is not said to be uniform")
    tests = claim_tests(t)
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable(name, f"fewer than {FEWEST:.0f} displays an action")
    found = _finding(
        name, t, outcome, "the displays are as uniform as chance allows",
        "Replay takes the log as uniform. It is not: actions shown more often than 1/K, in all or in some part of the "
        "log, count for too much, and what a policy would have earned is biased by up to this relative error times the "
        "standard deviation of the rewards.",
        "Find out how the log was written; give the true probabilities in a propensity column, or read the log with "
        f"`propensity='estimate'`{' (or estimate:context where the context decides)' if t.logged.has_context else ''}.",
        thinned := thinning_cause(t),
    )  # fmt: skip
    return replace(found, shows=_shown_by(t, tests, level), explains=OF_THINNING if thinned else ())


def calibration(t: Tables, level: float) -> CheckResult:
    """Test that the given propensities are those the log shows: mean of 1{A = a} / p is 1 for each action and group."""
    name, kind = CALIBRATION.name, t.logged.propensities.kind
    if said_uniform(t):
        return not_applicable(name, "the log is said to be uniform: uniformity tests that")
    if kind in ("absent", "estimated") and t.logged.constant is not None:
        return not_applicable(name, "the propensities are the shares of the actions in this very log")
    tests = claim_tests(t)
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable(name, "too few displays, or weights too uneven, for a test")
    beyond = beyond_absences(t, level)
    if outcome.verdict != "pass" and beyond is not None and beyond.verdict != "pass":
        outcome = beyond
    thinned, in_hole = thinning_cause(t), hole_cause(t) if beyond is None else None
    n, s1, s2 = len(t.logged.survey.log), t.inverse[0, 0], t.inverse[1, 0]
    mean = float(s1.sum() / n)
    error = float(np.sqrt(max(s2.sum() / n - mean**2, 0.0) / n))
    supported = int(np.count_nonzero(t.counts[0]))
    found = _finding(
        name, t, outcome, "the propensities agree with what was shown",
        "Weights 1 / p are wrong by this relative error (root mean square), and every value of a replay by up to as "
        "much times the standard deviation of the rewards.",
        "Check that the propensity column is the probability of the action shown, at the time it was shown, after all "
        "filters of the logger; otherwise leave it and use "
        f"`propensity='estimate{':context' if t.logged.has_context else ''}'`."
        if "context" not in t.logged.propensities.reads
        else "The model of the logger does not describe it: read with `features` naming all that it chose by, the hour "
        "too where it followed the clock, or give the propensities that it had. What the log does not hold stays a "
        "bias.",
        thinned or in_hole,
    )  # fmt: skip
    numbers = {"mean_inverse_propensity": mean, "standard_error": error, "actions_shown": supported}
    number = f"mean 1/p {mean:.4g} (se {error:.2g}) for {supported} actions; {found.number}"
    # The whole-log replay only repeats what a hole makes of the weights.
    explains = OF_THINNING if thinned else OF_THINNING[:1] if in_hole else ()
    return replace(
        found, number=number, numbers={**found.numbers, **numbers}, shows=_shown_by(t, tests, level), explains=explains
    )


def independence(t: Tables, level: float) -> CheckResult:
    """Test that the action does not depend on the context, as constant propensities say (chi-square, trend, Holm)."""
    name = INDEPENDENCE.name
    if t.logged.constant is None:
        return not_applicable(name, "the propensities change with the display: calibration tests them")
    if t.logged.coordinates.column is None:
        return not_applicable(name, "the log has no context")
    tests = []
    n = float(len(t.logged.survey.log))
    for what, rows in t.families_by("context"):
        counts = t.counts[rows]
        tests.append(homogeneity(counts, what=what, rows=rows))
        tests.append(GroupTest(what, ("trend along", what), *trend(counts), n, tuple(rows)))
    if t.ignored is not None:
        tests.append(GroupTest("the vectors of the actions", "vectors", *t.ignored.statistic(), n))
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable(name, "contexts do not vary, or there are too few displays")
    numbers = {"coordinates_tested": len(t.logged.coordinates), "coordinates": t.logged.coordinates.of}
    found = _finding(
        name, t, outcome, "what was shown does not depend on the context",
        "The propensities are taken as constant, but the logger chose by context: actions' values are confounded with "
        "the contexts they were shown in, for contextual and other policies alike.",
        "Give the propensities the logger had, or model them by "
        + ("what" if t.logged.has_context else "the columns of displays that")
        + " it chose by: `propensity='estimate:context'` with `features` naming "
        + ("the context." if t.logged.has_context else "these.")
        + " What the logger saw and the log does not hold stays a bias.",
    )  # fmt: skip
    return replace(found, numbers={**found.numbers, **numbers})


def said_uniform(t: Tables) -> bool:
    """Return whether every propensity is 1/K."""
    return t.logged.propensities.kind == "uniform" or t.logged.propensities.even


def homogeneity(counts: Floats, *, what: str, rows: Sequence[int] = ()) -> GroupTest:
    """Return the test that several groups show the actions in the same shares, of a family of its own.

    Parameters
    ----------
    counts
        Number of displays of each group and action, shape (G, K).
    what
        What the groups differ by, in words.
    rows
        Rows of `Tables.groups` that they are, if they are.
    """
    sizes, n = counts.sum(axis=1), counts.sum()
    shares = counts.sum(axis=0) / n
    statistic = df = 0.0
    for row, size in zip(counts, sizes, strict=True):
        found, of = pearson(row, size * shares)
        statistic += found
        df += of * (1.0 - size / n)  # the shares are those of all groups together
    return GroupTest(what, ("homogeneity", what), statistic, df, float(n), tuple(rows))


def beyond_absences(t: Tables, level: float) -> TestOutcome | None:
    """Return what the tests of propensities say of the time in which each action was there; None if all always were.

    Of constant propensities nothing is said: what an action leaves when it goes is shared out among the others.
    """
    gone = absences(t)
    return judge(claim_tests(t, there(t, gone)), level) if gone and t.logged.constant is None else None


def claim_tests(t: Tables, displays: Floats | None = None) -> list[GroupTest]:
    """Return the tests of the propensities as given: every action, all displays, every period, every bin.

    Parameters
    ----------
    t
        Tables of the log.
    displays
        Displays of each group at which each action could be shown, shape (G, K), of propensities that change between
        displays; None for all.
    """
    tests = _by_action(t, None if displays is None else displays[0])
    constant = t.logged.constant
    # Where the largest weights are few in the whole log, groups without them only seem steady.
    tested = ~lopsided(t.inverse[1, 0], t.inverse[2, 0])
    for i, group in enumerate(t.groups):
        n = float(t.counts[i].sum())
        if constant is not None:
            found = pearson(t.counts[i], n * np.nan_to_num(constant))
        elif n > 0:
            s1, s2, s3 = t.inverse[:, i]
            even = not t.logged.propensities.tilted
            found = (
                weighted_pearson(n if displays is None else displays[i], s1, s2, s3, tested)
                if even
                else weighted_homogeneity(s1, s2, s3, tested)
            )
        else:
            continue
        tests.append(GroupTest(group.name, group.family, *found, n, (i,)))
    if t.claimed is not None:
        tests.append(GroupTest("the vectors of the actions", "vectors", *t.claimed.statistic(), float(t.claimed.n)))
    return tests


def _by_action(t: Tables, displays: Floats | None = None) -> list[GroupTest]:
    """Return a test of each action: its family's n is such that the effect is the relative error of its propensity."""
    whole = float(len(t.logged.survey.log))
    s1, s2, s3 = t.inverse[:, 0]
    constant, heavy = t.logged.constant, lopsided(s2, s3)
    tests = []
    for a, label in enumerate(t.logged.survey.log.labels):
        n = whole if displays is None else float(displays[a])
        if constant is None:
            if not s2[a] or heavy[a]:
                continue
            m, spread = s1[a] / n - 1.0, max(s2[a] / n, s2[a] / s1[a])
        else:
            p = constant[a]
            if not n * p >= 2.5 * FEWEST:
                continue
            m, spread = t.counts[0, a] / (n * p) - 1.0, 1.0 / p
        if spread <= 1.0 + 1e-9:
            continue
        # Of displays that are no even sample of the traffic, how many there are is chance, too.
        of = n / (spread if t.logged.propensities.tilted else spread - 1.0)
        tests.append(GroupTest(f"action {label}", f"action {label}", float(of * m**2), 1.0, of))
    return tests


def trend(counts: Floats, along: Floats | None = None) -> tuple[float, float]:
    """Return the score statistic for shares that change along the bins (rows), and its degrees of freedom.

    Parameters
    ----------
    counts
        Number of displays of each bin and action, shape (G, K).
    along
        Value of each bin, shape (G,); None takes its middle among the displays.
    """
    size, shown = counts.sum(axis=1), counts.sum(axis=0)
    n = size.sum()
    middle = (np.cumsum(size) - size / 2.0) / n if along is None else along
    middle = middle - (size * middle).sum() / n
    spread = float((size * middle**2).sum() / n)
    score = middle @ counts
    rare = shown < 2.5 * FEWEST
    shown, score = np.append(shown[~rare], shown[rare].sum()), np.append(score[~rare], score[rare].sum())
    used = shown >= 2.5 * FEWEST
    if spread <= 0.0 or used.sum() < 2:
        return 0.0, 0.0
    return float((score[used] ** 2 / shown[used]).sum() / spread), float(used.sum() - 1)


def _finding(
    name: str, t: Tables, outcome: TestOutcome, good: str, bad: str, remedy: str, cause: tuple[str, str] | None = None
) -> CheckResult:
    """Return the finding of an outcome; a known cause says what it means and what to do better than `bad`, `repair`."""
    worst, numbers = outcome.worst, worst_numbers(outcome)
    where = worst.what
    if outcome.verdict == "pass":
        what = good
        if outcome.p_value < 0.01 and outcome.effect < TRIVIAL:
            what = f"a difference shows ({where}), but it is below {TRIVIAL:.0%}: too small to matter"
        return CheckResult(
            name=name, verdict="pass", number=f"smallest p {p_words(outcome.p_value)} of {outcome.tests} tests",
            statistic=worst.statistic, p_value=outcome.p_value, effect=outcome.effect, numbers=numbers,
            what=what[0].upper() + what[1:] + ".",
        )  # fmt: skip
    number = f"off by {outcome.effect:.0%} ({where}), p {p_words(outcome.p_value)}"
    means, do = (f"{bad}{most_off(t, worst.rows)}", remedy) if cause is None else cause
    return CheckResult(
        name=name, verdict=outcome.verdict, number=number, statistic=worst.statistic, p_value=outcome.p_value,
        effect=outcome.effect, numbers=numbers, what=means, remedy=do,
    )  # fmt: skip


def _shown_by(t: Tables, tests: Sequence[GroupTest], level: float) -> str:
    """Return how much too often an action must be shown to be found, the one in the middle by what can be told."""
    # The n of an action's test is such that its statistic is n times the square of the relative error.
    of = sorted(test.n for test in _by_action(t))
    if not of:
        return ""
    error = 1.0 / math.sqrt(of[len(of) // 2])
    off = max(upper_normal_quantile(level / (2.0 * len(tests))) * error, TRIVIAL) + POWER_Z * error
    return f"an action shown {1.0 + off:.2f} times as often as its propensity says"


def most_off(t: Tables, rows: Sequence[int]) -> str:
    """Return a sentence, or nothing, naming the action furthest from its propensity in the group that shows it most."""
    constant = t.logged.constant
    if not rows or constant is None:
        return ""
    # By contexts the shares of the log are the reference, whatever is claimed: they hold both claims.
    p = t.logged.shares if len(rows) > 1 else np.nan_to_num(constant)
    expected = np.maximum(t.counts[list(rows)].sum(axis=1, keepdims=True) * p, 1e-12)
    excess = (t.counts[list(rows)] - expected) / np.sqrt(expected)
    excess[expected < FEWEST] = 0.0
    i, a = np.unravel_index(int(np.abs(excess).argmax()), excess.shape)
    row, label = rows[int(i)], t.logged.survey.log.labels[int(a)]
    n = t.counts[row].sum()
    place, share = t.groups[row].name, t.counts[row, a] / n
    return f" Furthest off: action {label} in {place}, shown {share:.2%} instead of {p[a]:.2%}."


def worst_numbers(outcome: TestOutcome) -> dict[str, float | str]:
    """Return the numbers of an outcome by name."""
    worst = outcome.worst
    return {"where": worst.what, "chi_square": worst.statistic, "degrees_of_freedom": worst.df,
            "relative_error": outcome.effect, "tests": outcome.tests}  # fmt: skip


def p_words(p: float) -> str:
    """Return a p-value as people read it.

    >>> p_words(0.0312), p_words(1e-30)
    ('0.031', '< 1e-9')
    """
    return "< 1e-9" if p < 1e-9 else f"{p:.2g}"


UNIFORMITY = Check(
    name="uniformity",
    finds="actions of a log said to be uniform that are shown more or less often: in all, by day, hour, context",
    run=uniformity,
    of_all=True,
)
CALIBRATION = Check(
    name="calibration",
    finds="actions shown more or less often than their propensities say; holes told from wrong propensities",
    run=calibration,
    instead_of="uniformity",
    of_all=True,
)
INDEPENDENCE = Check(
    name="independence",
    finds="a logger that chose by context although its propensities are constant",
    run=independence,
    of_all=True,
)
