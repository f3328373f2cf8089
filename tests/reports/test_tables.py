"""Every table of a result is Arrow, holds what the result holds, and is taken by polars."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from evaluator import Log

# Rows of each, of the results of the tests' log.
TABLES = {
    "log": {"displays": 3000, "conversions": None, "events": None, "actions": 6, "outcomes": None},
    "replay": {
        "trajectory": None, "estimate_table": 10, "action_table": 6, "outcome_table": 2, "guardrail_table": 1,
        "segment_table": 3,
    },
    "compare": {
        "trajectory": None, "curve_table": None, "variant_table": 6, "difference_table": 5, "window_cost_table": 3,
        "schedule_cost_table": 2, "ranking_table": 6, "test_table": 15, "action_table": 36, "segment_table": 24,
        "segment_difference_table": 20,
    },
    "audit": {"twins": 40, "differences": 20, "live": None, "policy_table": 2, "pair_table": 1},
    "simulate": {"curve_table": None, "policy_table": 2},
    "delays": {
        "cdf_table": None, "quantile_table": 7, "law_table": 2, "window_table": 2, "group_table": 18,
        "group_cdf_table": None, "period_table": None,
    },
    "check": {"check_table": None},
}  # fmt: skip


@pytest.mark.parametrize(("of", "name"), [(of, name) for of, names in TABLES.items() for name in names])
def test_a_table_is_taken_by_polars(of: str, name: str, results: dict[str, Any]) -> None:
    table = getattr(results[of], name)
    assert isinstance(table, pa.Table)
    taken = pl.from_arrow(table)
    assert isinstance(taken, pl.DataFrame)
    assert taken.columns == table.column_names
    assert taken.height == len(table) > 0
    expected = TABLES[of][name]
    assert expected in (None, len(table))
    # A cell that is not there is null, which sums and means pass over, and never nan.
    if name.endswith("_table") and name not in ("cdf_table", "curve_table", "group_cdf_table"):
        floats = taken.select(pl.col(pl.Float64))
        assert not any(column.is_nan().any() for column in floats.iter_columns())


@pytest.mark.parametrize(("of", "name"), [(of, name) for of, names in TABLES.items() for name in names])
def test_a_table_is_taken_by_pandas(of: str, name: str, results: dict[str, Any]) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed, and nothing needs it")
    table = getattr(results[of], name)
    assert list(table.to_pandas().columns) == table.column_names


@pytest.mark.parametrize("of", TABLES)
def test_no_table_of_a_result_is_forgotten(of: str, results: dict[str, Any]) -> None:
    public = {name for name in dir(results[of]) if not name.startswith("_")}
    assert {name for name in public if isinstance(getattr(results[of], name), pa.Table)} == set(TABLES[of])
    kind = type(results[of])
    said = f"{sys.modules[kind.__module__].__doc__} {kind.__doc__}"
    for name in TABLES[of]:
        own = getattr(kind, name, None)
        assert own.__doc__ if isinstance(own, property) else name in said


def test_estimates_are_those_of_the_result(results: dict[str, Any]) -> None:
    result = results["replay"]
    rows = {row["name"]: row for row in result.estimate_table.to_pylist()}
    for name in ("value", "expected_value", "regret", "uplift", "logging_value"):
        assert (rows[name]["estimate"], rows[name]["low"]) == (
            getattr(result, name).estimate,
            getattr(result, name).low,
        )
    assert rows["final_dr"]["n"] == result.final.dr.value.n
    assert result.action_table["share"].to_pylist() == list(result.action_share)


def test_variants_differences_and_ranking_are_those_of_the_comparison(results: dict[str, Any]) -> None:
    found = results["compare"]
    for row, result in zip(found.variant_table.to_pylist(), found.results, strict=True):
        assert (row["policy"], row["window"], row["rounds"]) == (
            result.plan["policy"], result.plan["options"]["window"], result.rounds,
        )  # fmt: skip
        assert (row["value"], row["value_low"], row["regret_high"]) == (
            result.value.estimate, result.value.low, result.regret.high,
        )  # fmt: skip
    for row, of in zip(found.difference_table.to_pylist(), found.differences, strict=True):
        assert (row["variant"], row["reference"]) == (of.variant, of.reference)
        assert row["difference"] == (None if of.realised is None else of.realised.estimate)
    assert found.ranking_table["variant"].to_pylist() == [i for group in found.ranking.groups for i in group]
    assert found.test_table["apart"].to_pylist() == [test.apart for test in found.ranking.tests]


def test_policies_and_pairs_are_those_of_the_audit(results: dict[str, Any]) -> None:
    found = results["audit"]
    [pair] = found.pair_table.to_pylist()
    assert (pair["told_apart"], pair["difference"]) == (found.pairs[0].told_apart, found.pairs[0].difference)
    for row, policy in zip(found.policy_table.to_pylist(), found.policies, strict=True):
        assert (row["bias"], row["value_held"], row["uplift_width"]) == (
            policy.bias, policy.value_coverage.share, policy.uplift_coverage.mean_width,
        )  # fmt: skip


def test_tables_of_delays_are_those_of_the_study(results: dict[str, Any]) -> None:
    study = results["delays"]
    assert study.window_table["keeps"].to_pylist() == [window.share.tau for window in study.windows]
    assert study.law_table["family"].to_pylist() == [fit.family for fit in study.choice.comparison.fits]
    assert study.period_table["seen"].to_pylist() == [rate.seen for rate in study.rates]
    median = study.groups[0].fit.quantiles([0.5])[0]
    assert study.group_table.to_pylist()[1]["corrected"] == median
    assert set(study.group_cdf_table["group"].to_pylist()) == {group.label for group in study.groups}


def test_regret_of_a_simulation_is_that_of_its_last_round(results: dict[str, Any]) -> None:
    found = results["simulate"]
    last = pl.from_arrow(found.curve_table).filter(pl.col("round") == found.horizon)["regret"]
    np.testing.assert_array_equal(found.policy_table["regret"].to_numpy(), last.to_numpy())
    assert found.policy_table["generated"].to_pylist() == [curve.conversions["generated"] for curve in found.curves]


def test_findings_are_those_of_the_check(results: dict[str, Any], log: Log) -> None:
    report = results["check"]
    assert report.check_table["verdict"].to_pylist() == [finding.verdict for finding in report.checks]
    assert report.check_table["name"].to_pylist()[0] == "replay of the logger"
