"""The conversion rate corrected on context: by hand, against known truth, and the same from disk as from memory."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

from evaluator import study_delays
from evaluator.delays.study import joint_rate as joint_study
from evaluator.delays.study.joint_rate import calibrate, fit_joint, study_joint
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.results.json_documents import plain_values
from tests.logs import bernoulli_log, build_log

QUICK = {"families": ["geometric"], "bootstraps": 19, "by": None}
W, V = np.array([0.8, -0.5, -1.5]), np.array([-0.4, 0.7, -7.0])


def young_log(
    n: int, *, seed: int, window: int | None = None, stop: int | None = None, pace: int = 1
) -> tuple[Log, np.ndarray]:
    """A log of `pace` displays a round that stops looking at round `stop`, and which displays convert (in the window).

    Both the probability of a conversion and the rate of its delay depend on the context.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 2))
    design = np.column_stack((x, np.ones(n)))
    delay = np.floor(rng.exponential(np.exp(-(design @ V)))).astype(np.int64)
    converts = rng.random(n) < expit(design @ W)
    if window is not None:
        converts &= delay <= window
    time = np.arange(n) // pace
    until = n // pace if stop is None else stop
    of = np.flatnonzero(converts & (time + delay <= until))
    log = build_log(
        time=time, action=rng.integers(0, 2, n), conversion_display=of, conversion_time=(time + delay)[of],
        n_actions=2, context=x, observed_until=until, attribution_window=window,
    )  # fmt: skip
    return log, converts


