"""Scenarios: those shipped, every delay family in a log and in a problem, delays by action, delays from a file."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator.datasets import generate, load, names
from evaluator.errors import SpecError
from evaluator.log.schema import to_numpy
from evaluator.reading.locate import bundled_folder
from evaluator.reading.spec import parse_spec, read_spec
from evaluator.worlds.scenarios.problem import delay_law, scenario_laws
from evaluator.worlds.scenarios.scenario import BernoulliScenario, Delay
from evaluator.worlds.world import load_problem
from tests.reading.sources import spec_validator

SIGMAS = 4
N = 40_000
SHIPPED = sorted(path.stem for path in (bundled_folder() / "synthetic").glob("*.toml") if path.stem != "spec")
PAPERS = {"vernade2017": 2, "vernade2018": 6, "pikeburke2018": 11, "manegueu2020": 9, "vernade2020": 4}

# A few rows of each family, with P(D <= a) at some ages.
FAMILIES = {
    "geometric": ({"mean": 20, "support": 0}, {0: 1 / 21, 20: 1 - (20 / 21) ** 21}),
    "fixed": ({"mean": 7}, {6: 0.0, 7: 1.0}),
    "exponential": ({"mean": 20}, {0: 0.0, 20: 1 - math.exp(-1)}),
    "uniform": ({"low": 2, "high": 11}, {1: 0.0, 2: 0.1, 6: 0.5, 11: 1.0}),
    "poisson": ({"mean": 3}, {0: math.exp(-3), 1: 4 * math.exp(-3)}),
    "half-normal": ({"mean": 20}, {0: 0.0, 20: math.erf(1 / math.sqrt(math.pi))}),
    "pareto": ({"alpha": 0.5}, {1: 0.0, 4: 0.5, 100: 0.9}),
    "lognormal-mixture": ({"weights": [0.5, 0.5], "medians": [10, 1e4], "sigmas": [1, 0.1]}, {0: 0.0, 10: 0.25}),
    "packet-loss": ({"lost": 0.25}, {0: 0.75, 10**6: 0.75}),
}


def bernoulli(**more: Any) -> BernoulliScenario:
    return BernoulliScenario.model_validate({"kind": "bernoulli", "means": [0.6, 0.9], **more})


def test_every_paper_is_there() -> None:
    assert {paper: sum(name.startswith(paper) for name in SHIPPED) for paper in PAPERS} == PAPERS
    assert set(SHIPPED) <= set(names())


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenario_is_a_problem_and_a_log(name: str) -> None:
    path = bundled_folder() / "synthetic" / f"{name}.toml"
    spec_validator().validate(tomllib.loads(path.read_text()))
    assert read_spec(path).name == name
    problem = load_problem(name)
    assert problem.name == name
    assert problem.horizon >= 3000
    log = load(name, limit=500)
    assert (len(log), log.n_actions, log.meta.name) == (500, problem.n_actions, name)


def test_recommendations_follow_the_papers() -> None:
    low = load_problem("vernade2017-low")
    assert (low.means, low.horizon, low.window) == ((0.1, 0.05, 0.03), 10_000, 1000)
    # Printed in Vernade et al. 2020: tau_m = 0.63, 0.993 and 1 / 5.5.
    taus = {m: float(load_problem(f"vernade2020-{m}").laws[0](int(m.split("-")[0]))) for m in
            ("100-100", "500-100", "100-500")}  # fmt: skip
    assert taus == {
        "100-100": pytest.approx(0.63, abs=5e-3),
        "500-100": pytest.approx(0.993, abs=5e-4),
        "100-500": pytest.approx(1 / 5.5, abs=2e-3),
    }
    assert [law(100) for law in load_problem("manegueu2020-figure5").laws] == [
        pytest.approx(0.99), pytest.approx(1 - 100**-0.3)
    ]  # fmt: skip


def test_the_fitted_mixture_is_as_far_from_the_counted_delays_as_its_spec_says() -> None:
    twin = tomllib.loads((bundled_folder() / "criteo_twin" / "spec.toml").read_text())["twin"]["delays"]
    law = load_problem("vernade2020-criteo").laws[0]
    rounds = np.ceil(np.array(twin["seconds"]) * 0.01)
    smooth = law(rounds.astype(int))
    # A knot that is no whole round may be one round's mass off besides.
    assert np.abs(smooth - twin["cdf"]).max() < 0.012 + 5e-4 + np.diff(law.table(3)).max()


@pytest.mark.parametrize(("family", "keys", "tau"), [(f, *found) for f, found in FAMILIES.items()], ids=FAMILIES)
def test_delays_of_a_log_follow_their_family(family: str, keys: dict, tau: dict[int, float]) -> None:
    scenario = bernoulli(delay={"family": family, **keys})
    log = generate(scenario, displays=N)
    of = to_numpy(log.conversions["display_id"])
    delay = to_numpy(log.conversions["time"]) - of
    law = scenario_laws(scenario, Path())[0]
    came = len(of) / N
    rate = 0.75 * law.reach
    assert abs(came - rate) <= SIGMAS * math.sqrt(rate * (1 - rate) / N)
    np.testing.assert_allclose(log.column("expected_reward")[0], np.array([0.6, 0.9]) * law.reach)
    for age, share in tau.items():
        assert law(age) == pytest.approx(share, abs=1e-12)
        p = share / law.reach
        assert abs((delay <= age).mean() - p) <= SIGMAS * math.sqrt(p * (1 - p) / len(of)) + 1e-12


def test_each_action_has_its_own_delay() -> None:
    delays = [{"family": "fixed", "mean": 3}, {"family": "packet-loss", "lost": 0.5}]
    log = generate(bernoulli(delays=delays), displays=N)
    of = to_numpy(log.conversions["display_id"])
    action, delay = log.column("action")[of], to_numpy(log.conversions["time"]) - of
    assert set(delay[action == 0].tolist()) == {3}
    assert set(delay[action == 1].tolist()) == {0}
    expected = np.array([0.6, 0.45])
    np.testing.assert_allclose(log.column("expected_reward")[0], expected)
    shown = np.bincount(log.column("action"))
    rate = np.bincount(action) / shown
    assert (np.abs(rate - expected) < SIGMAS * np.sqrt(expected * (1 - expected) / shown)).all()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["cdf", "density"])
def test_delays_from_a_file_beside_the_spec(tmp_path: Path, suffix: str, column: str) -> None:
    values = {"cdf": [0.2, 0.2, 0.7, 1.0], "density": [2, 0, 5, 3]}[column]
    table = pl.DataFrame({"delay_s": [0, 150, 250, 1000], "value": values})
    table.write_csv(tmp_path / "d.csv") if suffix == "csv" else table.write_parquet(tmp_path / "d.parquet")
    spec = tmp_path / "mine.toml"
    spec.write_text(
        f"""
        name = "mine"
        title = "Mine"
        licence = "none"
        [scenario]
        kind = "bernoulli"
        means = [1, 1]
        horizon = 40
        [scenario.delay]
        family = "empirical"
        file = "d.{suffix}"
        delay = "delay_s"
        {column} = "value"
        scale = 0.01
        """
    )
    law = load_problem(spec).laws[0]
    np.testing.assert_allclose(law([0, 2, 3, 9, 10]), [0.2, 0.2, 0.7, 0.7, 1.0])
    log = load(spec, limit=N)
    delay = to_numpy(log.conversions["time"]) - to_numpy(log.conversions["display_id"])
    share = np.array([(delay == d).mean() for d in (0, 3, 10)])
    assert (np.abs(share - [0.2, 0.5, 0.3]) < SIGMAS * np.sqrt(0.25 / N)).all()
    before = log.meta.fingerprint
    table.with_columns(delay_s=pl.col("delay_s") + 1).write_csv(tmp_path / "d.csv")
    if suffix == "csv":
        assert load(spec, limit=N).meta.fingerprint != before


@pytest.mark.parametrize(
    ("content", "keys", "said"),
    [
        (None, {}, "No file"),
        ("delay,cdf\n1,0.5\n", {"cdf": "tau"}, "no column 'tau'"),
        ("delay,cdf\n1,0.5\n2,0.4\n", {}, r"d\.csv: Row 2"),
        ("delay,cdf\n1,half\n", {}, "not numbers"),
        ("", {}, "not a table"),
    ],
)
def test_a_file_that_is_no_cdf(tmp_path: Path, content: str | None, keys: dict, said: str) -> None:
    if content is not None:
        (tmp_path / "d.csv").write_text(content)
    with pytest.raises(Exception, match=said) as raised:
        delay_law(Delay(family="empirical", file="d.csv", **keys), tmp_path)
    assert raised.value.exit_code == 3


def test_a_law_out_of_range_names_the_scenario(tmp_path: Path) -> None:
    scenario = BernoulliScenario(kind="bernoulli", means=[0.1, 0.2], delay=Delay(mean=1e308))
    with pytest.raises(SpecError, match=re.escape(str(tmp_path))):
        scenario_laws(scenario, tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delay": {"family": "uniform"}}, "uniform delays need high"),
        ({"delay": {"family": "uniform", "high": 3, "mean": 2}}, "uniform delays take high, low, not mean"),
        ({"delay": {"family": "uniform", "high": 3, "low": 5}}, "low must not exceed high"),
        ({"delay": {"family": "poisson", "mean": 0}}, "mean above 0"),
        ({"delay": {"family": "pareto", "alpha": 0}}, "alpha"),
        ({"delay": {"family": "packet-loss", "lost": 1}}, "lost"),
        ({"delay": {"family": "gamma"}}, "family"),
        ({"delay": {"family": "lognormal-mixture", "weights": [1], "medians": [1, 2], "sigmas": [1]}}, "one length"),
        ({"delay": {"family": "lognormal-mixture", "weights": [0.5], "medians": [1], "sigmas": [1]}}, "sum to 1"),
        ({"delay": {"family": "empirical", "file": "x", "cdf": "a", "density": "b"}}, "not both"),
        ({"delays": [{"mean": 3}]}, "1 delays for 2 actions"),
        ({"delays": [{"mean": 3}, {"mean": 4}], "delay": {"mean": 3}}, "not both"),
        ({"horizon": 0}, "horizon"),
        ({"window": 0}, "window"),
    ],
)
def test_wrong_scenario_is_explained(changes: dict, words: str) -> None:
    data = {"name": "s", "title": "S", "licence": "none"}
    with pytest.raises(SpecError) as raised:
        parse_spec({**data, "scenario": {"kind": "bernoulli", "means": [0.1, 0.2], **changes}})
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
