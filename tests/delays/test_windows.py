"""Windows: shares and their intervals, the mean that exists or not, the recommendation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.fitting import fit_family
from evaluator.delays.study.window_advice import advise_window, window_shares
from evaluator.errors import ParameterError


def test_shares_are_those_of_the_fit() -> None:
    delays = np.random.default_rng(0).geometric(0.01, 2000) - 1
    fit = fit_nonparametric(delays, longest=400)
    short, none, all_of_it, beyond = window_shares(fit, [100, 0.5, 400, 1000])
    used = delays[delays <= 400]
    assert short.tau == pytest.approx((used <= 100).mean())
    assert short.low < short.tau < short.high
    assert short.lost == 1 - short.tau
    assert short.slowdown == 1 / short.tau
    assert none.tau == pytest.approx((used == 0).mean())
    assert (all_of_it.tau, all_of_it.identified, beyond.identified) == (1, True, False)
    assert math.isnan(beyond.tau)  # of what the log did not look at nothing is known


def test_a_window_beyond_the_last_delay_is_not_sure_to_keep_all() -> None:
    """Where nothing was cut off, n of n conversions within a window bound its share from below, and no more."""
    delays = np.random.default_rng(3).exponential(10, 50)
    [share] = window_shares(fit_nonparametric(delays), [1000])
    assert (share.tau, share.high, share.identified) == (1, 1, True)
    assert share.low == pytest.approx(0.025 ** (1 / 50))
    advice = advise_window(fit_nonparametric(delays[:20]), share=0.9)
    assert advice.recommended == delays[:20].max()
    assert "no window is sure to keep 90%" in advice.reason


def test_the_recommended_window_is_the_shortest_that_surely_keeps_enough() -> None:
    delays = np.random.default_rng(1).geometric(0.01, 5000) - 1
    fit = fit_nonparametric(delays, 5000)
    advice = advise_window(fit, [100, 200], share=0.8)
    at = advice.recommended
    assert fit.interval(at)[0] >= 0.8 > fit.interval(at - 1)[0]
    assert "keeps 80% of the conversions at 95% confidence" in advice.reason
    assert [share.window for share in advice.windows] == [100, 200]
    assert advice.mean == pytest.approx(delays.mean())
    assert "given one of at most 5,000 ticks" in advice.mean_source
    assert advice.twice_mean == 2 * advice.mean


def test_few_conversions_recommend_all_there_is() -> None:
    advice = advise_window(fit_nonparametric([1, 5, 9], 20), share=0.9)
    assert advice.recommended == 20
    assert "no shorter window is sure" in advice.reason


def test_a_mean_may_not_exist() -> None:
    rng = np.random.default_rng(2)
    heavy = rng.pareto(0.6, 3000)
    fit = fit_nonparametric(heavy)
    advice = advise_window(fit, law=fit_family(heavy, family="lomax"))
    assert advice.mean is advice.twice_mean is None
    assert advice.mean_source == "the fitted lomax law has no mean"
    light = rng.exponential(7, 3000)
    law = fit_family(light, family="exponential")
    assert advise_window(fit_nonparametric(light), law=law).twice_mean == pytest.approx(2 * light.mean(), rel=1e-6)


def test_impossible_requests_are_refused() -> None:
    fit = fit_nonparametric([1, 2])
    with pytest.raises(ParameterError, match="A window is -1"):
        window_shares(fit, [-1])
    with pytest.raises(ParameterError, match="A window is nan"):
        window_shares(fit, [math.nan])
    with pytest.raises(ParameterError, match="share is 1"):
        advise_window(fit, share=1)
