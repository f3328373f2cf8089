"""The delay laws that scenarios name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaluator.datasets.promotions.promotion_scenario import PromotionsScenario
from evaluator.datasets.scenario import Delay, LinearScenario, Scenario
from evaluator.delays import laws
from evaluator.delays.law_names import LAWS
from evaluator.delays.laws import DelayLaw
from evaluator.errors import DataError, ParameterError, SourceError, SpecError, nearest, nearest_file
from evaluator.inputs.open_regular import refuse_irregular


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
        return [delay_law(delay, folder) for delay in _delays(scenario)]
    except ParameterError as error:
        raise SpecError(f"The scenario in {folder}: {error.what}", hint=error.hint) from None


def delay_files(scenario: Scenario | PromotionsScenario, folder: Path) -> list[Path]:
    """Return the files that a scenario's laws are read from."""
    return [folder / delay.file for delay in _delays(scenario) if delay.file is not None]


def _delays(scenario: Scenario | PromotionsScenario) -> list[Delay]:
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
        raise SourceError(f"No file {path} of delays.", hint=hint) from None
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
