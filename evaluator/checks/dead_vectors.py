"""Vectors that many displays have and hardly any converts with, and columns so large that they dwarf others."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evaluator.checks.coordinates import SHARE
from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.estimates.simultaneous import holm
from evaluator.log.vectors_of_displays import DWARFING, display_vectors, dwarfing_column

Floats = npt.NDArray[np.float64]

NAME = "vectors without conversions"
# A rate below this share of that of all other displays is no rate of a visitor: contexts differ, but not by so much.
DEAD = 0.1
_SCALES = "scales of columns"


def vectors_without_conversions(t: Tables, level: float) -> CheckResult:
    """Test that every frequent vector converts at a tenth of the rate of the others at least (Poisson, Holm).

    Where vectors are visitors, some of whom buy often and others never, a dead one is no exception: it is none either
    where a gamma law with the spread of the other frequent vectors' rates makes such a rate a usual one.
    """
    from scipy.special import gammaincc

    vectors = t.vectors
    if t.logged.coordinates.column is None:
        return not_applicable(NAME, "the log has no context by which a visitor could be told")
    judged, converted = vectors.judged, vectors.converted
    # Without any conversion, the tail is exp(-a tenth of the usual ones).
    needed = math.log((len(vectors.codes) + 1) / level) / (DEAD * max(float(converted.sum()), 1.0))
    if not len(vectors.codes):
        return CheckResult(
            name=NAME, verdict="pass", number=f"no vector has {SHARE:.0%} of the displays",
            what="No vector has a good share of the displays.", shows=_shown_by(max(needed, SHARE)),
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
        name=NAME, verdict="warn" if wrong else "pass", statistic=least, p_value=p, effect=share, numbers=numbers,
        shows=_shown_by(max(needed, SHARE)),
        number=f"{many} of {len(vectors.codes)} frequent vectors ({share:.1%} of displays), smallest p {p_words(p)}",
        what=(f"{_share_words(many, share)}: the largest has {converted[worst]:.0f} conversions where "
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


def _shown_by(share: float) -> str:
    # With a margin of a standard error or two: a share of the displays is not quite one of the conversions.
    return f"a vector with {1.1 * share:.1%} of the displays and no conversion" if share < 0.5 else ""


def _share_words(many: int, share: float) -> str:
    if many == 1:
        return f"One vector has {share:.1%} of the displays and hardly a conversion"
    return f"{many} vectors have {share:.1%} of the displays and hardly a conversion"


DEAD_VECTORS = Check(
    name=NAME,
    finds="a robot: 1 % of the displays or more, at less than a tenth of the usual rate",
    run=vectors_without_conversions,
)


def column_scales(t: Tables) -> CheckResult:
    """Say whether a column's numbers are `DWARFING` times as large as another's or more."""
    log = t.logged.survey.log
    if display_vectors(log) is None:
        return not_applicable(_SCALES, "the log has no vectors")
    found = dwarfing_column(log)
    if found is None:
        return CheckResult(
            name=_SCALES, verdict="pass", number=f"below {DWARFING:g} times", numbers={"times": None},
            what="No column's numbers dwarf those of another.",
        )  # fmt: skip
    return CheckResult(
        name=_SCALES, verdict="warn", number=f"{found.largest} {found.times:,.3g} times {found.smallest}",
        effect=found.times, numbers={"times": found.times},
        what=f"Numbers of {found.largest} are {found.times:,.3g} times as large as those of {found.smallest}. Linear "
        "policies regularise and explore in one unit for all, so they learn little from the smaller ones, or from what "
        "changes within the larger.",
        remedy=found.remedy,
    )  # fmt: skip


COLUMN_SCALES = Check(
    name=_SCALES,
    finds="dates, incomes, ids in units that hide the other columns from a linear policy",
    run=column_scales,
    tested=False,
)
