"""Whether actions were shown as their propensities say: in all, by group, by context, among eligible ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evaluator.checks.absences import absences, hole_cause, there, thinning_cause
from evaluator.checks.result import POWER_Z, SERIOUS, TRIVIAL, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.significance import (
    FEWEST,
    GroupTest,
    TestOutcome,
    homogeneity,
    judge,
    lopsided,
    p_words,
    pearson,
    trend,
    upper_normal_quantile,
    weighted_homogeneity,
    weighted_pearson,
    worst_numbers,
)  # fmt: skip
from evaluator.checks.tables import Tables
from evaluator.estimates.confidence import log_tail
from evaluator.log.eligible import SetCodes, bits_of, members, sizes
from evaluator.log.schema import ELIGIBLE
from evaluator.replays.rounds.stream import read_sets

Floats = npt.NDArray[np.float64]
# Checks whose alarm follows where displays without conversions were thinned.
OF_THINNING = ("replay of the logger", "independence", "drift of action shares", "hours and weekdays")
# An action that is eligible at so few displays is hardly in anybody's way, and hardly known.
_HARDLY = 1e-3
_NAMED = 5
# Displays whose propensity is so close to the smallest bind c.
_BINDS = 1.01
# Sets of so many actions and more are compared together.
_LARGEST = 64
# Actions of fewer displays say little of how their 1/p vary, and may be unseen by chance.
_FEWEST_SHOWN = 25


def uniformity(t: Tables, level: float) -> CheckResult:
    """Test that every action was shown equally often: in all, by period, by group of contexts (chi-square, Holm)."""
    if not said_uniform(t):
        return not_applicable("the log is not said to be uniform")
    tests = claim_tests(t)
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable(f"fewer than {FEWEST:.0f} displays an action")
    found = _finding(
        t, outcome, "the displays are as uniform as chance allows",
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
    kind = t.logged.propensities.kind
    if said_uniform(t):
        return not_applicable("the log is said to be uniform: uniformity tests that")
    if kind in ("absent", "estimated") and t.logged.constant is not None:
        return not_applicable("the propensities are the shares of the actions in this very log")
    tests = claim_tests(t)
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable("too few displays, or weights too uneven, for a test")
    beyond = beyond_absences(t, level)
    if outcome.verdict != "pass" and beyond is not None and beyond.verdict != "pass":
        outcome = beyond
    thinned, in_hole = thinning_cause(t), hole_cause(t) if beyond is None else None
    n, s1, s2 = len(t.logged.survey.log), t.inverse[0, 0], t.inverse[1, 0]
    mean = float(s1.sum() / n)
    error = float(np.sqrt(max(s2.sum() / n - mean**2, 0.0) / n))
    supported = int(np.count_nonzero(t.counts[0]))
    found = _finding(
        t, outcome, "the propensities agree with what was shown",
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
    if t.logged.constant is None:
        return not_applicable("the propensities change with the display: calibration tests them")
    if t.logged.coordinates.column is None:
        return not_applicable("the log has no context")
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
        return not_applicable("contexts do not vary, or there are too few displays")
    numbers = {"coordinates_tested": len(t.logged.coordinates), "coordinates": t.logged.coordinates.of}
    found = _finding(
        t, outcome, "what was shown does not depend on the context",
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


def beyond_absences(t: Tables, level: float) -> TestOutcome | None:
    """Return what the tests of propensities say of the time in which each action was there; None if all always were.

    Of constant propensities nothing is said: what an action leaves when it goes is shared out among the others.
    """
    gone = absences(t)
    return judge(claim_tests(t, there(t, gone)), level) if gone and t.logged.constant is None else None


def claim_tests(t: Tables, displays: Floats | None = None) -> list[GroupTest]:
    """Return the tests of the propensities as given: every action, all displays, every period, every bin.

    For propensities that change between displays, `displays` counts the displays of each group at which each action
    could be shown, shape (G, K); with None that is all of them.
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


def _finding(
    t: Tables, outcome: TestOutcome, good: str, bad: str, remedy: str, cause: tuple[str, str] | None = None
) -> CheckResult:
    """Return the finding of an outcome; a known cause says what it means and what to do better than `bad`, `repair`."""
    worst, numbers = outcome.worst, worst_numbers(outcome)
    where = worst.what
    if outcome.verdict == "pass":
        what = good
        if outcome.p_value < 0.01 and outcome.effect < TRIVIAL:
            what = f"a difference shows ({where}), but it is below {TRIVIAL:.0%}: too small to matter"
        return CheckResult(
            verdict="pass", number=f"smallest p {p_words(outcome.p_value)} of {outcome.tests} tests",
            statistic=worst.statistic, p_value=outcome.p_value, effect=outcome.effect, numbers=numbers,
            what=what[0].upper() + what[1:] + ".",
        )  # fmt: skip
    number = f"off by {outcome.effect:.0%} ({where}), p {p_words(outcome.p_value)}"
    means, do = (f"{bad}{most_off(t, worst.rows)}", remedy) if cause is None else cause
    return CheckResult(
        verdict=outcome.verdict, number=number, statistic=worst.statistic, p_value=outcome.p_value,
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
        return CheckResult(verdict="not applicable", number="", what="every action is always eligible")
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


SHOWN_OF_SETS = Check(
    name="eligible actions",
    finds="propensities that do not fit the eligible actions; actions eligible but never or hardly shown; what binds c",
    run=shown_of_sets,
    instead_of="uniformity",
)
