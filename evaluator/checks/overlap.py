"""Whether every action is shown often enough, and by chance, for a policy that prefers it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.checks.absences import Absence, absence_advice, absences, without
from evaluator.checks.drift import SHARE_DRIFT
from evaluator.checks.logger_replay import NAME as LOGGER_REPLAY
from evaluator.checks.propensities import CALIBRATION, UNIFORMITY, beyond_absences, homogeneity, said_uniform
from evaluator.checks.record import Check
from evaluator.checks.result import SERIOUS, CheckResult, Verdict
from evaluator.checks.rhythm import NAME as RHYTHM
from evaluator.checks.significance import GroupTest, judge, pearson
from evaluator.checks.tables import CERTAIN, Tables
from evaluator.log.set_kinds import has_eligibility
from evaluator.log.times import time_words

# Displays an action needs before anything can be said of it, rounds a replay needs, and rounds it should have.
FEW_SHOWN, NO_ROUNDS, FEW_ROUNDS = 30, 10, 100
# Factor by which more rounds are worth a word.
_MUCH = 3.0
_NAMED = 5
NAME = "overlap"


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
        name=NAME, verdict=verdict, number=lead, numbers=numbers, effect=least,
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
        return (CALIBRATION.name, LOGGER_REPLAY) if beyond is None or beyond.verdict == "pass" else ()
    always = ~np.isin(np.arange(t.counts.shape[1]), [absence.action for absence in gone])
    counts = t.counts[:, always]
    tests = {SHARE_DRIFT.name: [homogeneity(_shown(counts[1 : 1 + t.logged.timeline.periods]), what="period")]}
    tests[RHYTHM] = [homogeneity(_shown(counts[rows]), what=what) for what, rows in t.families_by("rhythm")]
    if said_uniform(t):
        even = np.full(counts.shape[1], counts[0].sum() / max(counts.shape[1], 1))
        tests[UNIFORMITY.name] = [GroupTest("all", "all", *pearson(counts[0], even), float(counts[0].sum()))]
    found = {name: judge(of, level) for name, of in tests.items()}
    explained = [name for name, outcome in found.items() if outcome is None or outcome.verdict == "pass"]
    return (*explained, LOGGER_REPLAY) if len(explained) == len(found) else tuple(explained)


def _shown(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(counts[counts.sum(axis=1) > 0])


def _since(t: Tables) -> list[str]:
    """Return the label of each action, with the time of its first display."""
    log, start = t.logged.survey.log, t.logged.timeline.start
    return [
        f"{label} (first shown {time_words(at, log.meta.tick_seconds, start=start)})"
        for label, at in zip(log.labels, t.first[1].tolist(), strict=True)
    ]


def _some(labels: list[str], chosen: npt.NDArray[np.bool_]) -> str:
    named = [labels[a] for a in np.flatnonzero(chosen)]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


OVERLAP = Check(
    name=NAME,
    finds="actions never or hardly shown, launched, retired or too young; displays without choice; few rounds left",
    run=overlap,
    tested=False,
    twins_have_it=True,
)
