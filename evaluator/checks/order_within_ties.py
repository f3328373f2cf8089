"""Whether displays that share a time stand in an order that says something."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import SERIOUS, CheckResult, Verdict, not_applicable
from evaluator.checks.significance import normal_tail
from evaluator.checks.tables import Tables
from evaluator.checks.tied_displays import CROWD
from evaluator.estimates.simultaneous import holm

NAME = "order within ties"
# Below this share of displays that share their time, their order changes no decision; nor does an order by which places
# are shifted less than this (correlation), or neighbours are alike less than this beyond chance.
FEW_TIED, WEAK = 0.05, 0.05
# Sums over fewer displays are not normal enough to be tested; their fourth part bounds the variance of neighbours.
_FEWEST = 25.0


class _OrderTest(NamedTuple):
    by: Literal["action", "context", "outcome"]
    what: str
    z: float
    effect: float


def order_within_ties(t: Tables, level: float) -> CheckResult:
    """Test that displays with one time stand in random order: by action, by context, by outcome (normal, Holm).

    Fewer than `CROWD` at a time may honestly stand in order, as the places of one page, whose contexts and outcomes
    differ: by them, and by the actions of a logger that looks at contexts, only larger groups are tested.
    """
    ties, logged = t.ties, t.logged
    n = len(logged.survey.log)
    share, crowd = ties.tied / n, ties.crowd / max(ties.tied, 1.0)
    numbers = {"tied_share": share, "displays_at_a_time": crowd}
    if not ties.tied:
        return not_applicable(NAME, "no two displays share a time")
    if share < FEW_TIED:
        return _quiet(f"{share:.1%} of the displays share their time", numbers, "Too few for their order to matter.")
    tests = _tests(t, crowd >= CROWD)
    if not tests:
        return not_applicable(NAME, "too few displays share a time, or they are all alike, for a test")
    adjusted = holm([normal_tail(test.z) for test in tests]).tolist()
    p, (by, what, z, effect) = min(
        zip(adjusted, tests, strict=True), key=lambda one: (one[0] > level or one[1].effect < WEAK, -one[1].effect)
    )
    numbers |= {"tests": len(tests), "z": z, "effect": effect}
    many = f"{share:.0%} share their time, {crowd:,.0f} at a time"
    if p > level or effect < WEAK:
        least = min(adjusted)
        random = "Displays with one time stand in random order, as far as it can tell."
        return _quiet(f"{many}; smallest p {p_words(least)}", numbers, random, p_value=least)
    grave = crowd >= CROWD and effect >= SERIOUS and by != "context"
    verdict: Verdict = "fail" if grave else "warn"
    return CheckResult(
        name=NAME,
        verdict=verdict,
        number=f"{what}, effect {effect:.2f}, p {p_words(p)}; {many}",
        statistic=z,
        p_value=p,
        effect=effect,
        numbers={**numbers, "where": what},
        what=f"Displays with one time stand in the file in an order that goes with their {by} ({what}): the file was "
        "sorted after the fact, or its times are cut too coarsely. A replay takes the order of the file for that of "
        "time: it meets such displays in long runs, accepts few of them, and delays counted in displays are artefacts.",
        remedy="Give times as fine as they were logged. Otherwise let chance order the displays of one time: leave out "
        'ties = "file" under [time] of the spec, or pass a Log made by hand through evaluator.log.shuffle_ties.',
    )


def _tests(t: Tables, crowded: bool) -> list[_OrderTest]:
    """Return each test: what is ordered, z, and its effect, 0 for chance, 1 for a complete order."""
    ties, constant = t.ties, t.logged.constant is not None
    tests = []
    if constant or crowded:
        if ties.repeats_variance >= _FEWEST / 4.0 and ties.pairs >= FEW_TIED * len(t.logged.survey.log):
            beyond = ties.repeats - ties.usual
            effect = beyond / max(ties.pairs - ties.usual, 1.0)
            z = beyond / math.sqrt(ties.repeats_variance)
            tests.append(_OrderTest("action", "action: equal ones side by side", z, effect))
        for a, label in enumerate(t.logged.survey.log.labels):
            if ties.varied[a] >= _FEWEST:
                moments = ties.shift[a], ties.shift_variance[a], ties.varied[a]
                what = f"action: {label} {_where(ties.shift[a])}"
                tests.append(_OrderTest("action", what, *_shifted(*moments, ties.places)))
    if ties.crowded >= FEW_TIED * len(t.logged.survey.log):
        coordinates = t.logged.coordinates
        for j in np.flatnonzero(ties.value_varied >= _FEWEST).tolist():
            of_context, side = j < len(coordinates), _where(ties.value_shift[j])
            what = f"outcome: conversions {side}"
            if of_context:
                told = coordinates.meaning[j]
                what = f"{told.name}: {side}" if told.without else f"{told.name}: large values {side}"
            shifted = _shifted(ties.value_shift[j], ties.value_variance[j], ties.value_varied[j], ties.crowd_places)
            tests.append(_OrderTest("context" if of_context else "outcome", what, *shifted))
    return tests


def _where(shift: float) -> str:
    return "first" if shift < 0 else "last"


def _shifted(shift: float, variance: float, varied: float, places: float) -> tuple[float, float]:
    """Return z, and the correlation with the place."""
    return float(shift / math.sqrt(variance)), float(abs(shift) / math.sqrt(varied * places))


def _quiet(number: str, numbers: dict[str, float], means: str, p_value: float | None = None) -> CheckResult:
    return CheckResult(name=NAME, verdict="pass", number=number, numbers=numbers, what=means, p_value=p_value)


ORDER_WITHIN_TIES = Check(
    name=NAME,
    finds="files sorted by action, context or outcome within one time",
    run=order_within_ties,
    of_all=True,
)
