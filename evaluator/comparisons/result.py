"""Several policies and windows on one log and how they differ: the result of a comparison, and its tables.

Variants are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from evaluator.checks.run import CheckReport
from evaluator.comparisons.differences import Difference
from evaluator.comparisons.segment_differences import SegmentDifferences, segment_difference_table
from evaluator.comparisons.variants import CommonHorizon, VariantCurve, VariantInputs, curve_table, learns_text
from evaluator.comparisons.verdict import Ranking, TestedDifference, Verdict
from evaluator.findings.finding import Finding, WithFindings
from evaluator.replays.result import ReplayResult
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import Count, JsonDocument, called, in_document, several
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, VARIANT, Columns, table_of

# What a table has of each difference; and below, of each that was tested.
_DIFFERENCE: Columns[Difference] = {
    "variant": (VARIANT, lambda of: of.variant),
    "reference": (VARIANT, lambda of: of.reference),
    "difference": (None, lambda of: of.realised),
    "n": (COUNT, lambda of: None if of.realised is None else of.realised.n),
    "p": (NUMBER, lambda of: of.p),
    "expected_difference": (None, lambda of: of.expected),
    "expected_p": (NUMBER, lambda of: of.expected_p),
    "weighted_difference": (None, lambda of: None if of.weighted is None else of.weighted.value),
    "weighted_p": (NUMBER, lambda of: None if of.weighted is None else of.weighted.p),
    "why_not": (TEXT, lambda of: of.why_not or None),
}


def _of_test(of: Callable[[Difference], Any]) -> Callable[[TestedDifference], Any]:
    return lambda test: of(test.difference)


_TEST: Columns[TestedDifference] = {
    **{name: (kind, _of_test(of)) for name, (kind, of) in _DIFFERENCE.items()},
    "p_adjusted": (NUMBER, lambda test: test.adjusted),
    "apart": (FLAG, lambda test: test.apart),
}


@dataclass(frozen=True)
class Comparison(JsonDocument, ShownInNotebooks, WithFindings):
    """Results of several replays of one log, and how they differ: of evaluate compare --json.

    Variants are numbered from 0, policy by policy, within it window by window, and there schedule by schedule.

    To keep it, as ``evaluate compare --out`` does: ``json.dumps(found.to_dict())`` is its ``result.json``, and
    ``pyarrow.parquet.write_table(found.curve_table, ...)`` its ``curves.parquet``.

    Parameters
    ----------
    results
        Results of the variants in their order, the first of which is number 0, each what `evaluator.replay` gives for
        it alone; but answers to guardrails are adjusted for the number of variants, too.
    horizon
        Number of rounds at which all are compared, and why it is this number.
    baseline
        Number of the variant that the others are compared with.
    differences
        Difference of every other variant to the baseline, each with intervals of its own.
    ranking
        Variants by their value at the horizon, and which differences are told from 0, tested together: of the expected
        values where a bootstrap was run, else of these runs.
    window_costs
        Difference of each variant to the same policy with the widest window.
    schedule_costs
        Difference of each variant to the same policy with the same window that learns at each event.
    curves
        Value and regret of every variant up to the horizon.
    assumed
        Facts that the policy of every variant was told.
    findings
        What to read of the comparison, beside those of each result, before the numbers.
    segments
        Difference of every other variant to the baseline in the groups of each column that ``by`` named; none without.
    verdict
        Ship, wait or don't, by the rule that was stated before the run; None of a single variant.
    check
        Check of the log; None where no number decides on any variant.
    """

    schema: ClassVar[str] = "evaluate.compare/3"

    results: Annotated[tuple[ReplayResult, ...], called("variants"), several]
    horizon: CommonHorizon
    baseline: Count
    differences: tuple[Difference, ...]
    ranking: Ranking
    window_costs: tuple[Difference, ...]
    schedule_costs: tuple[Difference, ...]
    curves: tuple[VariantCurve, ...]
    assumed: tuple[VariantInputs, ...]
    findings: tuple[Finding, ...]
    segments: tuple[SegmentDifferences, ...] = ()
    verdict: Verdict | None = None
    check: CheckReport | None = None

    @in_document
    @property
    def dataset(self) -> str:
        """Name of the log."""
        return self.results[0].dataset

    @property
    def trajectory(self) -> pa.Table:
        """Every variant's rounds, with its number in ``variant``."""
        return _numbered([result.trajectory for result in self.results])

    @property
    def variant_table(self) -> pa.Table:
        """One row a variant: policy, window, what teaches, rounds, events delivered, value, regret, uplift, ends."""
        columns: Columns[tuple[int, ReplayResult]] = {
            "variant": (VARIANT, lambda one: one[0]),
            "policy": (TEXT, lambda one: one[1].plan["policy"]),
            "window": (TEXT, lambda one: _window(one[1].plan)),
            "window_rounds": (COUNT, lambda one: one[1].plan["window_rounds"]),
            "learn_from": (TEXT, lambda one: one[1].plan["options"]["learn_from"]),
            "learns": (TEXT, lambda one: learns_text(one[1])),
            "rounds": (COUNT, lambda one: one[1].rounds),
            "delivered": (COUNT, lambda one: one[1].delivered),
            "value": (None, lambda one: one[1].value),
            "expected_value": (None, lambda one: one[1].expected_value),
            "regret": (None, lambda one: one[1].regret),
            "uplift": (None, lambda one: one[1].uplift),
            "is_baseline": (FLAG, lambda one: one[0] == self.baseline),
        }
        return table_of(columns, enumerate(self.results))

    @property
    def difference_table(self) -> pa.Table:
        """`differences`, one row each: variant, reference, difference and its ends, n, p, and the same as expected."""
        return table_of(_DIFFERENCE, self.differences)

    @property
    def window_cost_table(self) -> pa.Table:
        """`window_costs` in the columns of `difference_table`."""
        return table_of(_DIFFERENCE, self.window_costs)

    @property
    def schedule_cost_table(self) -> pa.Table:
        """`schedule_costs` in the columns of `difference_table`."""
        return table_of(_DIFFERENCE, self.schedule_costs)

    @property
    def ranking_table(self) -> pa.Table:
        """One row a variant, best first: variant, group, value at the horizon, and the variants that it is ahead of."""
        columns: Columns[tuple[int, int]] = {
            "variant": (VARIANT, lambda one: one[1]),
            "group": (COUNT, lambda one: one[0]),
            "value": (NUMBER, lambda one: float(self.curves[one[1]].value.estimate[-1])),
            "ahead_of": (pa.list_(VARIANT), lambda one: list(self.ranking.ahead_of[one[1]])),
        }
        return table_of(columns, ((number, i) for number, group in enumerate(self.ranking.groups) for i in group))

    @property
    def test_table(self) -> pa.Table:
        """The tests of the ranking: the columns of `difference_table`, p_adjusted, and whether they are apart."""
        return table_of(_TEST, self.ranking.tests)

    @property
    def segment_table(self) -> pa.Table:
        """Every variant's value, uplift and logged mean in each group, with its number in ``variant``."""
        return _numbered([result.segment_table for result in self.results])

    @property
    def segment_difference_table(self) -> pa.Table:
        """`segments`, one row a variant, column and group: difference and its ends, n and level."""
        return segment_difference_table(self.segments)

    @property
    def action_table(self) -> pa.Table:
        """Share of the rounds of each action: variant, action, label, share."""
        return _numbered([result.action_table for result in self.results])

    @property
    def curve_table(self) -> pa.Table:
        """Value and regret with bands, one row a variant and checkpoint."""
        return curve_table(self.curves)

    def __repr__(self) -> str:
        said = self.ranking.conclusion if self.verdict is None else self.verdict.sentence
        return "\n".join([*map(repr, self.results), said])


def _numbered(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the variants' tables as one, with the number of each in ``variant``."""
    numbered = (t.add_column(0, "variant", pa.array([i] * len(t), pa.int32())) for i, t in enumerate(tables))
    return pa.concat_tables(numbered)


def _window(plan: Mapping[str, Any]) -> str | None:
    return None if plan["window_rounds"] is None else str(plan["options"]["window"])
