"""The truth file says what the data was drawn from."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.reading.criteo.conftest import ROWS, Twin

SIGMAS = 4
# 4 standard errors of one number; of the largest of m, a normal tail of 6e-5 / m.
MANY = 5.5


# Journeys are drawn independently, their rows are not, and the longest journeys have no normal tail: tests count rows
# of journeys up to the 99th percentile of their law.
SHORT = 11


@pytest.fixture(scope="module")
def cells(twin: Twin) -> pl.DataFrame:
    """Counts by context and campaign beside the truth.

    ``len`` displays, ``short`` rows of short journeys, ``reward`` last rows of all journeys, ``p`` probability of
    the cell.
    """
    contexts = twin.truth["contexts"]
    lookup = pl.DataFrame(
        [(c["context"], c["cat1"], v) for c in contexts for v in c["cat4"]],
        schema=["context", "cat1", "cat4"],
        orient="row",
    )
    last = (pl.col("conversion") == 1) & (pl.col("click_pos") == pl.col("click_nb") - 1)
    short = (pl.col("conversion") == 1) & (pl.col("click_nb") <= SHORT)
    rows = twin.frame.join(lookup, on=["cat1", "cat4"], how="left").with_columns(reward=last, short=short)
    assert rows["context"].null_count() == 0
    counts = rows.group_by("context", "campaign").agg(pl.len(), pl.col("conversion", "short", "reward").sum())
    share = pl.DataFrame({"context": [c["context"] for c in contexts], "share": [c["share"] for c in contexts]})
    both = twin.table.join(share, on="context").with_columns(p=pl.col("propensity") * pl.col("share"))
    return both.join(counts, on=["context", "campaign"], how="left").with_columns(
        pl.col("len", "conversion", "short", "reward").fill_null(0)
    )


def test_propensities_are_distributions(twin: Twin) -> None:
    sums = twin.table.group_by("context").agg(pl.col("propensity").sum())["propensity"]
    np.testing.assert_allclose(sums, 1, rtol=1e-9)
    assert twin.table["propensity"].min() > 0


def test_propensities_agree_with_the_file(twin: Twin, cells: pl.DataFrame) -> None:
    """One row a conversion, which are independent: 1 - q + q / (rows per conversion) of each cell's displays."""
    once = twin.truth["rewards_per_converted_row"]
    q = pl.col("conversion_rate")
    kept = cells.with_columns(
        n=pl.col("len") - pl.col("conversion") + pl.col("reward"), weight=pl.col("propensity") * (1 - q + q * once)
    )
    total = pl.col("n").sum().over("context")
    kept = kept.with_columns(total=total, share=pl.col("weight") / pl.col("weight").sum().over("context"))
    kept = kept.filter(pl.col("total") * pl.col("share") > 100)
    assert kept.height > 100
    n, p = kept["total"], kept["share"]
    error = (kept["n"] - n * p) / (n * p * (1 - p)).sqrt()
    assert error.abs().max() < MANY


@pytest.mark.parametrize("by", ["context", "campaign"])
@pytest.mark.parametrize(("outcome", "rate"), [("short", "conversion_rate"), ("reward", "reward_rate")])
def test_rates_agree_with_the_file(twin: Twin, cells: pl.DataFrame, by: str, outcome: str, rate: str) -> None:
    sizes = twin.conversions["rows"]
    short = sizes.filter(sizes <= SHORT)
    part, size = (short.sum() / sizes.sum(), (short**2).sum() / short.sum()) if outcome == "short" else (1, 1)
    expected = (pl.col("p") * pl.col(rate)).sum() * ROWS * part
    groups = cells.group_by(by).agg(pl.col(outcome).sum(), expected=expected).filter(pl.col("expected") > 50)
    assert groups.height >= 10
    error = (groups[outcome] - groups["expected"]) / (groups["expected"] * size).sqrt()
    assert error.abs().max() < MANY


