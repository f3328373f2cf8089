"""Ties are said to be ties: delays that many share, components of a mixture that are no subpopulation."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.delays.study.fitting import fit_family, narrow_components, spikes
from evaluator.delays.study.options import DelayOptions
from evaluator.delays.study.run import study_rows
from evaluator.log.delay_rows import DelayRows
from evaluator.reports.delays import spike_sentences, tail_sentence

QUICK = DelayOptions(families=["lognormal", "lognormal-mixture-2"], bootstraps=19)


def test_a_spike_is_told_from_the_delays_about_it() -> None:
    people = np.random.default_rng(0).lognormal(9, 1.2, 600).astype(np.int64)
    found = spikes(np.concatenate((people, np.full(300, 3600))), 1)
    assert [spike.delay for spike in found] == [3600]
    assert found[0].share == pytest.approx(1 / 3, abs=0.01)
    assert spikes(people, 1) == ()


@pytest.mark.parametrize("stamp", [60, 3600, 86_400])
def test_coarse_stamps_are_no_spikes(stamp: int) -> None:
    """Nearly every delay is shared by many where stamps are coarse."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        delays = rng.exponential(rng.choice([12, 60, 300]) * stamp, 2000).astype(np.int64) // stamp * stamp
        assert spikes(delays, stamp) == ()


def test_the_spike_of_a_mixture_is_no_subpopulation() -> None:
    rng = np.random.default_rng(1)
    people = rng.lognormal(9, 1.2, 400).astype(np.int64)
    tied = fit_family(np.concatenate((people, np.full(200, 3600))), family="lognormal-mixture-2")
    [spike] = narrow_components(tied)
    assert spike.share == pytest.approx(1 / 3, abs=0.05)
    assert spike.delay == pytest.approx(3600, rel=0.01)
    two = np.concatenate((people, rng.lognormal(5, 0.5, 400).astype(np.int64)))
    assert narrow_components(fit_family(two, family="lognormal-mixture-2")) == ()
    assert narrow_components(fit_family(two, family="lognormal")) == ()


def test_the_study_says_so() -> None:
    people = np.random.default_rng(2).lognormal(9, 1.2, 400).astype(np.int64)
    study = study_rows(DelayRows("log", "s", np.concatenate((people, np.full(200, 3600))), None, None, ""), QUICK)
    assert any("33% of the conversions seen have a delay of exactly 1 h" in line for line in study.sight)
    [said] = spike_sentences(study)
    assert "is a spike at" in said
    assert "no evidence of a subpopulation" in said


@pytest.mark.parametrize(("delay", "stamp", "least"), [(0, 60, 60), (7200, 7200, 7200)])
def test_delays_that_are_all_alike_have_no_law(delay: int, stamp: int, least: float) -> None:
    study = study_rows(DelayRows("log", "s", np.full(80, delay), None, None, "", stamp=stamp), QUICK)
    assert study.choice is None
    assert "no law's shape" in study.missing["laws"]
    assert "no tail" in tail_sentence(study)
    assert study.advice.recommended == least
    assert study.windows[2].share.tau == 1
    assert study.windows[2].share.low == pytest.approx(0.025 ** (1 / 80))
    assert any("All" not in line and "all delays are 0" in line for line in study.sight) == (delay == 0)
    out = study.to_dict()
    assert out["laws"] is None
    assert [q["bounded"] for q in out["quantiles"]] == [True] * 6 + [False]
