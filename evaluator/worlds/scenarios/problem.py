"""Bandit problems with known truth: what a scenario of a spec says, with its delay laws, or what Python code makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluator.delays import laws
from evaluator.delays.law_names import LAWS
from evaluator.delays.laws import DelayLaw
from evaluator.errors import DataError, ParameterError, SourceError, SpecError, nearest, nearest_file
from evaluator.inputs.open_regular import refuse_irregular
from evaluator.worlds.scenarios.promotion_scenario import PromotionsScenario
from evaluator.worlds.scenarios.scenario import (
    Delay,
    Flight,
    LinearScenario,
    Scenario,
    ScenarioArrivals,
    flight_parts,
)

DEFAULT_HORIZON = 10_000
# When a policy hears of a zero reward: when the window closes, by the silence until then; or it is told, after a delay.
Zeros = Literal["window", "told"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScenarioProblem:
    """What all problems state.

    Parameters
    ----------
    name
        Name of the scenario.
    laws
        Delay laws: one for all arms, or one an arm.
    horizon, window
        Number of rounds and window, in rounds, of a live run that names none; window None cuts nothing off.
    zeros
        Rule for zero rewards. ``window``: nobody is told of a zero, as in a log of conversions. ``told``: policies that
        take zeros (`evaluator.policies.base.Policy.takes_zeros`) are told of each, after a delay of the arm's law.
    flights
        Rounds between which arms are eligible (`evaluator.worlds.scenarios.scenario.Flight`): an arm arrives, retires,
        and may come again; one without any is always eligible, and in every round one is.
    logger
        Propensities of the logging policy, K of them; None shows all arms alike.
    arrivals
        Traffic of logs in time; None counts rounds, and only then is there a live run.
    displays, seed
        Number of displays and seed of a log that names none.
    """

    name: str
    laws: tuple[DelayLaw, ...]
    horizon: int = DEFAULT_HORIZON
    window: int | None = None
    zeros: Zeros = "window"
    flights: tuple[Flight, ...] = ()
    logger: tuple[float, ...] | None = None
    arrivals: ScenarioArrivals | None = None
    displays: int = 100_000
    seed: int = 0

    def _check(self, n_actions: int, fits: bool, what: str, remedy: str) -> None:
        if not fits:
            raise ParameterError(f"{self.name}: {what} and {len(self.laws)} delay laws.", remedy=remedy)
        p = self.logger
        if p is not None and (len(p) != n_actions or min(p) <= 0 or abs(sum(p) - 1) > 1e-9):
            raise ParameterError(
                f"{self.name}: logger {p}.", remedy=f"give {n_actions} propensities above 0 that sum to 1, or none."
            )
        if not self.flights:
            return  # their parts list every action, of which there may be more than fit in memory
        try:
            flight_parts(self.flights, n_actions)
        except ValueError as error:
            raise ParameterError(
                f"{self.name}: {error}.", remedy="in every round, also after the last, one action or more is eligible."
            ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class BernoulliProblem(ScenarioProblem):
    """Arms without context: arm k converts with probability ``means[k]``, after a delay of law ``laws[k]``.

    Takes the parameters of `ScenarioProblem`, too.

    Parameters
    ----------
    means
        Conversion rates of the arms, K of them; conversions that never come count in them.

    Raises
    ------
    ParameterError
        There are fewer than two arms, a rate is outside [0, 1], or the laws are neither one nor as many as the arms; or
        a flight is of no arm or ends before it begins, or no arm is left; or propensities do not fit the arms.
    """

    means: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the arms."""
        k = len(self.means)
        fits = k >= 2 and all(0 <= mean <= 1 for mean in self.means) and len(self.laws) in (1, k)
        self._check(
            k, fits, f"means {self.means}", "give two or more rates in [0, 1], and one delay law or one an arm."
        )

    @property
    def n_actions(self) -> int:
        """Number of arms K."""
        return len(self.means)

    @property
    def dimension(self) -> int:
        """Length of the contexts: none."""
        return 0

    @property
    def eventual(self) -> npt.NDArray[np.float64]:
        """Expected number of conversions of a pull that ever come, shape (K,)."""
        return np.array(self.means) * [law.reach for law in self.laws]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProblem(ScenarioProblem):
    """Fresh action vectors every round, uniform on [0, 1]^d and scaled to unit length; theta = 1/sqrt(d).

    An action a converts with probability <a, theta>. Vernade et al. 2020, Section 8. Takes the parameters of
    `ScenarioProblem`, too, with one law for all actions.

    Parameters
    ----------
    n_actions, dimension
        Number of actions K and length d of the vectors.
    temperature
        Temperature of the logger, which shows actions by a softmax of their rates over it; None leaves it to `logger`.

    Raises
    ------
    ParameterError
        There are fewer than two actions, no dimension, or several laws; or flights or propensities that cannot be.
    """

    n_actions: int
    dimension: int
    temperature: float | None = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        fits = self.n_actions >= 2 and self.dimension >= 1 and len(self.laws) == 1
        what = f"{self.n_actions} actions, {self.dimension} dimensions"
        self._check(self.n_actions, fits, what, "give two or more actions, one or more dimensions, one delay law.")


