"""What ``--delays`` gives policies: the same of a law and of a file, in a replay and in a simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluator import simulate
from evaluator.api import plan
from evaluator.delays.cdf import DelayCDF
from evaluator.delays.fit_file import save_fit
from evaluator.delays.laws import CDF_STEPS, given_cdf, parse_law
from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.fitting import fit_family
from evaluator.errors import DataError, ParameterError
from tests.logs import bernoulli_log

LOG = bernoulli_log(4000, [0.5, 0.3], mean_delay=30.0, seed=1)
DELAYS = np.random.default_rng(0).geometric(1 / 50, 2000)


def no_files(tick: str) -> float:
    raise AssertionError(tick)


def told(**options: str | int) -> DelayCDF:
    cdf = plan(LOG, "delayed-ucb", **options).setting.delay_cdf
    assert cdf is not None
    return cdf


@pytest.mark.parametrize("text", ["uniform:0:100", "poisson:50", "half-normal:50", "pareto:0.7", "exponential:50"])
def test_a_replay_takes_every_law(text: str) -> None:
    ages = np.arange(1000)
    off = parse_law(text)(ages) - told(delays=text, window=1000)(ages)
    # What policies are told is low by less than a step.
    assert (off >= -1e-12).all()
    assert (off < 1 / CDF_STEPS).all()


def test_on_the_wall_clock_a_law_counts_logged_displays() -> None:
    # Accepted are half of the displays, so that a delay of up to 100 displays takes up to 50 rounds.
    slow = told(delays="uniform:0:100", clock="wall")
    assert slow.delays[-1] == 50
    # Within half a round of 2 displays, each 1/101.
    assert abs(slow(25) - 51 / 101) <= 1 / 101
    assert told(delays="uniform:0:100", traffic_share=0.5).delays[-1] == 100


def test_scaling_loses_no_step_within_reach() -> None:
    for reach in (3, 10, 33):
        near = given_cdf("uniform:0:400", reach=reach, ticks_per_round=no_files, share=0.3)
        far = given_cdf("uniform:0:400", reach=400, ticks_per_round=no_files, share=0.3)
        np.testing.assert_array_equal(near(np.arange(reach + 1)), far(np.arange(reach + 1)))


@pytest.mark.parametrize("kind", ["steps", "law"])
def test_a_simulation_takes_a_fit_in_rounds(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "fit.json"
    fit = fit_nonparametric(DELAYS) if kind == "steps" else fit_family(DELAYS, family="geometric")
    save_fit(file, fit, tick="round")
    words = {"runs": 3, "horizon": 800, "window": 100}
    found = simulate("vernade2017-low", "delayed-ucb", delays=str(file), **words)
    assert found.told.startswith(fit.source if kind == "steps" else "geometric law fitted to 2,000 delays")
    if kind == "law":
        same = f"geometric:{fit.parameters['mean']!r}:{int(fit.parameters['start'])}"
        word = simulate("vernade2017-low", "delayed-ucb", delays=same, **words)
        np.testing.assert_allclose(found.curves[0].regret, word.curves[0].regret)
    other = simulate("vernade2017-low", "delayed-ucb", delays="fixed:0", **words)
    assert (found.curves[0].regret != other.curves[0].regret).any()


@pytest.mark.parametrize(("end", "said"), [(0.75, True), (1.0, False)])
def test_what_becomes_of_the_rest_is_said(tmp_path: Path, end: float, said: bool) -> None:
    """Of a CDF that ends below 1: in a replay's assumptions, and in what a simulation says of its delays."""
    words = "it ends below 1: 25% of the conversions never come"
    file = tmp_path / "fit.json"
    steps = {"delays": [1, 9, 40], "cdf": [0.25, 0.5, end]}
    table = {"schema": "delay-fit/1", "tick": "round", "longest": None, "law": None, "source": "by hand"}
    file.write_text(json.dumps({**table, "steps": steps}))
    # Cut short by a window, a CDF ends below 1 too: that is no statement about the rest.
    for window in (100, 20):
        planned = plan(LOG, "delayed-ucb", delays=str(file), window=window)
        assert any(words in sentence for sentence in planned.assumptions) == said
        assert not any(words in sentence for sentence in plan(LOG, "ucb1", delays=str(file), window=window).assumptions)
    found = simulate("vernade2017-low", "delayed-ucb", delays=str(file), runs=1, horizon=200)
    assert (words in found.told) == said
    scenario = tmp_path / "mine.toml"
    (tmp_path / "delays.csv").write_text(
        "delay,cdf\n" + "".join(f"{d},{c}\n" for d, c in zip(*steps.values(), strict=True))
    )
    scenario.write_text(
        'name = "mine"\ntitle = "Mine"\nlicence = "none"\n[scenario]\nkind = "bernoulli"\nmeans = [0.5, 0.3]\n'
        '[scenario.delay]\nfamily = "empirical"\nfile = "delays.csv"\n'
    )
    own = simulate(str(scenario), "ucb1", runs=1, horizon=200)
    assert (words in own.laws[0]) == said
    assert own.curves[0].conversions["lost"] > 0 or not said


def test_a_fit_in_time_is_refused_by_a_simulation(tmp_path: Path) -> None:
    file = tmp_path / "fit.json"
    save_fit(file, fit_nonparametric(DELAYS), tick="1 h")
    with pytest.raises(ParameterError, match=r"counts in units of 1 h, and a scenario counts rounds.*geometric:500"):
        simulate("vernade2017-low", "delayed-ucb", delays=str(file), runs=2, horizon=50)
    with pytest.raises(DataError, match="cannot be read"):
        simulate("vernade2017-low", "delayed-ucb", delays=str(tmp_path / "none.json"), runs=2, horizon=50)


def test_words_that_are_no_law_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"'gamma:2'.*pareto:ALPHA"):
        plan(LOG, "delayed-ucb", delays="gamma:2")
