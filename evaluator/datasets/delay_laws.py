"""The delay laws that scenarios name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaluator.datasets.scenario import Delay, LinearScenario, Scenario
from evaluator.delays import laws
from evaluator.delays.laws import DelayLaw
from evaluator.errors import DataError, ParameterError, SourceError, SpecError, nearest
from evaluator.regular import refuse_irregular

_MEAN = 100.0


def scenario_laws(scenario: Scenario, folder: Path) -> list[DelayLaw]:
    """Return a scenario's delay laws: one for all actions, or one an action.

    Parameters
    ----------
    scenario
        The scenario.
    folder
        Where the files it names are.

    Raises
    ------
    SourceError
        A file of an empirical law is absent or holds no CDF.
    SpecError
        The numbers of a law are out of range.
    """
    try:
        return [delay_law(delay, folder) for delay in _delays(scenario)]
    except ParameterError as error:
        raise SpecError(f"The scenario in {folder}: {error.what}", hint=error.hint) from None


def delay_files(scenario: Scenario, folder: Path) -> list[Path]:
    """Return the files that a scenario's laws are read from."""
    return [folder / delay.file for delay in _delays(scenario) if delay.file is not None]


def _delays(scenario: Scenario) -> list[Delay]:
    if isinstance(scenario, LinearScenario) or scenario.delays is None:
        return [scenario.delay]
    return scenario.delays


def delay_law(delay: Delay, folder: Path) -> DelayLaw:
    """Return the law that a `Delay` names; arguments and errors as in `scenario_laws`."""
    mean = _MEAN if delay.mean is None else delay.mean
    match delay.family:
        case "geometric":
            return laws.geometric(mean, start=1 if delay.support is None else delay.support)
        case "fixed":
            return laws.fixed(int(mean))
        case "exponential":
            return laws.exponential(mean)
        case "uniform":
            return laws.uniform(delay.low or 0, delay.high or 0)
        case "poisson":
            return laws.poisson(mean)
        case "half-normal":
            return laws.half_normal(mean)
        case "pareto":
            return laws.pareto(delay.alpha or 0.0, factor=delay.factor or 1.0, shift=delay.shift or 0.0)
        case "lognormal-mixture":
            return laws.lognormal_mixture(delay.weights or [], delay.medians or [], delay.sigmas or [])
        case "packet-loss":
            return laws.packet_loss(delay.lost or 0.0, retry=delay.retry)
        case "empirical":
            return _from_file(delay, folder)


def _from_file(delay: Delay, folder: Path) -> DelayLaw:
    import polars as pl

    path = folder / (delay.file or "")
    value = delay.density or delay.cdf or "cdf"
    names = [delay.delay or "delay", value]
    try:
        refuse_irregular(path)
        table = pl.read_parquet(path) if path.suffix in (".parquet", ".pq") else pl.read_csv(path)
    except FileNotFoundError:
        raise SourceError(f"No file {path} of delays.", hint="give a path relative to the spec.") from None
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        line = str(error).splitlines()[0]
        raise SourceError(
            f"{path} is not a table of delays: {line}.", hint="write CSV with a header, or Parquet."
        ) from None
    for name in names:
        if name not in table.columns:
            raise SourceError(f"{path} has no column {name!r}.", hint=nearest(name, table.columns))
    try:
        points, values = (table[name].cast(pl.Float64).to_numpy() for name in names)
    except pl.exceptions.PolarsError:
        raise SourceError(f"{path}: columns {names} are not numbers.", hint="one number a row in each.") from None
    if delay.density is not None:
        values = np.cumsum(values) / np.sum(values)
    try:
        return laws.empirical(points * (delay.scale or 1.0), values, source=f"delays of {path.name} (given)")
    except DataError as error:
        raise SourceError(f"{path}: {error.what}", hint=error.hint) from None
