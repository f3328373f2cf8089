"""No unit changes what a study of delays finds: not that of time, not that of values, not that of contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import study_delays
from evaluator.delays.study.result import DelayStudy
from evaluator.log import Log
from evaluator.reports.documents import document_of
from evaluator.reports.terminal import text_of
from tests.logs import build_log

DAY = 86_400
LAWS = ["exponential", "lognormal", "lomax", "pareto", "lognormal-mixture-2"]
QUICK: dict[str, Any] = {"windows": ["1h", "1d", "7d", "30d"], "bootstraps": 19, "families": LAWS}


def shop(*, window: int | None, stamp: int = 1, until: bool = True) -> Log:
    """A log of 20 days with a daily rhythm, revenue, several arms and contexts, in seconds; some delays are 0."""
    rng = np.random.default_rng(0)
    n = 3000
    time = rng.integers(0, 20, n) * DAY + np.floor(np.abs(rng.normal(0, 4 * 3600, n))).astype(np.int64) % DAY
    time = np.sort(time)
    delay = np.where(rng.random(n) < 0.05, 0, rng.exponential(2.0 * DAY, n)).astype(np.int64)
    came, time = (time + delay) // stamp * stamp, time // stamp * stamp
    end = 20 * DAY
    seen = (rng.random(n) < 0.4) & ((came <= end) | (not until))
    if window is not None:
        seen &= came - time <= window
    of = np.flatnonzero(seen)
    return build_log(
        time=time, action=rng.integers(0, 3, n), conversion_display=of, conversion_time=came[of], n_actions=3,
        conversion_value=np.round(rng.lognormal(3, 1, len(of)), 2), context=rng.standard_normal((n, 2)), tick="s",
        name="shop", observed_until=end if until else None, attribution_window=window,
    )  # fmt: skip


def rewritten(log: Log, factor: int, tick: str, *, money: float = 100.0, contexts: float = 0.01) -> Log:
    """The log with its times in another unit, its values in cents, its contexts in other units too."""
    x = log.column("context") * contexts
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    tables = {}
    for name, more in (("displays", {"context": vectors}), ("events", {})):
        table = getattr(log, name)
        new = {"time": pa.array(table["time"].to_numpy() * factor), **more}
        if name == "events":
            new["value"] = pa.array(table["value"].to_numpy() * money)
        for column, values in new.items():
            table = table.set_column(table.schema.get_field_index(column), column, values)
        tables[name] = table
    meta = log.meta
    return replace(log, **tables).with_meta(
        tick=tick,
        reward_max=meta.reward_max * money,
        observed_until=None if meta.observed_until is None else meta.observed_until * factor,
        attribution_window=None if meta.attribution_window is None else meta.attribution_window * factor,
    )


def printed(study: DelayStudy) -> list[str]:
    """The report, but for the laws' parameters, which have the unit of the log."""
    text = text_of(document_of(study), width=200)
    return [line.rstrip() for line in text.splitlines() if not line.lstrip().startswith("parameters")]


def sentences(found: Any) -> list[str]:
    """The texts of several words in a result as JSON: durations are said in them, no ticks."""
    if isinstance(found, dict | list | tuple):
        return [text for part in (found.values() if isinstance(found, dict) else found) for text in sentences(part)]
    return [found] if isinstance(found, str) and " " in found else []


