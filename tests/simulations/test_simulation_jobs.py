"""A simulation in jobs: whoever plays its runs and wherever it was interrupted, its result is the same to the bit."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import Simulation
from evaluator import simulate as play
from evaluator.arguments import as_description
from evaluator.errors import UsageError, WorkerError
from evaluator.jobs.run_jobs import compute_jobs
from evaluator.jobs.workers import loaded, this_folder
from evaluator.outputs.kept_folder import KeptJobs, kept_beside
from evaluator.own_code import codes_of
from evaluator.simulations import runs, simulate
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.runs import PlayedScenario, RunsJob, runs_in, runs_key
from evaluator.worlds.world import load_problem

NAME = "vernade2017-high"
POLICIES = ["delayed-klucb", "ucb1", "random"]
ASKED: dict[str, Any] = {"runs": 9, "horizon": 1_000}


def said(found: Simulation) -> list[str]:
    return [json.dumps(found.to_dict()), repr(found.curve_table.to_pydict())]


@pytest.fixture(scope="module")
def alone() -> list[str]:
    return said(play(NAME, POLICIES, **ASKED))


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "WORK", 4 * 1_000)
    runs._opened.clear()


def test_runs_of_workers_are_those_of_this_process(alone: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert said(play(NAME, POLICIES, executor=pool, **ASKED)) == alone
        with pytest.raises(UsageError, match="Workers load scenarios by their names"):
            play(load_problem(NAME), POLICIES, executor=pool, **ASKED)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_simulation_stopped_wherever_it_writes_goes_on_from_there(
    jobs: int, tmp_path: Path, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    keep = KeptJobs.keep
    keys: list[str] = []

    def killed(kept: KeptJobs, key: str, text: str) -> None:
        if rng.random() < 0.5:
            raise KeyboardInterrupt
        keep(kept, key, text)
        keys.append(key)
        if rng.random() < 0.5:
            raise KeyboardInterrupt

    monkeypatch.setattr(KeptJobs, "keep", killed)
    policies = [as_description(policy) for policy in POLICIES]
    times = 0
    while True:
        try:
            with kept_beside(tmp_path / "run") as folder:
                kept, asked = KeptJobs(folder), SimulateOptions(**ASKED, jobs=jobs)
                found = simulate(load_problem(NAME), policies, asked, kept=kept)
            break
        except KeyboardInterrupt:
            times += 1
    assert said(found) == alone
    assert times > 2
    assert len(keys) == len(set(keys)) == -(-9 * 3 // 4)
    assert list(tmp_path.iterdir()) == []


def test_kept_runs_are_of_no_other_simulation_and_damaged_ones_are_played_anew(
    tmp_path: Path, alone: list[str]
) -> None:
    policies = [as_description(policy) for policy in POLICIES]
    problem, kept = load_problem(NAME), KeptJobs(tmp_path)
    assert said(simulate(problem, policies, SimulateOptions(**ASKED), kept=kept)) == alone
    files = list(tmp_path.iterdir())
    for other in ({"seed": 1}, {"horizon": 999}, {"window": 50}):
        asked = SimulateOptions(**ASKED | other)
        assert said(simulate(problem, policies, asked, kept=kept)) == said(simulate(problem, policies, asked))
    for file in files:
        file.write_bytes(file.read_bytes()[:-5])
    assert said(simulate(problem, policies, SimulateOptions(**ASKED), kept=kept)) == alone


def test_a_worker_with_another_scenario_under_the_name_is_refused() -> None:
    policies, options = [as_description("ucb1")], SimulateOptions(**ASKED)
    codes = codes_of(policies)
    key = runs_key(runs_in(load_problem(NAME), policies, options), codes)
    played = PlayedScenario(NAME, ("ucb1",), options, this_folder(), codes, key)
    assert compute_jobs([RunsJob(played, ((0, 0),))], loaded())
    with pytest.raises(WorkerError, match=r"refused: its scenario vernade2017-low is another"):
        compute_jobs([RunsJob(replace(played, scenario="vernade2017-low"), ((0, 0),))], loaded())