Problem = BernoulliProblem | LinearProblem


def problem_of(scenario: Scenario, name: str, folder: Path) -> Problem:
    """Return the problem that a scenario states; folder, errors and laws as of `scenario_laws`."""
    shared: dict[str, Any] = {
        "name": name,
        "laws": tuple(scenario_laws(scenario, folder)),
        "horizon": scenario.horizon or DEFAULT_HORIZON,
        "window": scenario.window,
        "zeros": scenario.zeros,
        "flights": scenario.all_flights,
        "logger": tuple(scenario.logger) if isinstance(scenario.logger, list) else None,
        "arrivals": scenario.arrivals,
        "displays": scenario.displays,
        "seed": scenario.seed,
    }
    if isinstance(scenario, LinearScenario):
        shared |= {"n_actions": scenario.actions, "dimension": scenario.dimensions}
        return LinearProblem(**shared, temperature=scenario.temperature)
    return BernoulliProblem(**shared, means=tuple(scenario.means))


def scenario_laws(scenario: Scenario | PromotionsScenario, folder: Path) -> list[DelayLaw]:
    """Return a scenario's delay laws: one for all actions, one an action, or one for each kind of events.

    Parameters
    ----------
    scenario
        Scenario of a synthetic log or a simulation; one of promotions has laws of sales, refunds and unsubscribes.
    folder
        Folder that the file names in the scenario are relative to.

    Raises
    ------
    SourceError
        A file of an empirical law is absent or holds no CDF.
    SpecError
        The numbers of a law are out of range.
    """
    try:
        return [delay_law(delay, folder) for delay in _law_delays(scenario)]
    except ParameterError as error:
        raise SpecError(f"The scenario in {folder}: {error.what}", remedy=error.remedy) from None


def delay_files(scenario: Scenario | PromotionsScenario, folder: Path) -> list[Path]:
    """Return the files that a scenario's laws are read from."""
    return [folder / delay.file for delay in _law_delays(scenario) if delay.file is not None]


def _law_delays(scenario: Scenario | PromotionsScenario) -> list[Delay]:
    if isinstance(scenario, PromotionsScenario):
        return [scenario.sale, scenario.refund, scenario.unsubscribe]
    if isinstance(scenario, LinearScenario) or scenario.delays is None:
        return [scenario.delay]
    return scenario.delays


def delay_law(delay: Delay, folder: Path) -> DelayLaw:
    """Return the law that a `Delay` names; arguments and errors as in `scenario_laws`."""
    if delay.file is not None:
        return _from_file(delay, folder)
    law = LAWS[delay.family]
    return laws.law_of(law, law.arguments(lambda key: getattr(delay, key)))


def _from_file(delay: Delay, folder: Path) -> DelayLaw:
    import polars as pl

    path = folder / (delay.file or "")
    value = delay.density or delay.cdf or "cdf"
    names = [delay.delay or "delay", value]
    try:
        refuse_irregular(path)
        table = pl.read_parquet(path) if path.suffix in (".parquet", ".pq") else pl.read_csv(path)
    except FileNotFoundError:
        hint = nearest_file(path, "give a path relative to the spec.")
        raise SourceError(f"No file {path} of delays.", remedy=hint) from None
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        line = str(error).splitlines()[0]
        raise SourceError(
            f"{path} is not a table of delays: {line}.", remedy="write CSV with a header, or Parquet."
        ) from None
    for name in names:
        if name not in table.columns:
            raise SourceError(f"{path} has no column {name!r}.", remedy=nearest(name, table.columns))
    try:
        points, values = (table[name].cast(pl.Float64).to_numpy() for name in names)
    except pl.exceptions.PolarsError:
        raise SourceError(f"{path}: columns {names} are not numbers.", remedy="one number a row in each.") from None
    if delay.density is not None:
        values = np.cumsum(values) / np.sum(values)
    try:
        return laws.empirical(points * (delay.scale or 1.0), values, source=f"delays of {path.name} (given)")
    except DataError as error:
        raise SourceError(f"{path}: {error.what}", remedy=error.remedy) from None
