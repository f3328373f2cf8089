"""Several policies and windows on one log, replayed in one scan of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.evaluation.execute import execute_all
from evaluator.evaluation.options import ReplayOptions
from evaluator.evaluation.plan import Plan, plan_replay, read_basis
from evaluator.evaluation.result import ReplayResult
from evaluator.log import Log

SCHEMA = "evaluate.compare/1"


@dataclass(frozen=True)
class Comparison:
    """Results of several replays of one log.

    Parameters
    ----------
    results
        One a variant: policy by policy, within it window by window.
    """

    results: tuple[ReplayResult, ...]

    @property
    def trajectory(self) -> pa.Table:
        """Every variant's rounds, with its number in ``variant``."""
        tables = [
            result.trajectory.add_column(0, "variant", pa.array([i] * len(result.trajectory), pa.int32()))
            for i, result in enumerate(self.results)
        ]
        return pa.concat_tables(tables)

    def to_dict(self) -> dict[str, Any]:
        """Return the results without their trajectories, as JSON values."""
        return {
            "schema": SCHEMA,
            "dataset": self.results[0].plan["dataset"],
            "variants": [result.to_dict() for result in self.results],
        }

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.results))


def plan_comparison(
    log: Log, policies: Sequence[Any], windows: Sequence[str | int | None], options: ReplayOptions
) -> list[Plan]:
    """Plan every policy with every window.

    Parameters
    ----------
    log
        The log.
    policies
        Descriptions.
    windows
        As `ReplayOptions.window`.
    options
        Shared by all; its own window is not used.

    Raises
    ------
    ParameterError
        Nothing to compare, or two variants are the same.
    """
    variants = [(policy, window) for policy in policies for window in windows]
    names = [(policy.spec, window) for policy, window in variants]
    if not variants:
        raise ParameterError("Nothing to compare.", hint="name policies: -p otflinucb -p delayed-klucb.")
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{name[0]} with window {name[1]} is there twice.", hint="name each variant once.")
    basis = read_basis(log, options)
    return [plan_replay(basis, policy, replace(options, window=window)) for policy, window in variants]


def execute_comparison(plans: Sequence[Plan], *, advance: Callable[[int], None] = lambda displays: None) -> Comparison:
    """Replay all variants in one scan of their log."""
    return Comparison(tuple(execute_all(plans, jobs=plans[0].options.jobs, advance=advance)))