def test_campaigns_keep_their_sizes_and_rates(twin: Twin) -> None:
    share = pl.DataFrame([{"context": c["context"], "weight": c["share"]} for c in twin.truth["contexts"]])
    joint = twin.table.join(share, on="context").with_columns((pl.col("propensity") * pl.col("weight")).alias("p"))
    found = joint.group_by("campaign", maintain_order=True).agg(
        pl.col("p").sum(), ((pl.col("p") * pl.col("conversion_rate")).sum() / pl.col("p").sum()).alias("q")
    )
    stated = pl.DataFrame(twin.truth["campaigns"])
    np.testing.assert_allclose(found["p"], stated["share"], rtol=1e-9)
    np.testing.assert_allclose(found["q"], stated["conversion_rate"], rtol=1e-9)
    top = [0.104, 0.048, 0.017, 0.063, 0.033, 0.144, 0.058, 0.104, 0.049, 0.055]
    np.testing.assert_allclose(stated["conversion_rate"][:10], top, rtol=0.02)
    assert joint["p"].sum() == pytest.approx(1)
    assert (joint["p"] * joint["conversion_rate"]).sum() == pytest.approx(twin.converted.height / ROWS)


def test_click_rates(twin: Twin) -> None:
    """All converted rows are clicked; of the others of a campaign, what is left of its clicks."""
    found = twin.others.group_by("campaign").agg(pl.len(), pl.col("click").sum())
    both = pl.DataFrame(twin.truth["campaigns"]).join(found, on="campaign").filter(pl.col("len") > 500)
    p = (both["click_rate"] - both["conversion_rate"]) / (1 - both["conversion_rate"])
    error = (both["click"] - both["len"] * p) / (both["len"] * p * (1 - p)).sqrt()
    assert error.abs().max() < MANY


def test_delay_cdf(twin: Twin) -> None:
    law = twin.truth["delay"]
    below = [(twin.converted["delay"] <= s).mean() for s in law["seconds"]]
    # Stratified, and rounded to seconds: at most half a second of the steepest knots.
    np.testing.assert_allclose(below, law["cdf"], atol=1 / twin.converted.height + 0.0008)
    last = twin.converted.filter(pl.col("click_pos") == pl.col("click_nb") - 1)["delay"]
    np.testing.assert_allclose([(last <= s).mean() for s in law["seconds"]], law["last_click_cdf"], atol=1e-12)


def test_the_best_campaign_depends_on_the_context(twin: Twin) -> None:
    contexts = twin.truth["contexts"]
    assert len({c["best_of_top"] for c in contexts}) >= 3
    assert len({c["best_campaign"] for c in contexts}) >= 3
    top = twin.truth["top"]
    assert top["logged_value"] < top["best_fixed_value"] < 0.9 * top["best_by_context_value"]


def test_stated_bests_are_those_of_the_table(twin: Twin) -> None:
    for context in twin.truth["contexts"]:
        rows = twin.table.filter(pl.col("context") == context["context"]).sort("reward_rate", descending=True)
        assert context["best_campaign"] == rows["campaign"][0]
        assert context["best_reward_rate"] == pytest.approx(rows["reward_rate"][0])
        top = rows.filter(pl.col("campaign").is_in(twin.truth["top"]["campaigns"]))
        assert context["best_of_top"] == top["campaign"][0]


def test_context_signal_is_in_the_file(twin: Twin, cells: pl.DataFrame) -> None:
    """Score test: rewards of a campaign lean to its good contexts, as much as stated and not by chance."""
    mean = pl.DataFrame(twin.truth["campaigns"]).select("campaign", pl.col("reward_rate").alias("mean"))
    both = cells.join(mean, on="campaign")
    lift = both["reward_rate"] - both["mean"]
    score = (lift * (both["reward"] - both["len"] * both["mean"])).sum()
    deviation = np.sqrt((lift**2 * both["len"] * both["mean"]).sum())  # were there no signal
    assert score > SIGMAS * deviation
    expected = (lift**2 * both["len"]).sum()
    assert abs(score - expected) < SIGMAS * np.sqrt((lift**2 * both["len"] * both["reward_rate"]).sum())
