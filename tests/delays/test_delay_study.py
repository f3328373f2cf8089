"""The study of delays: by hand, against known truth, and the same from disk as from memory."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator import load, study_delays
from evaluator.delays.study.result import DelayStudy
from evaluator.errors import DataError, ParameterError, UnknownNameError
from evaluator.log import Log
from evaluator.log.delay_rows import delay_rows
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.reports.delay_charts import cdf_chart
from evaluator.reports.delays import drift_verdict
from tests.logs import bernoulli_log, build_log
from tests.reading.sources import dataset

QUICK = {"families": ["geometric"], "bootstraps": 19}
DAY = 86_400


def cut(log: Log, until: int, *, window: int | None = None) -> Log:
    """What a log holds that stops looking at a time, and at each display after a window."""
    time = log.conversions["time"].to_numpy()
    seen = time <= until
    if window is not None:
        seen &= time - log.column("time")[log.conversions["display_id"].to_numpy()] <= window
    kept = replace(log, events=log.conversions.filter(pa.array(seen)))
    return kept.with_meta(observed_until=until, attribution_window=window)


# Displays at 0, 10, 20, 30 followed until 40, at most 25: limits 25, 25, 20, 10.
BY_HAND = build_log(
    time=[0, 10, 20, 30],
    action=[0, 1, 1, 0],
    conversion_display=[0, 1, 3],
    conversion_time=[3, 12, 35],
    n_actions=2,
    tick="h",
    observed_until=40,
    attribution_window=25,
)


def test_rows_by_hand() -> None:
    rows = delay_rows(BY_HAND)
    assert rows.delay.tolist() == [3, 2, 5]
    assert rows.limit is not None
    assert rows.limit.tolist() == [25, 25, 10]
    assert rows.group is not None
    assert rows.group.tolist() == ["a0", "a1", "a0"]
    assert (rows.displays, rows.rate) == (4, 3 / 30)
    assert delay_rows(BY_HAND.with_meta(attribution_window=None)).limit.tolist() == [40, 30, 10]  # type: ignore[union-attr]
    assert delay_rows(BY_HAND.with_meta(observed_until=None)).limit.tolist() == [25, 25, 25]  # type: ignore[union-attr]
    assert delay_rows(BY_HAND.with_meta(observed_until=None, attribution_window=None)).limit is None


def test_study_by_hand() -> None:
    study = study_delays(BY_HAND, windows=["3h", "25h", "2d", 1])
    assert study.fit.cdf.tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    shares = [(w.ticks, w.rounds, round(w.share.tau, 3), w.share.identified) for w in study.windows]
    assert shares == [
        (3, pytest.approx(0.3), 0.667, True),
        (25, 2.5, 1, True),
        (48, pytest.approx(4.8), pytest.approx(float("nan"), nan_ok=True), False),
        (10, 1, 1, True),
    ]
    assert study.to_dict()["windows"][2]["share"]["tau"] is None
    assert any("conditional on delay <= 1.04 d" in line for line in study.sight)
    assert set(study.missing) >= {"laws", "tail", "drift", "heterogeneity"}


def test_periods_are_days_where_there_are_days() -> None:
    time = np.arange(0, 5 * DAY, 3600)
    of = [0, 30, 31, 119]
    log = build_log(
        time=time, action=np.arange(120) % 2, conversion_display=of, conversion_time=time[of], n_actions=2, tick="s"
    )
    periods = delay_rows(log).periods
    assert periods is not None
    assert (periods.name, periods.of.tolist(), periods.displays.tolist()) == ("day", [0, 1, 1, 4], [24] * 5)
    parts = delay_rows(log.with_meta(tick="round")).periods
    assert parts is not None
    assert (parts.name, parts.of.tolist(), parts.displays.tolist()) == ("tenth", [0, 2, 2, 9], [12] * 10)


def test_corrected_quantiles_are_right_where_the_naive_ones_are_wrong() -> None:
    # Geometric delays of mean 800 on {0, 1, ...}; displays are spread over the 5,000 rounds before the log's end.
    whole = bernoulli_log(5000, [0.5, 0.5], mean_delay=800, seed=1)
    study = study_delays(cut(whole, 5000), windows=[500, 1000], **QUICK)
    ratio = 800 / 801
    truth = lambda m: (1 - ratio ** (m + 1)) / (1 - ratio ** (study.fit.longest + 1))  # noqa: E731
    for window in study.windows:
        share = window.share
        # The interval is asymmetric; its half on the truth's side is the normal quantile times the standard error.
        z = 1.959964
        error = (share.tau - share.low) / z if truth(window.ticks) < share.tau else (share.high - share.tau) / z
        assert abs(share.tau - truth(window.ticks)) < 4 * error
        n = study.conversions
        naive = np.mean(study.rows.delay <= window.ticks)
        assert naive - truth(window.ticks) > 4 * np.sqrt(naive * (1 - naive) / n)
    assert study.choice is not None
    mean = study.choice.comparison.best_fit.parameters["mean"]
    assert abs(mean - 800) < 4 * study.choice.comparison.best_fit.standard_errors["mean"]


def test_conversion_rates_of_young_periods_are_corrected() -> None:
    study = study_delays(cut(bernoulli_log(20_000, [0.4, 0.4], mean_delay=1500, seed=2), 20_000), **QUICK)
    last = study.rates[8]
    assert last.corrected is not None
    # Seen by Poisson-like counts c, each weighed by up to 1 / LEAST_SEEN = 5.
    error = 5 * np.sqrt(last.conversions) / last.displays
    assert abs(last.corrected - 0.4) < 4 * error
    assert last.seen < 0.4 - 4 * np.sqrt(0.4 * 0.6 / last.displays)
    assert study.rates[9].corrected is None


def test_arms_with_other_delays_are_found() -> None:
    rng = np.random.default_rng(0)
    action = rng.integers(0, 4, 2000)
    delay = rng.geometric(1 / np.where(action < 2, 60, 20))
    log = build_log(
        time=np.arange(2000), action=action, conversion_display=np.arange(2000),
        conversion_time=np.arange(2000) + delay, n_actions=4,
    )  # fmt: skip
    test = study_delays(log, **QUICK).heterogeneity
    assert test is not None
    assert test.p == 1 / 1000
    found = {frozenset((pair.first, pair.second)) for pair in test.pairs if pair.adjusted_p <= test.level}
    # Means of 500 delays each are 60 and 20, 15 standard errors apart: none of these can be missed.
    assert found >= {frozenset((one, other)) for one in ("a0", "a1") for other in ("a2", "a3")}


def test_small_groups_are_pooled() -> None:
    p = np.array([0.4, 0.3, 0.2, 0.05, 0.03, 0.02])
    log = bernoulli_log(3000, [0.3] * 6, mean_delay=20, seed=3, logger=p)
    study = study_delays(log, groups=2, **QUICK)
    assert [group.label for group in study.groups] == ["a0", "a1", "(pooled)"]
    assert study.groups[-1].members == ("a2", "a3", "a4", "a5")
    assert sum(group.conversions for group in study.groups) == study.conversions


def test_a_law_that_mostly_extrapolates_gives_no_mean() -> None:
    log = cut(bernoulli_log(3000, [0.5, 0.5], mean_delay=2000, seed=4), 3000)
    advice = study_delays(log, **QUICK).advice
    assert advice.mean is not None
    assert advice.mean < 1500
    assert "given one of at most" in advice.mean_source
    whole = study_delays(bernoulli_log(3000, [0.5, 0.5], mean_delay=2000, seed=4), **QUICK).advice
    assert whole.mean_source == "mean of the fitted geometric law"


@pytest.mark.parametrize("actions", [None, "a0,a2"])
def test_a_stored_log_gives_what_the_log_in_memory_gives(tmp_path: Path, actions: str | None) -> None:
    log = cut(bernoulli_log(3000, [0.5, 0.3, 0.4], mean_delay=300, seed=5), 3000, window=1000)
    write_canonical(log, tmp_path)
    stored = study_delays(open_canonical(tmp_path, actions=actions), **QUICK)
    if actions is None:
        assert stored.to_dict() == study_delays(log, **QUICK).to_dict()
    else:
        rows = delay_rows(log)
        mine = np.isin(rows.group, ["a0", "a2"])  # type: ignore[arg-type]
        np.testing.assert_array_equal(stored.rows.delay, rows.delay[mine])


def test_groups_of_another_column() -> None:
    log = bernoulli_log(2000, [0.5, 0.3], mean_delay=30, seed=6)
    country = pa.array(np.where(np.arange(2000) % 3 == 0, "fr", "de"))
    log = replace(log, displays=log.displays.append_column("country", country))
    study = study_delays(log, by="country", **QUICK)
    assert [group.label for group in study.groups] == ["de", "fr"]
    for column, said in (("region", r"it keeps action, country"), ("propensity", "keeps no column 'propensity'")):
        with pytest.raises(ParameterError, match=said):
            study_delays(log, by=column)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"windows": ["7d"]}, "counts rounds"),
        ({"windows": ["0"]}, "out of range"),
        ({"windows": ["soon"]}, "counts rounds"),
        ({"level": 1.0}, "`level=1`"),
        ({"share": 0.0}, "`share=0`"),
        ({"groups": 1}, "`groups=1`"),
        ({"bootstraps": 3}, "`bootstraps=3`"),
        ({"families": []}, "`families` is empty"),
    ],
)
def test_options_out_of_range(options: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        study_delays(load("synthetic", limit=300), **options)


def test_what_cannot_be_studied() -> None:
    with pytest.raises(UnknownNameError, match="did you mean weibull"):
        study_delays(load("synthetic", limit=300), families=["weibul"])
    with pytest.raises(DataError, match="has no conversions"):
        study_delays(build_log(time=[0, 1], action=[0, 1], n_actions=2))


@pytest.mark.parametrize("delays", [[0], [0, 0, 0], [5], [0, 7]])
def test_few_conversions_are_no_error(delays: list[int]) -> None:
    n = len(delays)
    log = build_log(
        time=np.arange(n), action=np.arange(n) % 2, conversion_display=np.arange(n),
        conversion_time=np.arange(n) + delays, n_actions=2,
    )  # fmt: skip
    study = study_delays(log)
    assert study.conversions == n
    assert study.to_dict()["schema"] == "evaluate.delays/1"


def test_twin_reproduces_published_quantiles(shared_data: Path, tmp_path: Path) -> None:
    """A twin's delays follow the published quantiles, to 1 % and what chance adds at this size.

    Rows of one conversion share its time, so that the effective number of delays is at least that of conversions, and a
    quantile at level q has standard error sqrt(q (1 - q) / n) / f in time, 1 / f being the slope of the quantiles.
    """
    from evaluator.datasets import make

    file = tmp_path / "twin.tsv.gz"
    make("criteo_twin", file, rows=300_000, seed=0)
    study: DelayStudy = study_delays(load("criteo_twin", path=file, deduplicate="all"), by=None, **QUICK)
    with (shared_data / "criteo_attribution" / "delay_summary.csv").open() as stream:
        published = next(csv.DictReader(stream))
    n = len(np.unique(study.rows.delay)) / 2
    for level, name in ((0.25, "p25"), (0.5, "median"), (0.75, "p75"), (0.9, "p90"), (0.99, "p99")):
        truth = float(published[f"{name}_seconds"])
        error = np.sqrt(level * (1 - level) / n)
        least, found, most = study.fit.quantiles([max(level - 4 * error, 1e-3), level, min(level + 4 * error, 1.0)])
        assert least * 0.99 <= truth <= most * 1.01, (name, least, found, most, truth)


def test_what_de_duplication_does_is_said(tmp_path: Path) -> None:
    """Each conversion is logged on both clicks before it: the last one keeps it, unless the log ends before."""
    lines = ["t,ad,sold,key,click"]
    for i in range(300):
        lines += [f"{i},a,{i + 40},{i},1", f"{i},b,,{i},1"]
        if i >= 30:
            lines.append(f"{i},a,{i + 10},{i - 30},1")
    shop = dataset(tmp_path, lines, conversion={"key": ["key"], "deduplicate": "last_click", "click": "click"})
    study = study_delays(str(shop), **QUICK)
    assert study.rows.deduplicated == 270
    assert any("270 more rows of the same conversions were dropped" in said for said in study.sight)
    assert study.drift is not None
    assert study.drift.changed
    assert "de-duplication alone can do this" in str(drift_verdict(study))
    whole = study_delays(load(shop, deduplicate="all"), **QUICK)
    assert (whole.rows.deduplicated, whole.rows.shared) == (0, True)
    assert any("not independent" in said for said in whole.sight)
    plain = study_delays(load("synthetic", limit=300), **QUICK)
    assert not any("same conversion" in said for said in plain.sight)


def test_the_picture_goes_on_beyond_the_last_delay_with_its_band() -> None:
    whole = bernoulli_log(300, [0.3, 0.3], mean_delay=40, seed=7)
    for log in (whole, cut(whole, 300)):
        study = study_delays(log, **QUICK)
        [values] = (rows for rows in cdf_chart(study)["datasets"].values() if "cdf" in rows[0])
        end = 2 * study.fit.delays[-1] if np.isinf(study.fit.longest) else study.fit.longest
        assert values[-1]["delay"] == end > study.fit.delays[-1]
        assert values[-1]["low"] == pytest.approx(study.fit.low[-1], abs=1e-6)
        assert values[-1]["low"] < values[-1]["cdf"] == 1
