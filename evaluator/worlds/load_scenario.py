"""From the specs of scenarios, which are datasets too, to the problems that the simulator plays."""

from __future__ import annotations

from pathlib import Path

from evaluator.datasets.resolve import dataset_spec, spec_path
from evaluator.datasets.spec import ScenarioSpec
from evaluator.errors import UsageError
from evaluator.worlds.scenarios.problem import DEFAULT_HORIZON, BernoulliProblem, LinearProblem, Problem
from evaluator.worlds.scenarios.scenario import BernoulliScenario, LinearScenario
from evaluator.worlds.scenarios.synthetic import scenario_laws


def load_problem(scenario: str | Path) -> Problem:
    """Return the problem of a scenario: its bundled name, or the path of its spec.

    Raises
    ------
    UnknownNameError
        There is no such scenario.
    SpecError, SourceError
        The spec, or a file of delays it names, is wrong.
    UsageError
        The dataset is a log in files, whose truth is not known; or a scenario in time, not in rounds.

    Examples
    --------
    >>> load_problem("vernade2017-low").means
    (0.1, 0.05, 0.03)
    """
    path, spec = spec_path(scenario), dataset_spec(scenario)
    if not isinstance(spec, ScenarioSpec) or not isinstance(path, Path):
        raise UsageError(
            f"{str(scenario)!r} is a log, not a scenario: its truth is not known.",
            remedy="replay it, or name a dataset whose kind is `synthetic` in `evaluate datasets list`.",
        )
    found = spec.scenario
    if not isinstance(found, LinearScenario | BernoulliScenario) or found.arrivals is not None:
        raise UsageError(
            f"{str(scenario)!r} has arrivals in time, and a simulation counts rounds.",
            remedy="replay it as a dataset, or leave [scenario.arrivals] out and give the delays in rounds.",
        )
    laws = tuple(scenario_laws(found, path.parent))
    horizon = found.horizon or DEFAULT_HORIZON
    flights = found.all_flights
    if isinstance(found, LinearScenario):
        return LinearProblem(
            name=spec.name,
            n_actions=found.actions,
            dimension=found.dimensions,
            laws=laws,
            horizon=horizon,
            window=found.window,
            zeros=found.zeros,
            flights=flights,
        )
    return BernoulliProblem(
        name=spec.name,
        means=tuple(found.means),
        laws=laws,
        horizon=horizon,
        window=found.window,
        zeros=found.zeros,
        flights=flights,
    )