@pytest.mark.parametrize("window", [None, 1500])
def test_the_corrected_rate_is_right_where_the_naive_one_is_wrong(window: int | None) -> None:
    log, converts = young_log(40_000, seed=1, window=window, pace=5)
    found = study_joint(log)
    assert found.fit.converged
    assert abs(found.rate.corrected - converts.mean()) <= 3 * found.rate.error
    assert found.rate.naive < converts.mean() - 10 * found.rate.error
    assert found.rate.naive == log.conversions.num_rows / 40_000
    # Young are the displays of the last `window` rounds, or as many as the longest delay seen.
    longest = window or int((log.conversions["time"].to_numpy() - log.conversions["display_id"].to_numpy() // 5).max())
    assert found.immature.displays == 5 * (longest - 1)
    young = converts[-found.immature.displays :].mean()
    assert abs(found.immature.corrected - young) <= 3 * found.immature.error
    assert found.immature.naive < young - 10 * found.immature.error
    # The rate is log-linear in the contexts; the average display's is that of their mean.
    average = math.exp(-(V[2] + V[:2] @ np.array(log.column("context")).mean(axis=0)))
    error = average * math.sqrt(found.fit.covariance[-1, -1])
    assert abs(found.mean_delay - average) <= 4 * error


def test_standard_errors_are_those_of_repetition() -> None:
    drawn, z = 60, []
    for seed in range(drawn):
        log, converts = young_log(3000, seed=100 + seed, window=1200)
        rate = study_joint(log).rate
        z.append((rate.corrected - converts.mean()) / rate.error)
    assert abs(np.mean(z)) <= 4 / math.sqrt(drawn)
    assert abs(np.var(z) - 1) <= 4 * math.sqrt(2 / drawn)


def test_the_error_is_the_slope_of_the_rate_and_the_luck_of_the_silent() -> None:
    log, _ = young_log(2000, seed=2, window=900)
    x = log.column("context")
    elapsed = np.minimum(2000 - np.arange(2000), 900)
    delay = np.full(2000, -1)
    of = log.conversions["display_id"].to_numpy()
    delay[of] = log.conversions["time"].to_numpy() - of
    fit = fit_joint(x, delay, elapsed)
    for within in (np.inf, 900, 1500):
        slope = []
        for unit in np.eye(6) * 1e-5:
            up, down = (
                replace(fit, conversion=fit.conversion + s * unit[:3], rate=fit.rate + s * unit[3:]) for s in (1, -1)
            )
            rise = up.corrected_rate(x, delay, elapsed, within=within)
            slope.append((rise - down.corrected_rate(x, delay, elapsed, within=within)) / 2e-5)
        pending = fit.pending_probability(x, elapsed, within=within)[delay < 0]
        variance = slope @ fit.covariance @ slope + (pending * (1 - pending)).sum() / 2000**2
        assert fit.corrected_error(x, delay, elapsed, within=within) == pytest.approx(math.sqrt(variance), rel=1e-6)
    # No conversion is later than the window of a display that is as old.
    assert fit.pending_probability(x, elapsed, within=900)[elapsed == 900].max() == 0


def test_pending_by_hand() -> None:
    fit = fit_joint(np.empty((4, 0)), [0, 3, -1, -1], [9, 9, 2, 5])
    p, mean = fit.conversion_probability(np.empty((1, 0)))[0], fit.mean_delay(np.empty((1, 0)))[0]
    late, later = p * math.exp(-3 / mean), p * math.exp(-8 / mean)
    found = fit.pending_probability(np.empty((1, 0)), [2], within=7)[0]
    assert found == pytest.approx((late - later) / (1 - p + late))


def test_the_first_conversion_of_a_display_counts() -> None:
    log, _ = young_log(2000, seed=3, window=1000)
    of, time = (log.conversions[name].to_numpy() for name in ("display_id", "time"))
    twice = pa.table({"display_id": np.repeat(of, 2), "time": np.stack((time, np.full(len(of), 2000))).T.ravel()})
    twice = twice.append_column("value", pa.array(np.ones(2 * len(of))))
    assert plain_values(study_joint(replace(log, events=twice))) == plain_values(study_joint(log))


def test_a_sample_is_evenly_spaced_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    log, converts = young_log(20_000, seed=4, window=1500)
    monkeypatch.setattr(joint_study, "JOINT_ROWS", 5000)
    found = study_joint(log)
    assert (found.displays, found.fit.displays) == (20_000, 5000)
    assert found.fit.conversions == np.isin(log.conversions["display_id"].to_numpy(), np.arange(0, 20_000, 4)).sum()
    assert any("fitted to 5,000 of the displays" in note for note in found.notes)
    assert abs(found.rate.corrected - converts.mean()) <= 3 * found.rate.error
    # Most of the error is that of the sample now.
    assert found.rate.error**2 > found.rate.corrected * (1 - found.rate.corrected) / 5000 * 0.75
    monkeypatch.setattr(joint_study, "_MOST_NUMBERS", 2 * 3000)
    assert study_joint(log).fit.displays == 3000


def test_columns_that_add_up_or_never_change_alter_nothing() -> None:
    log, _ = young_log(3000, seed=5, window=1000)
    x = log.column("context")
    more = np.column_stack((x[:, 0] * 1e6, x, 1.0 - x.sum(axis=1), np.full(3000, 0.1)))
    at = log.displays.schema.get_field_index("context")
    wide = pa.FixedSizeListArray.from_arrays(pa.array(more.ravel()), more.shape[1])
    found = study_joint(replace(log, displays=log.displays.set_column(at, "context", wide)))
    same = study_joint(log)
    assert found.fit.converged
    assert found.fit.conversion.shape == (3,)
    assert found.rate.corrected == pytest.approx(same.rate.corrected, rel=1e-7)
    assert found.rate.error == pytest.approx(same.rate.error, rel=1e-6)
    assert found.mean_delay == pytest.approx(same.mean_delay, rel=1e-6)


def test_contexts_that_never_convert_give_no_endless_slope() -> None:
    log, _ = young_log(2000, seed=6, window=800)
    rare = np.isin(np.arange(2000), log.conversions["display_id"].to_numpy()[::2])
    at = log.displays.schema.get_field_index("context")
    alone = pa.FixedSizeListArray.from_arrays(pa.array(rare.astype(float)), 1)
    found = study_joint(replace(log, displays=log.displays.set_column(at, "context", alone)))
    assert found.fit.converged
    assert np.abs(found.fit.conversion[:-1]).max() < 5
    assert found.rate.low <= found.rate.corrected <= found.rate.high


def test_a_stored_log_gives_what_the_log_in_memory_gives(tmp_path: Path) -> None:
    log, _ = young_log(3000, seed=7, window=1000)
    write_canonical(log, tmp_path)
    stored = study_delays(open_canonical(tmp_path), joint=True, **QUICK)
    memory = study_delays(log, joint=True, **QUICK)
    assert stored.to_dict() == memory.to_dict()
    out = memory.to_dict()
    assert json.loads(json.dumps(out, allow_nan=False)) == out
    assert out["joint"]["attribution_window"] == 1000
    assert out["joint"]["rate"]["corrected"] > out["joint"]["rate"]["naive"]
    assert out["options"]["joint"]
    assert study_delays(log, **QUICK).to_dict()["joint"] is None


def test_what_has_no_rate_to_correct_is_refused() -> None:
    log, _ = young_log(500, seed=8)
    with pytest.raises(ParameterError, match=r"`joint`: log 'test' has no contexts.*context columns"):
        study_delays(bernoulli_log(500, [0.5, 0.4], mean_delay=20, seed=0), joint=True)
    with pytest.raises(ParameterError, match=r"`joint`.*follows every display to its end.*observed_until"):
        study_delays(log.with_meta(observed_until=None), joint=True)
    all_of_them = build_log(
        time=[0, 1], action=[0, 1], conversion_display=[0, 1], conversion_time=[0, 1], n_actions=2,
        context=np.zeros((2, 1)), observed_until=5,
    )  # fmt: skip
    with pytest.raises(DataError, match="2 of 2 displays converted"):
        study_joint(all_of_them)


def test_a_log_of_old_displays_has_no_immature_ones() -> None:
    log, converts = young_log(4000, seed=9, window=300, stop=4400)
    found = study_joint(log)
    assert found.immature.displays == 0
    assert math.isnan(found.immature.corrected)
    assert study_delays(log, joint=True, **QUICK).to_dict()["joint"]["immature"]["corrected"] is None
    assert found.rate.corrected == found.rate.naive == converts.mean()
    assert found.rate.error == 0


def test_cohorts_are_the_rates_of_their_displays_alone() -> None:
    log, converts = young_log(20_000, seed=5, window=1500, pace=5)
    study = study_delays(log, joint=True, **QUICK)
    found = study.joint
    assert found is not None
    assert study.rows.periods is not None
    assert [rate.period for rate in found.cohorts] == list(range(10))
    assert sum(rate.displays for rate in found.cohorts) == 20_000
    seen = [rate.naive for rate in found.cohorts]
    np.testing.assert_allclose(seen, [rate.seen for rate in study.rates])
    total = sum(rate.displays * rate.corrected for rate in found.cohorts) / 20_000
    assert total == pytest.approx(found.rate.corrected, rel=1e-12)
    for rate in found.cohorts:
        own = converts[2000 * rate.period : 2000 * (rate.period + 1)]
        assert abs(rate.corrected - own.mean()) <= 4 * rate.error
    assert seen[-1] < found.cohorts[9].corrected - 10 * found.cohorts[9].error
    document = study.to_dict()["joint"]
    assert [cohort["period"] for cohort in document["cohorts"]] == list(range(10))
    assert len(document["calibration"]["by_rate"]) == 10


def test_calibration_by_hand() -> None:
    p, age = np.array([0.1, 0.1, 0.4, 0.4]), np.array([1, 9, 1, 9])
    share = np.array([0.5, 1.0, 0.5, 1.0])
    found = calibrate(p, share, age.astype(float), np.array([False, True, False, True]))
    low, high = found.by_rate
    assert (low.displays, low.seen, low.low, low.high) == (2, 1, 0.1, 0.1)
    assert low.expected == pytest.approx(0.15)
    assert low.error == pytest.approx(math.sqrt(0.05 * 0.95 + 0.1 * 0.9))
    assert high.expected == pytest.approx(0.6)
    assert [part.expected for part in found.by_age] == pytest.approx([0.25, 0.5])
    furthest = (2 - 0.5) / math.sqrt(0.1 * 0.9 + 0.4 * 0.6)
    assert found.worst[0] == "age"
    assert found.p == pytest.approx(4 * math.erfc(furthest / math.sqrt(2)))


def test_calibration_holds_for_the_model_and_tells_another_law() -> None:
    drawn = 100
    rejected = 0
    for seed in range(drawn):
        rejected += not study_joint(young_log(3000, seed=500 + seed, window=1000)[0]).calibration.holds
    # At most 5 % by Bonferroni's inequality.
    assert rejected / drawn <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / drawn)
    # Delays that are short or long, whatever the context: no exponential law.
    rng = np.random.default_rng(6)
    n = 20_000
    delay = rng.exponential(np.where(rng.random(n) < 0.5, 20.0, 3000.0)).astype(np.int64)
    time = np.arange(n) // 5
    of = np.flatnonzero((rng.random(n) < 0.4) & (time + delay <= n // 5) & (delay <= 2000))
    log = build_log(
        time=time, action=rng.integers(0, 2, n), conversion_display=of, conversion_time=(time + delay)[of],
        n_actions=2, context=rng.standard_normal((n, 2)), observed_until=n // 5,
        attribution_window=2000,
    )  # fmt: skip
    assert study_joint(log).calibration.p < 1e-6


def test_what_a_calibration_could_have_found() -> None:
    found = calibrate(np.full(1000, 0.2), np.ones(1000), np.ones(1000), np.arange(1000) < 200)
    # Two parts, of all displays each: Bonferroni's normal quantile at 1 - .05 / 4, and at .8.
    assert found.detectable == pytest.approx((2.2414 + 0.8416) * math.sqrt(1000 * 0.16) / 200, rel=1e-4)
    rng = np.random.default_rng(0)
    converts = rng.random((1000, 1000)) < 0.2 * (1 + found.detectable)
    noticed = np.mean([not calibrate(np.full(1000, 0.2), np.ones(1000), np.ones(1000), row).holds for row in converts])
    # The variance of a higher rate is higher: 80 %, or a little more or less.
    assert abs(noticed - 0.8) <= 4 * math.sqrt(0.16 / 1000) + 0.02


@pytest.mark.parametrize("unit", [60, 1_000_000])
def test_no_unit_changes_the_rate(unit: int) -> None:
    log, _ = young_log(3000, seed=10, window=1000)
    one, other = study_joint(log), study_joint(in_units(log, unit, 1e-3))
    for name in ("naive", "corrected", "error", "low", "high"):
        assert getattr(other.rate, name) == pytest.approx(getattr(one.rate, name), rel=1e-6)
        assert getattr(other.immature, name) == pytest.approx(getattr(one.immature, name), rel=1e-6)
    assert other.calibration.p == pytest.approx(one.calibration.p, rel=1e-5)
    assert other.mean_delay == pytest.approx(unit * one.mean_delay, rel=1e-6)


def in_units(log: Log, ticks: int, contexts: float) -> Log:
    """The log with times that many times as large, its contexts and the values of its conversions in another unit."""
    x = log.column("context") * contexts
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    displays = log.displays.set_column(log.displays.schema.get_field_index("context"), "context", vectors)
    for table in ("displays", "events"):
        of = displays if table == "displays" else log.events
        at = of.schema.get_field_index("time")
        of = of.set_column(at, "time", pa.array(of["time"].to_numpy() * ticks))
        log = replace(log, **{table: of})
    meta = log.meta
    window = None if meta.attribution_window is None else meta.attribution_window * ticks
    return log.with_meta(observed_until=meta.observed_until * ticks, attribution_window=window)


def test_few_conversions_and_short_follow_up_withhold_the_rate() -> None:
    """A rate of .06 % by 29 conversions in hashed contexts came out at 7.2 %; now none is given, and it is said why."""
    rng = np.random.default_rng(11)
    n = 48_000
    hashed = np.zeros((n, 32))
    hashed[np.arange(n), rng.zipf(1.5, n) % 32] = 1.0
    of = np.sort(rng.choice(n, 29, replace=False))
    time = np.arange(n)
    delay = rng.integers(0, 100, 29)
    log = build_log(
        time=time, action=np.zeros(n, int), conversion_display=of, conversion_time=time[of] + delay, n_actions=2,
        context=hashed, observed_until=n + 100,
    )  # fmt: skip
    with pytest.raises(DataError, match=r"29 of the displays converted; the model needs 3\d0 for contexts of 3\d"):
        study_joint(log)
    study = study_delays(log, joint=True, **QUICK)
    assert study.joint is None
    assert "29 of the displays converted" in study.missing["joint"]
    # Delays of mean 1,100 in a log of 1,500 rounds.
    with pytest.raises(DataError, match="later than any display was followed"):
        study_joint(young_log(7500, seed=12, pace=5)[0])