KINDS = {
    "window": {"window": 7 * DAY},
    "no window": {"window": None},
    "followed to the end": {"window": None, "until": False},
    "stamps of hours": {"window": 7 * DAY, "stamp": 3600},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_is_the_same_in_any_unit_of_time(kind: str) -> None:
    log = shop(**KINDS[kind])  # type: ignore[arg-type]
    # A mixture takes longer to fit than all the others: on one log.
    families = LAWS if kind == "window" else LAWS[:-1]
    asked = {**QUICK, "families": families, "joint": log.meta.observed_until is not None}
    one = study_delays(log, **asked)
    for factor, tick in ((1000, "ms"), (1_000_000, "us"))[kind != "window" :]:
        other = study_delays(rewritten(log, factor, tick), **asked)
        assert printed(other) == printed(one)
        assert sentences(other.to_dict()) == sentences(one.to_dict())
        same_numbers(one, other, factor)


@pytest.mark.parametrize("factor", [60, 1000])
def test_a_log_of_times_that_are_so_many_times_as_long(factor: int) -> None:
    """Minutes called seconds: all delays are 60 times as long, and every share, test and p-value is the same."""
    log = shop(window=7 * DAY).with_meta(tick="round")
    options = {**QUICK, "windows": ["10", "100", "1000"]}
    one = study_delays(log, joint=True, **options)
    same_numbers(one, study_delays(rewritten(log, factor, "round"), joint=True, **options), factor)


def same_numbers(one: DelayStudy, other: DelayStudy, factor: float) -> None:
    for name in ("naive", "corrected", "low", "high"):
        of_one, of_other = ([getattr(q, name) for q in study.quantiles] for study in (one, other))
        np.testing.assert_array_equal(np.array(of_one) * factor, of_other)
    for name in ("cdf", "low", "high", "band_low", "band_high", "naive"):
        np.testing.assert_array_equal(getattr(one.fit, name), getattr(other.fit, name))
    for a, b in zip(one.windows, other.windows, strict=True):
        assert b.ticks == pytest.approx(a.ticks * factor, rel=1e-12)
        np.testing.assert_equal([b.share.tau, b.share.low, b.share.high], [a.share.tau, a.share.low, a.share.high])
    assert other.advice.recommended == one.advice.recommended * factor
    assert (other.advice.mean or 0) == pytest.approx((one.advice.mean or 0) * factor, rel=1e-9)
    assert one.choice is not None
    assert other.choice is not None
    assert other.choice.verdict == one.choice.verdict
    assert other.choice.goodness.kolmogorov_smirnov_p == one.choice.goodness.kolmogorov_smirnov_p
    ages = np.array([0, 3600, DAY, 6 * DAY])
    for a, b in zip(one.choice.comparison.fits, other.choice.comparison.fits, strict=True):
        assert (a.family, a.aic, a.converged) == (b.family, b.aic, b.converged)
        np.testing.assert_allclose(b.cdf(ages * factor), a.cdf(ages), rtol=1e-9)
        np.testing.assert_allclose(b.quantiles([0.1, 0.9]), factor * a.quantiles([0.1, 0.9]), rtol=1e-9)
        assert b.mean == pytest.approx(a.mean * factor, rel=1e-9)
        relative = [np.nan_to_num(fit.standard_errors.get("scale", 0.0) / fit.mean) for fit in (a, b)]
        assert relative[1] == pytest.approx(relative[0], rel=1e-9)
    assert one.tail is not None
    assert other.tail is not None
    assert other.tail.threshold == one.tail.threshold * factor
    tails = [(t.alpha, t.low, t.high, t.hill, t.distance, t.exceedances) for t in (one.tail, other.tail)]
    assert tails[1] == pytest.approx(tails[0], rel=1e-9)
    assert one.heterogeneity is not None
    assert one.heterogeneity == other.heterogeneity
    for a, b in zip(one.groups, other.groups, strict=True):
        np.testing.assert_array_equal(a.fit.cdf, b.fit.cdf)
    assert one.drift is not None
    assert other.drift is not None
    assert (one.drift.p, one.drift.statistic, one.drift.change_after) == pytest.approx(
        (other.drift.p, other.drift.statistic, other.drift.change_after)
    )
    for a, b in zip(one.drift.days, other.drift.days, strict=True):
        np.testing.assert_array_equal(np.array((a.quantiles, a.low, a.high)) * factor, (b.quantiles, b.low, b.high))
    assert one.rates == other.rates
    assert (one.joint is None) == (other.joint is None)
    if one.joint is not None and other.joint is not None:
        for a, b in ((one.joint.rate, other.joint.rate), (one.joint.immature, other.joint.immature)):
            assert list(vars(b).values()) == pytest.approx(list(vars(a).values()), rel=1e-6)
        assert other.joint.calibration.p == pytest.approx(one.joint.calibration.p, rel=1e-5)
        assert other.joint.mean_delay == pytest.approx(one.joint.mean_delay * factor, rel=1e-6)
    assert other.missing.keys() == one.missing.keys()


def test_fits_that_forget_the_stamp_depend_on_the_unit() -> None:
    """The tempting wrong way: a cell of one tick, whatever the times are multiples of."""
    from evaluator.delays.study.fitting import fit_family

    log = shop(window=None, until=False, stamp=3600)
    rows = study_delays(log, **QUICK).rows
    assert rows.stamp == 3600
    hours = fit_family(rows.delay // 3600, family="lognormal")
    seconds = fit_family(rows.delay, family="lognormal")
    assert abs(float(hours.cdf(0)) - float(seconds.cdf(3599))) > 0.05


def test_stamps_as_coarse_as_the_delays_are_named() -> None:
    rng = np.random.default_rng(8)
    time = np.sort(rng.integers(0, 20 * 86_400, 8000))
    when = time[:4000] + rng.exponential(3600.0, 4000).astype(int)
    of = {"action": [0, 1] * 4000, "n_actions": 2, "conversion_display": np.arange(4000)}
    seconds = build_log(time=time, conversion_time=when, tick="s", **of)
    hours = build_log(time=time // 3600, conversion_time=when // 3600, tick="h", **of)
    quick = {"families": ["geometric"], "bootstraps": 19}
    words = "a delay is known up to one"
    assert not any(words in said for said in study_delays(seconds, **quick).sight)
    # Stamps of hours keep 37 % within the hour and 75 % within the next one, where the truth is 63 % within an hour.
    assert any(words in said and "1 h" in said for said in study_delays(hours, **quick).sight)
