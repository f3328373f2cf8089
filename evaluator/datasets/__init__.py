"""Datasets: declarative specs, the reader that turns them into logs, synthetic scenarios with known truth.

Importing this package loads none of polars, pyarrow and pydantic; its functions do.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evaluator.datasets.options import ReadingOptions
from evaluator.options.keywords import ReadingKeywords
from evaluator.options.signatures import refuse_unknown, shows

if TYPE_CHECKING:
    from evaluator.datasets.adapter import Reading
    from evaluator.datasets.converting import convert, make
    from evaluator.datasets.drafting import draft
    from evaluator.datasets.resolve import names, read
    from evaluator.datasets.spec_file import json_schema
    from evaluator.datasets.summary import show, validate
    from evaluator.log import Log
    from evaluator.worlds.scenarios.problem import generate

__all__ = [
    "Reading", "convert", "draft", "generate", "json_schema", "load", "make", "names", "read", "show", "validate",
]  # fmt: skip

_HOMES = {
    "Reading": "datasets.adapter",
    "convert": "datasets.converting",
    "draft": "datasets.drafting",
    "generate": "worlds.scenarios.problem",
    "json_schema": "datasets.spec_file",
    "make": "datasets.converting",
    "names": "datasets.resolve",
    "read": "datasets.resolve",
    "show": "datasets.summary",
    "validate": "datasets.summary",
}


@shows(ReadingOptions)
def load(dataset: str | Path = "synthetic", **options: Unpack[ReadingKeywords]) -> Log:
    """Load a log: a bundled dataset's name, a ``spec.toml``, or a converted folder, on disk or in an object store.

    Parameters
    ----------
    dataset
        Name of a bundled dataset, path of a ``spec.toml``, or converted folder; of one in an object store the address,
        ``s3://bucket/shop-log``.
    **options
        See below.

    Returns
    -------
    Log
        The log, validated against the contract.

    Raises
    ------
    UnknownNameError
        There is no such dataset or action.
    SpecError, SourceError, LogError, PropensityError
        The spec, its files or their rows are wrong; the message says where and how to repair them.
    UsageError
        Arguments do not fit the dataset.

    Examples
    --------
    >>> load("synthetic", limit=1000)
    Log('synthetic', displays=1000, conversions=871, actions=10, tick='round')
    """
    from evaluator.datasets.resolve import read

    refuse_unknown("load", options, ReadingOptions)
    return read(dataset, **options).log


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaluator.datasets' has no attribute {name!r}")
    return getattr(import_module(f"evaluator.{_HOMES[name]}"), name)
