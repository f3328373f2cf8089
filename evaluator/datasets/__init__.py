"""Datasets: declarative specs, the reader that turns them into logs, synthetic scenarios with known truth.

Importing this package loads none of polars, pyarrow and pydantic; its functions do.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from evaluator.datasets.adapter import Reading
    from evaluator.datasets.converting import convert
    from evaluator.datasets.criteo.make import make
    from evaluator.datasets.resolve import names, read
    from evaluator.datasets.spec_file import json_schema
    from evaluator.datasets.summary import show, validate
    from evaluator.datasets.synthetic import generate
    from evaluator.log import Log

__all__ = ["Reading", "convert", "generate", "json_schema", "load", "make", "names", "read", "show", "validate"]

_HOMES = {
    "Reading": "adapter",
    "convert": "converting",
    "generate": "synthetic",
    "json_schema": "spec_file",
    "make": "criteo.make",
    "names": "resolve",
    "read": "resolve",
    "show": "summary",
    "validate": "summary",
}


def load(
    dataset: str | Path,
    *,
    path: str | Path | None = None,
    actions: str | Sequence[str] | None = None,
    features: str | None = None,
    deduplicate: Literal["last_click", "first_click", "all", "share"] | None = None,
    attributed_only: bool | None = None,
    limit: int | None = None,
    seed: int | None = None,
    sort: bool | None = None,
    attribution_window: str | int | None = None,
    on_error: str = "stop",
    keep: Sequence[str] = (),
    sampling_rate: float | None = None,
) -> Log:
    """Return the log of a dataset.

    Parameters
    ----------
    dataset
        Name of a bundled dataset, path of a ``spec.toml``, or converted folder.
    path
        File, glob or folder to read instead of the spec's, relative to the working folder.
    actions
        ``top:10``, ``used`` (those with displays that were followed long enough to be judged) or labels, as a list or
        separated by commas; displays of other actions are dropped and counted. Delays in displays still count those of
        all actions. Propensities become those of the fewer actions where they do not depend on the display; else they
        stay, and what cannot be right with them is refused.
    features
        ``none``, ``col1,col2``, ``col1,col2:hash=32``, ``col1:one-hot``, ``col1:number`` or ``hash=32``.
    deduplicate, attributed_only, sort
        Replace the spec's rules.
    limit
        Read the first n displays only (before `actions`), or generate n.
    attribution_window
        A duration (``8h``) or ticks, in place of the spec's: conversions later than that after their display are cut,
        and counted in ``meta.counts["conversions_beyond_attribution_window"]``. A converted folder takes shorter ones
        only.
    seed
        Replaces the seed of a synthetic dataset.
    on_error
        ``stop`` at rows that break a rule, or ``quarantine`` them: left out, counted in ``meta.counts["quarantined"]``,
        and listed by `read`.
    keep
        Columns of the source that every display keeps as they are, as text, to group by (``study_delays(by=...)``); of
        a converted folder, those it must have. Outcomes are refused as among the features.
    sampling_rate
        Share of the traffic's displays that the log holds, in (0, 1], in place of what its spec says: delays in rounds
        are counted in displays of the traffic.

    Raises
    ------
    UnknownNameError
        No such dataset or action.
    SpecError, SourceError, LogError, PropensityError
        The spec, its files or their rows are wrong; the message says where and how to repair them.
    UsageError
        Arguments that do not fit the dataset.

    Examples
    --------
    >>> load("synthetic", limit=1000)
    Log('synthetic', displays=1000, conversions=871, actions=10, tick='round')
    """
    from evaluator.datasets.resolve import read

    return read(
        dataset, path=path, actions=actions, features=features, deduplicate=deduplicate,
        attributed_only=attributed_only, limit=limit, seed=seed, sort=sort,
        attribution_window=attribution_window, on_error=on_error, keep=keep, sampling_rate=sampling_rate,
    ).log  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaluator.datasets' has no attribute {name!r}")
    return getattr(import_module(f"evaluator.datasets.{_HOMES[name]}"), name)
