"""A comparison's variants, differences and ranking as Arrow tables; variants are numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from evaluator.comparisons.curves import VariantCurve
from evaluator.comparisons.differences import Difference
from evaluator.comparisons.ranking import Ranking
from evaluator.replays.result import ReplayResult
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, VARIANT, arrow_table, interval_cells, interval_columns

_DIFFERENCE = {
    "variant": VARIANT,
    "reference": VARIANT,
    **interval_columns("difference"),
    "n": COUNT,
    "p": NUMBER,
    **interval_columns("expected_difference"),
    "expected_p": NUMBER,
    **interval_columns("weighted_difference"),
    "weighted_p": NUMBER,
    "why_not": TEXT,
}


def variant_table(results: Sequence[ReplayResult], baseline: int) -> pa.Table:
    """Return one row a variant: what it is, its rounds, and its values with their intervals."""
    values = ("value", "expected_value", "regret", "uplift")
    columns = {
        "variant": VARIANT, "policy": TEXT, "window": TEXT, "window_rounds": COUNT, "rounds": COUNT, "delivered": COUNT,
        **interval_columns(*values), "is_baseline": FLAG,
    }  # fmt: skip
    rows = [
        {
            "variant": i,
            "policy": result.plan["policy"],
            "window": None if result.plan["window_rounds"] is None else str(result.plan["options"]["window"]),
            "window_rounds": result.plan["window_rounds"],
            "rounds": result.rounds,
            "delivered": result.delivered,
            **{key: cell for name in values for key, cell in interval_cells(name, getattr(result, name)).items()},
            "is_baseline": i == baseline,
        }
        for i, result in enumerate(results)
    ]
    return arrow_table(columns, rows)


def difference_table(differences: Iterable[Difference]) -> pa.Table:
    """Return one row a difference: variant less reference per round, in these runs, as expected, and weighted."""
    return arrow_table(_DIFFERENCE, map(_cells, differences))


def test_table(ranking: Ranking) -> pa.Table:
    """Return one row a tested difference, with the p-value adjusted for all tests and whether it is told from 0."""
    rows = ({**_cells(t.difference), "p_adjusted": t.adjusted, "apart": t.apart} for t in ranking.tests)
    return arrow_table({**_DIFFERENCE, "p_adjusted": NUMBER, "apart": FLAG}, rows)


def ranking_table(ranking: Ranking, curves: Sequence[VariantCurve]) -> pa.Table:
    """Return one row a ranked variant, best first within each group of variants that can be compared."""
    columns = {"variant": VARIANT, "group": COUNT, "value": NUMBER, "ahead_of": pa.list_(VARIANT)}
    rows = [
        {
            "variant": i,
            "group": number,
            "value": float(curves[i].value.estimate[-1]),
            "ahead_of": list(ranking.ahead_of[i]),
        }
        for number, group in enumerate(ranking.groups)
        for i in group
    ]
    return arrow_table(columns, rows)


def _cells(of: Difference) -> dict[str, object]:
    return {
        "variant": of.variant,
        "reference": of.reference,
        **interval_cells("difference", of.realised),
        "n": None if of.realised is None else of.realised.n,
        "p": of.p,
        **interval_cells("expected_difference", of.expected),
        "expected_p": of.expected_p,
        **interval_cells("weighted_difference", None if of.weighted is None else of.weighted.value),
        "weighted_p": None if of.weighted is None else of.weighted.p,
        "why_not": of.why_not or None,
    }
