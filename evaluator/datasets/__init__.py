"""Datasets: what is done with them from Python; `evaluator.reading` reads them, the bundled ones lie beside this file.

Importing this package loads none of polars, pyarrow and pydantic; its functions do.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evaluator.options.declaration import refuse_unknown, shows
from evaluator.options.keywords import ReadingKeywords
from evaluator.reading.options import ReadingOptions

if TYPE_CHECKING:
    from evaluator.log import Log
    from evaluator.reading.canonical import Reading
    from evaluator.reading.converting import convert, make
    from evaluator.reading.drafting import draft
    from evaluator.reading.resolve import names, read
    from evaluator.reading.spec import json_schema
    from evaluator.reading.summary import show, validate
    from evaluator.worlds.scenarios.problem import generate

__all__ = [
    "Reading", "convert", "draft", "generate", "json_schema", "load", "make", "names", "read", "show", "validate",
]  # fmt: skip

_HOMES = {
    "Reading": "reading.canonical",
    "convert": "reading.converting",
    "draft": "reading.drafting",
    "generate": "worlds.scenarios.problem",
    "json_schema": "reading.spec",
    "make": "reading.converting",
    "names": "reading.resolve",
    "read": "reading.resolve",
    "show": "reading.summary",
    "validate": "reading.summary",
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
    from evaluator.reading.resolve import read

    refuse_unknown("load", options, ReadingOptions)
    return read(dataset, **options).log


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaluator.datasets' has no attribute {name!r}")
    return getattr(import_module(f"evaluator.{_HOMES[name]}"), name)
