"""Whether rows are copied, or stand in an order: displays logged twice, conversions on several displays, sorted ties.

More pairs of rows that are the same but for their numbers than chance makes are copies or repeats. Of displays that
share a time nothing is known of the order in which they were shown, so under any honest rule all orders are equally
likely. Vectors that many displays share should convert, and no column of theirs should dwarf the others.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from evaluator.checks.coordinates import SHARE, hashes
from evaluator.checks.counters import CROWD, NEAR_S, NEIGHBOURS, EqualRowPairs
from evaluator.checks.result import POWER_Z, SERIOUS, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.significance import homogeneity, normal_tail, p_words, poisson_tail, upper_normal_quantile
from evaluator.checks.tables import Floats, Ints, Tables
from evaluator.estimates.simultaneous import holm
from evaluator.log.schema import to_numpy
from evaluator.log.vectors_of_displays import DWARFING, display_vectors, dwarfing_column
from evaluator.units import ROUND

# Shares of rows in pairs beyond chance: of displays that matter; of conversions that matter, and that bias a value.
DISPLAYS, CONVERSIONS, MANY_CONVERSIONS = 0.002, 0.01, 0.1
# Share of the displays that are copies from which it matters.
COPIES = 0.002
# Near displays of one vector, a display, among which copies are lost.
CROWDED = 0.75 * NEIGHBOURS
# P-value above which shares do not change from period to period.
_NO_DRIFT = 1e-3
# Below this share of displays that share their time, their order changes no decision; nor does an order by which places
# are shifted less than this (correlation), or neighbours are alike less than this beyond chance.
FEW_TIED, WEAK = 0.05, 0.05
# Sums over fewer displays are not normal enough to be tested; their fourth part bounds the variance of neighbours.
_FEWEST = 25.0
# A rate below this share of that of all other displays is no rate of a visitor: contexts differ, but not by so much.
DEAD = 0.1


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
    within = f"{found.near} rounds" if seconds is None else f"{NEAR_S:g} s"
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
        return not_applicable("no two displays share a time")
    if share < FEW_TIED:
        return _quiet(f"{share:.1%} of the displays share their time", numbers, "Too few for their order to matter.")
    tests = _tests(t, crowd >= CROWD)
    if not tests:
        return not_applicable("too few displays share a time, or they are all alike, for a test")
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
        verdict=verdict, number=f"{what}, effect {effect:.2f}, p {p_words(p)}; {many}", statistic=z, p_value=p,
        effect=effect, numbers={**numbers, "where": what},
        what=f"Displays with one time stand in the file in an order that goes with their {by} ({what}): the file was "
        "sorted after the fact, or its times are cut too coarsely. A replay takes the order of the file for that of "
        "time: it meets such displays in long runs, accepts few of them, and delays counted in displays are artefacts.",
        remedy="Give times as fine as they were logged. Otherwise let chance order the displays of one time: leave out "
        'ties = "file" under [time] of the spec, or pass a Log made by hand through evaluator.log.shuffle_ties.',
    )  # fmt: skip


class _OrderTest(NamedTuple):
    by: Literal["action", "context", "outcome"]
    what: str
    z: float
    effect: float


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
    return CheckResult(verdict="pass", number=number, numbers=numbers, what=means, p_value=p_value)


def vectors_without_conversions(t: Tables, level: float) -> CheckResult:
    """Test that every frequent vector converts at a tenth of the rate of the others at least (Poisson, Holm).

    Where vectors are visitors, some of whom buy often and others never, a dead one is no exception: it is none either
    where a gamma law with the spread of the other frequent vectors' rates makes such a rate a usual one.
    """
    from scipy.special import gammaincc

    vectors = t.vectors
    if t.logged.coordinates.column is None:
        return not_applicable("the log has no context by which a visitor could be told")
    judged, converted = vectors.judged, vectors.converted
    # Without any conversion, the tail is exp(-a tenth of the usual ones).
    needed = math.log((len(vectors.codes) + 1) / level) / (DEAD * max(float(converted.sum()), 1.0))
    if not len(vectors.codes):
        return CheckResult(
            verdict="pass", number=f"no vector has {SHARE:.0%} of the displays",
            what="No vector has a good share of the displays.", shows=_least_shown(max(needed, SHARE)),
        )  # fmt: skip
    others = (converted.sum() - converted[:-1]) / np.maximum(judged.sum() - judged[:-1], 1.0)
    usual = judged[:-1] * others
    # P(Poisson of a tenth of the usual <= what is seen).
    adjusted = holm(gammaincc(converted[:-1] + 1.0, DEAD * usual))
    adjusted = np.maximum(adjusted, _usual_among(converted[:-1], usual))
    dead = adjusted <= level
    share = float(vectors.shown[:-1][dead].sum() / len(t.logged.survey.log))
    worst = int(np.lexsort((-usual, adjusted))[0])
    p, many = float(adjusted[worst]), int(dead.sum())
    wrong = many > 0
    least = float((converted[:-1] / np.maximum(usual, 1e-300)).min())
    numbers = {
        "vectors": len(vectors.codes), "without_conversions": many, "share": share, "lowest_ratio": least,
        "conversions": float(converted[worst]), "usual_conversions": float(usual[worst]),
    }  # fmt: skip
    return CheckResult(
        verdict="warn" if wrong else "pass", statistic=least, p_value=p, effect=share, numbers=numbers,
        shows=_least_shown(max(needed, SHARE)),
        number=f"{many} of {len(vectors.codes)} frequent vectors ({share:.1%} of displays), smallest p {p_words(p)}",
        what=(f"{'One vector has' if many == 1 else f'{many} vectors have'} {share:.1%} of the displays and hardly a "
               f"conversion: the largest has {converted[worst]:.0f} conversions where "
               f"{usual[worst]:.0f} are usual. That is a robot, a test account, or a group that cannot buy: every "
               "value is too low by it, and a contextual policy learns it as if it were a context." if wrong else
               "No vector that many displays share goes without conversions."),
        remedy="Look up these displays at the source, and leave them out if no one is to be shown anything there."
        if wrong else "",
    )  # fmt: skip


def _usual_among(converted: Floats, usual: Floats) -> Floats:
    """Return the chance that one of the vectors converts at a tenth of the usual rate, by the spread of the others.

    Shape (V,), at most 1; 0 where fewer than two others tell a spread.
    """
    from scipy.special import gammainc

    ratio, noise = converted / np.maximum(usual, 1e-300), 1.0 / np.maximum(usual, 1e-300)
    out = np.zeros(len(ratio))
    for v in range(len(ratio)):
        others = (np.arange(len(ratio)) != v) & (usual >= 1.0)
        if others.sum() >= 2:
            mean = float(ratio[others].mean())
            spread = (float(ratio[others].var(ddof=1)) - float(noise[others].mean())) / max(mean**2, 1e-300)
            if spread > 0.0:
                out[v] = min(len(ratio) * float(gammainc(1.0 / spread, DEAD / spread)), 1.0)
    return out


def _least_shown(share: float) -> str:
    # With a margin of a standard error or two: a share of the displays is not quite one of the conversions.
    return f"a vector with {1.1 * share:.1%} of the displays and no conversion" if share < 0.5 else ""


def column_scales(t: Tables) -> CheckResult:
    """Say whether a column's numbers are `DWARFING` times as large as another's or more."""
    log = t.logged.survey.log
    if display_vectors(log) is None:
        return not_applicable("the log has no vectors")
    found = dwarfing_column(log)
    if found is None:
        return CheckResult(
            verdict="pass", number=f"below {DWARFING:g} times", numbers={"times": None},
            what="No column's numbers dwarf those of another.",
        )  # fmt: skip
    return CheckResult(
        verdict="warn", number=f"{found.largest} {found.times:,.3g} times {found.smallest}",
        effect=found.times, numbers={"times": found.times},
        what=f"Numbers of {found.largest} are {found.times:,.3g} times as large as those of {found.smallest}. Linear "
        "policies regularise and explore in one unit for all, so they learn little from the smaller ones, or from what "
        "changes within the larger.",
        remedy=found.remedy,
    )  # fmt: skip


DUPLICATED_DISPLAYS = Check(
    name="duplicated displays", finds="displays logged twice, beyond what chance makes", run=duplicated_displays
)
SHARED_CONVERSIONS = Check(
    name="shared conversions", finds="one conversion written on several displays", run=shared_conversions
)
NEAR_COPIES = Check(
    name="near copies", finds="displays logged again some seconds later, beyond what chance makes", run=near_copies
)
ORDER_WITHIN_TIES = Check(
    name="order within ties", finds="files sorted by action, context or outcome within one time", run=order_within_ties,
    of_all=True,
)  # fmt: skip
DEAD_VECTORS = Check(
    name="vectors without conversions",
    finds="a robot: 1 % of the displays or more, at less than a tenth of the usual rate",
    run=vectors_without_conversions,
)
COLUMN_SCALES = Check(
    name="scales of columns", finds="dates, incomes, ids in units that hide the other columns from a linear policy",
    run=column_scales, tested=False,
)  # fmt: skip
