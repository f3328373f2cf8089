"""Whether actions were shown as their propensities say, often enough, and so that a replay of the logger holds.

Actions are compared with their propensities in all, by group and by context.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evaluator.checks.result import POWER_Z, SERIOUS, TRIVIAL, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.shares import (
    RHYTHM,
    SHARE_DRIFT,
    Absence,
    absence_advice,
    absences,
    hole_cause,
    most_off,
    there,
    thinning_cause,
    without,
)
from evaluator.checks.significance import (
    FEWEST,
    LOPSIDED,
    GroupTest,
    TestOutcome,
    homogeneity,
    judge,
    lopsided,
    normal_tail,
    p_words,
    pearson,
    trend,
    upper_normal_quantile,
    weighted_homogeneity,
    weighted_pearson,
)
from evaluator.checks.tables import CERTAIN, Flags, Floats, Tables
from evaluator.engine.kernels.solving import solved
from evaluator.errors import DataError
from evaluator.estimates.confidence import SparseRewards, mean_interval
from evaluator.log.contract import has_eligibility
from evaluator.log.reward_kinds import counted_outcomes
from evaluator.log.times import time_words
from evaluator.streams import Stream, random_stream

# Checks whose alarm follows where displays without conversions were thinned.
OF_THINNING = ("replay of the logger", "independence", "drift of action shares", "hours and weekdays")
DO = "Look at uniformity, calibration, overlap and drift: they say which propensities are wrong, and where or when."
# Displays an action needs before anything can be said of it, rounds a replay needs, and rounds it should have.
FEW_SHOWN, NO_ROUNDS, FEW_ROUNDS = 30, 10, 100
# Factor by which more rounds are worth a word.
_MUCH = 3.0
_NAMED = 5


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
    where = outcome.worst.what
    if outcome.verdict == "pass":
        what = good
        if outcome.p_value < 0.01 and outcome.effect < TRIVIAL:
            what = f"a difference shows ({where}), but it is below {TRIVIAL:.0%}: too small to matter"
        number = f"smallest p {p_words(outcome.p_value)} of {outcome.tests} tests"
        return outcome.result(number, what[0].upper() + what[1:] + ".")
    number = f"off by {outcome.effect:.0%} ({where}), p {p_words(outcome.p_value)}"
    return outcome.result(number, *(cause or (f"{bad}{most_off(t, outcome.worst.rows)}", remedy)))


def _shown_by(t: Tables, tests: Sequence[GroupTest], level: float) -> str:
    """Return how much too often an action must be shown to be found, the one in the middle by what can be told."""
    # The n of an action's test is such that its statistic is n times the square of the relative error.
    of = sorted(test.n for test in _by_action(t))
    if not of:
        return ""
    error = 1.0 / math.sqrt(of[len(of) // 2])
    off = max(upper_normal_quantile(level / (2.0 * len(tests))) * error, TRIVIAL) + POWER_Z * error
    return f"an action shown {1.0 + off:.2f} times as often as its propensity says"


def overlap(t: Tables, level: float) -> CheckResult:
    """Say how small propensities get, how many displays classes of policies are worth, and which actions have none.

    Alarms of other checks that go with actions that came late or went early follow from this one (`_explained`).

    Effective sample sizes are (sum w)^2 / sum w^2 over the displays, w the class's probability of the action over p.
    """
    log, p = t.logged.survey.log, t.logged.propensities
    n, labels, shown = len(log), log.labels, t.logged.survey.shown
    s1, s2 = t.inverse[0, 0], t.inverse[1, 0]
    least = float(np.nanmin(t.logged.constant)) if t.logged.constant is not None else p.least
    rounds = n * least
    # A hundredth of the displays may decide for all of them.
    wider = p.quantile(log, 0.01) if rounds < FEW_ROUNDS and p.rule is not None else least
    with np.errstate(invalid="ignore"):
        own = np.where(s2 > 0, s1**2 / s2, 0.0)
    rewards = np.bincount(t.action, t.weight, minlength=len(labels)) / np.maximum(s1, 1e-300)
    best = int(np.where(shown >= FEW_SHOWN, rewards, -np.inf).argmax())
    worst = int(own.argmin())
    # Where displays say what was eligible, an action that was not there is missed by no policy, and one that was there
    # and not shown is what the check of eligible actions finds.
    sets = has_eligibility(log)
    gone = [] if sets else absences(t)
    numbers = {
        "smallest_propensity": least, "largest_weight": t.largest_weight, "expected_rounds": rounds,
        "ess_worst_action": float(own[worst]), "worst_action": labels[worst],
        "ess_uniform": float(s1.sum() ** 2 / s2.sum()), "ess_best_action": float(own[best]),
        "best_action": labels[best], "never_shown": int((shown == 0).sum()),
        "shown_fewer_than_30": int(((shown > 0) & (shown < FEW_SHOWN)).sum()), "certain_share": t.certain / n,
        "none_judged": int(((shown > 0) & (t.usable == 0)).sum()), "launched_or_retired": len(gone),
        "rounds_without_rarest": n * wider if wider >= _MUCH * least else None,
    }  # fmt: skip
    said: list[tuple[Verdict, str, str]] = []
    if t.certain:
        grave: Verdict = "fail" if t.certain > 0.01 * n else "warn"
        said.append((grave, f"{t.certain / n:.1%} of the displays have a propensity of {CERTAIN} or more: there the "
                     "logger left nothing to chance, and the log cannot tell what another action would have earned",
                     "Log with some exploration, or leave these displays out."))  # fmt: skip
    if (shown == 0).any() and not sets:
        said.append(("fail", f"never shown: {_some(labels, shown == 0)}. A policy that chooses them finds no display, "
                     "and its replay stalls or is made of the other choices",
                     "Leave these actions out: `actions='used'`, or top:K, or labels."))  # fmt: skip
    # Where no display at all can be judged, immature displays says so.
    young = (shown > 0) & (t.usable == 0) & (t.logged.usable > 0)
    if young.any():
        said.append(("fail", f"no display old enough to be judged: {_some(_since(t), young)}. A replay leaves young "
                             "displays out, so a policy that chooses these actions finds none",
                     f"Leave these actions out ({without(t, young)}, or `actions='used'`), or take a log that was "
                     "followed longer."))  # fmt: skip
    few = (shown > 0) & (t.usable < FEW_SHOWN) & ~young & (t.logged.usable > 0)
    if few.any():
        old = "" if t.logged.usable == n else " old enough to be judged"
        said.append(("warn", f"fewer than {FEW_SHOWN} displays{old}: {_some(labels, few)}. Their values are guesses",
                     "Leave them out with `actions`, or log longer."))  # fmt: skip
    old_enough = [absence for absence in gone if not young[absence.action]]
    if old_enough:
        most = max(absence.share for absence in old_enough)
        said.append(("fail" if most >= SERIOUS else "warn", *absence_advice(t, old_enough)))
    if rounds < FEW_ROUNDS and t.certain < n:
        said.append(("fail" if rounds < NO_ROUNDS else "warn",
                     f"the smallest propensity {least:.2g} leaves about {rounds:,.1f} rounds of a contextual replay",
                     _more_rounds(t, least, wider)))  # fmt: skip
    verdict: Verdict = "pass"
    for grade in ("warn", "fail"):
        if any(v == grade for v, _, _ in said):
            verdict = grade
    lead = f"smallest p {least:.2g}, about {rounds:,.0f} rounds, ESS of the worst action {own[worst]:,.0f}"
    words = [what for _, what, _ in said] or [
        f"a contextual replay gets about {rounds:,.0f} rounds, importance weights leave {own[worst]:,.0f} displays or "
        f"more for a fixed action ({labels[worst]}), {numbers['ess_uniform']:,.0f} for uniform play"
    ]
    return CheckResult(
        verdict=verdict, number=lead, numbers=numbers, effect=least,
        what=". ".join(w[0].upper() + w[1:] for w in words) + ".",
        remedy=" ".join(do for _, _, do in said), explains=_explained(t, gone, level) if gone else (),
    )  # fmt: skip


def _more_rounds(t: Tables, least: float, wider: float) -> str:
    """Return what helps where few rounds are left: it depends on how many propensities are as small as the smallest."""
    if wider >= _MUCH * least:
        return (
            f"Correct the smallest propensities if they are mistakes of the log; or let replay accept some bias with "
            f"`accept_quantile=0.01`, which leaves about {len(t.logged.survey.log) * wider:,.0f} rounds."
        )
    constant = t.logged.constant
    smallest = t.logged.propensities.smallest if constant is None else constant
    if np.nanmedian(smallest) >= _MUCH * least:
        return "Leave out the actions with the smallest propensities (`actions`)."
    return "Take fewer actions (`actions='top:n'`), or a longer log."


def _explained(t: Tables, gone: list[Absence], level: float) -> tuple[str, ...]:
    """Return the checks that say nothing against the time in which each action was there.

    Propensities that change between displays are tested against the displays at which each action was there; shares by
    those of the actions that always were.
    """
    if t.logged.constant is None:
        beyond = beyond_absences(t, level)
        return (CALIBRATION.name, LOGGER_REPLAY.name) if beyond is None or beyond.verdict == "pass" else ()
    always = ~np.isin(np.arange(t.counts.shape[1]), [absence.action for absence in gone])
    counts = t.counts[:, always]
    tests = {SHARE_DRIFT.name: [homogeneity(_shown(counts[1 : 1 + t.logged.timeline.periods]), what="period")]}
    tests[RHYTHM.name] = [homogeneity(_shown(counts[rows]), what=what) for what, rows in t.families_by("rhythm")]
    if said_uniform(t):
        even = np.full(counts.shape[1], counts[0].sum() / max(counts.shape[1], 1))
        tests[UNIFORMITY.name] = [GroupTest("all", "all", *pearson(counts[0], even), float(counts[0].sum()))]
    found = {name: judge(of, level) for name, of in tests.items()}
    explained = [name for name, outcome in found.items() if outcome is None or outcome.verdict == "pass"]
    return (*explained, LOGGER_REPLAY.name) if len(explained) == len(found) else tuple(explained)


def _shown(counts: Floats) -> Floats:
    return np.asarray(counts[counts.sum(axis=1) > 0])


def _since(t: Tables) -> list[str]:
    """Return the label of each action, with the time of its first display."""
    log, start = t.logged.survey.log, t.logged.timeline.start
    return [
        f"{label} (first shown {time_words(at, log.meta.tick_seconds, start=start)})"
        for label, at in zip(log.labels, t.first[1].tolist(), strict=True)
    ]


def _some(labels: list[str], chosen: Flags) -> str:
    named = [labels[a] for a in np.flatnonzero(chosen)]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


def replay_of_logger(t: Tables, level: float, seed: int) -> CheckResult:
    """Replay the logging policy on its own log.

    With one propensity an action, the policy draws each action independently with its share of the displays of that
    period, and the rejection sampler accepts what it draws with probability c / p: right propensities give back the
    log's mean. Were the propensities to depend on the display, the log would not hold what a new draw needs, the
    probabilities of the actions not shown. Then rewards as far as contexts explain them (least squares), which no
    action can move, are weighted as for a policy that shows the log's shares: their mean must stay the log's.
    """
    total = float(t.logged.earned[1].sum())
    if total == 0.0:
        return not_applicable("the log has no rewards")
    if t.logged.propensities.tilted:
        return not_applicable(
            "the displays are no even sample of the traffic, so their mean is not what a replay gives back"
        )
    return _weighted(t, level) if t.logged.constant is None else _sampled(t, level, seed)


def _sampled(t: Tables, level: float, seed: int) -> CheckResult:
    logged = t.logged
    log, constant = logged.survey.log, logged.constant
    assert constant is not None
    n = len(log)
    shares = t.counts[1 : 1 + logged.timeline.periods]
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(invalid="ignore"):
        # A draw equals the logged action with its share's probability: one number settles draw and acceptance.
        accept = np.nan_to_num(shares * np.nanmin(constant) / constant)
    rng = random_stream(Stream.LOGGER_REPLAY, seed)
    display, value = t.logged.earned
    rounds, at, rewards, largest, least = 0, [], [], 0.0, 0.0
    for first, batch in log.batches(["action"]):
        action = batch["action"]
        size = len(action)
        low, high = np.searchsorted(display, [first, first + size])
        reward = np.bincount(display[low:high] - first, value[low:high], minlength=size)
        largest, least = max(largest, float(reward.max())), min(least, float(reward.min()))
        period = logged.timeline.period_of(np.arange(first, first + size))
        reward = reward[rng.random(size) < accept[period, action]]
        paid = np.flatnonzero(reward)
        at.append(rounds + paid)
        rewards.append(reward[paid])
        rounds += len(reward)
    kinds = [log.meta.conversions, *counted_outcomes(log.meta)]
    lower = min(least, sum(kind.value_min or 0.0 for kind in kinds))
    upper = max(largest, sum(kind.value_max or 0.0 for kind in kinds))
    mean = float(value.sum()) / n
    if not rounds:
        return not_applicable("no display would be accepted: see overlap")
    try:
        found = mean_interval(
            SparseRewards(rounds, np.concatenate(at), np.concatenate(rewards)), lower=lower, upper=upper, alpha=level
        )
    except DataError as error:  # rewards that are not finite
        return not_applicable(error.what)
    numbers = {"log_mean": mean, "replayed": found.estimate, "low": found.low, "high": found.high, "rounds": rounds}
    said = f"replayed {found.estimate:.4g} in [{found.low:.4g}, {found.high:.4g}], log {mean:.4g}"
    right = found.low <= mean <= found.high
    return CheckResult(
        verdict="pass" if right else "fail", number=said, statistic=found.estimate - mean,
        effect=abs(found.estimate / mean - 1.0) if mean else None, numbers=numbers,
        what=f"{rounds:,} rounds of the logging policy, drawn anew by its shares in each period, "
        + ("give back the log's own mean." if right else
           "do not give back the log's own mean: with these propensities no other policy's value can be believed."),
        remedy="" if right else DO,
    )  # fmt: skip


def _weighted(t: Tables, level: float) -> CheckResult:
    log = t.logged.survey.log
    n = len(log)
    beta = solved(t.gram, t.moment)
    mean = float(t.logged.earned[1].sum()) / n
    difference = float(beta @ t.drawn.total) / n
    spread = float(beta @ t.drawn.square @ beta) / n - difference**2
    share = t.logged.shares
    second, third = (share**2 * t.inverse[1, 0]).sum(), (share**3 * t.inverse[2, 0]).sum()
    if third / second**1.5 >= LOPSIDED or spread <= 0.0:
        return not_applicable("a few displays carry most of the weight, so nothing can be tested: see overlap")
    error = math.sqrt(spread / n)
    z = difference / error
    p = normal_tail(z)
    wrong = p <= level and abs(difference) > 0.02 * abs(mean)
    ess = float((share * t.inverse[0, 0]).sum() ** 2 / second)
    return CheckResult(
        verdict="fail" if wrong else "pass",
        number=f"weighted {mean + difference:.4g}, log {mean:.4g}, p {p_words(p)}",
        statistic=z, p_value=p, effect=abs(difference / mean) if mean else None,
        numbers={"log_mean": mean, "weighted": mean + difference, "standard_error": error,
                 "effective_sample_size": ess},
        what="The log holds the probability of the action shown only, so its policy cannot be drawn anew. Rewards as "
        "far as the context explains them, which no action moves, weighted by the log's shares / p, "
        + ("keep the log's mean." if not wrong else
           "lose the log's mean: the weights tilt the traffic, and bias every value."),
        remedy=DO if wrong else "",
    )  # fmt: skip


UNIFORMITY = Check(
    name="uniformity",
    finds="actions of a log said to be uniform that are shown more or less often: in all, by day, hour, context",
    run=uniformity,
    of_all=True,
    of_choices=True,
)
CALIBRATION = Check(
    name="calibration",
    finds="actions shown more or less often than their propensities say; holes told from wrong propensities",
    run=calibration, instead_of="uniformity", of_all=True, of_choices=True,
)  # fmt: skip
INDEPENDENCE = Check(
    name="independence", finds="a logger that chose by context although its propensities are constant",
    run=independence, of_all=True, of_choices=True,
)  # fmt: skip
OVERLAP = Check(
    name="overlap",
    finds="actions never or hardly shown, launched, retired or too young; displays without choice; few rounds left",
    run=overlap, tested=False, twins_have_it=True,
)  # fmt: skip
LOGGER_REPLAY = Check(
    name="replay of the logger", finds="propensities that do not give back the log's own mean reward",
    run=replay_of_logger, of_all=True, of_choices=True,
)  # fmt: skip
