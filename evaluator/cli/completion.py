"""What shells complete: names of policies and bundled datasets, and columns of the log that is named.

A shell waits for each answer, so nothing here loads polars, numba or numpy. Where nothing fits, shells offer files.
"""

from __future__ import annotations

import csv
import gzip
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def policy_names(incomplete: str) -> list[str]:
    """Return the policies whose names begin so; of a list with commas, those that its last may be."""
    from evaluator.policies.registry import names

    return _last_of_list(incomplete, names())


def dataset_names(incomplete: str) -> list[str]:
    """Return the bundled datasets and scenarios whose names begin so."""
    from evaluator.datasets.locate import bundled_names

    return [name for name in sorted(bundled_names()) if name.startswith(incomplete)]


def made_names(incomplete: str) -> list[str]:
    """Return the datasets that can be made and whose names begin so."""
    from evaluator.datasets.make_options import MADE

    return [name for name in MADE if name.startswith(incomplete)]


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the log that begin so, where its spec or its text file tells them at once."""
    try:
        return _last_of_list(incomplete, _columns(context.params))
    except (OSError, ValueError):
        return []  # a shell has no place for what is wrong with a file; the command will say it


# By the name of the option or argument.
COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "policy": policy_names,
    "policies": policy_names,
    "baseline": policy_names,
    "dataset": dataset_names,
    "made": made_names,
    "log": dataset_names,
    "scenario": dataset_names,
    "by": column_names,
    "cluster_by": column_names,
    "delay_column": column_names,
    "features": column_names,
    "keep": column_names,
}


def _last_of_list(incomplete: str, words: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def _columns(given: dict[str, Any]) -> list[str]:
    if (file := given.get("file")) is not None:
        return _header(Path(file), {})
    named = given.get("log") or given.get("dataset")
    if named is None:
        return []
    from evaluator.datasets.locate import bundled_names

    spec = bundled_names().get(str(named), Path(named))
    spec = spec / "spec.toml" if spec.is_dir() else spec
    source = tomllib.loads(spec.read_text(encoding="utf-8")).get("source", {})
    if "columns" in source:
        return [str(column) for column in source["columns"]]
    path = given.get("path")
    return _header(Path(path) if path else spec.parent / str(source.get("files", "")), source)


def _header(file: Path, source: dict[str, Any]) -> list[str]:
    """Return the first line of a text file, packed or not."""
    packed = file.suffix == ".gz"
    suffix = Path(file.stem).suffix if packed else file.suffix
    separator = _SEPARATORS.get(f".{source['format']}" if "format" in source else suffix)
    if separator is None:
        return []
    with (gzip.open if packed else open)(file, "rt", encoding="utf-8-sig") as lines:
        return next(csv.reader(lines, delimiter=separator), [])
