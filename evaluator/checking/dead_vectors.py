"""Vectors of many displays that hardly ever convert: a robot, a test account, a group that cannot buy."""

from __future__ import annotations

import math

import numpy as np

from evaluator.checking.finding import Finding, not_applicable
from evaluator.checking.propensities import p_words
from evaluator.checking.significance import holm
from evaluator.checking.tables import Tables
from evaluator.checking.vectors import SHARE

NAME = "vectors without conversions"
# A rate below this share of that of all other displays is no rate of a visitor: contexts differ, but not by so much.
DEAD = 0.1


def vectors_without_conversions(t: Tables, level: float) -> Finding:
    """Test that every frequent vector converts at a tenth of the rate of the others at least (Poisson, Holm)."""
    from scipy.special import gammaincc

    vectors = t.vectors
    if t.logged.coordinates.column is None:
        return not_applicable(NAME, "the log has no context by which a visitor could be told")
    judged, converted = vectors.judged, vectors.converted
    # Without any conversion, the tail is exp(-a tenth of the usual ones).
    needed = math.log((len(vectors.codes) + 1) / level) / (DEAD * max(float(converted.sum()), 1.0))
    if not len(vectors.codes):
        return Finding(
            name=NAME, verdict="pass", number=f"no vector has {SHARE:.0%} of the displays",
            means="No vector has a good share of the displays.", shows=_shown_by(max(needed, SHARE)),
        )  # fmt: skip
    others = (converted.sum() - converted[:-1]) / np.maximum(judged.sum() - judged[:-1], 1.0)
    usual = judged[:-1] * others
    # P(Poisson of a tenth of the usual <= what is seen).
    adjusted = holm(gammaincc(converted[:-1] + 1.0, DEAD * usual))
    dead = adjusted <= level
    share = float(vectors.shown[:-1][dead].sum() / len(t.logged.survey.log))
    worst = int(np.lexsort((-usual, adjusted))[0])
    p, many = float(adjusted[worst]), int(dead.sum())
    wrong = many > 0
    least = float(judged[worst] and converted[worst] / max(usual[worst], 1e-300))
    numbers = {
        "vectors": len(vectors.codes), "without_conversions": many, "share": share, "lowest_ratio": least,
        "conversions": float(converted[worst]), "usual_conversions": float(usual[worst]),
    }  # fmt: skip
    return Finding(
        name=NAME, verdict="warn" if wrong else "pass", statistic=least, p_value=p, effect=share, numbers=numbers,
        shows=_shown_by(max(needed, SHARE)),
        number=f"{many} of {len(vectors.codes)} frequent vectors ({share:.1%} of displays), smallest p {p_words(p)}",
        means=(f"{_share_words(many, share)}: the largest has {converted[worst]:.0f} conversions where "
               f"{usual[worst]:.0f} are usual. That is a robot, a test account, or a group that cannot buy: every "
               "value is too low by it, and a contextual policy learns it as if it were a context." if wrong else
               "No vector that many displays share goes without conversions."),
        do="Look up these displays at the source, and leave them out if no one is to be shown anything there."
        if wrong else "",
    )  # fmt: skip


def _shown_by(share: float) -> str:
    # With a margin of a standard error or two: a share of the displays is not quite one of the conversions.
    return f"a vector with {1.1 * share:.1%} of the displays and no conversion" if share < 0.5 else ""


def _share_words(many: int, share: float) -> str:
    if many == 1:
        return f"One vector has {share:.1%} of the displays and hardly a conversion"
    return f"{many} vectors have {share:.1%} of the displays and hardly a conversion"
