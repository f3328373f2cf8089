"""What shells complete: names of policies, bundled datasets and scenarios, logs nearby, columns of the log named.

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
    """Return the bundled datasets and scenarios whose names begin so, and the specs and converted folders nearby."""
    from evaluator.datasets.locate import bundled_names

    return [*_that_begin(bundled_names(), incomplete), *_paths(incomplete, _is_log)]


def scenario_names(incomplete: str) -> list[str]:
    """Return the bundled scenarios whose names begin so, and the specs nearby."""
    from evaluator.datasets.locate import bundled_scenarios

    return [*_that_begin(bundled_scenarios(), incomplete), *_paths(incomplete, _is_spec)]


def finding_codes(incomplete: str) -> list[str]:
    """Return the codes of findings that begin so; of a list with commas, those that its last may be."""
    from evaluator.findings.catalogue import catalogue

    return _last_of_list(incomplete, ["warn", *catalogue()])


def data_files(incomplete: str) -> list[str]:
    """Return the files of rows that a spec can be drafted from, whose paths begin so."""
    from evaluator.datasets.locate import DATA_SUFFIXES

    return _paths(incomplete, lambda path: bool(DATA_SUFFIXES & set(path.suffixes)) and path.is_file())


def _that_begin(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in sorted(names) if name.startswith(incomplete)]


def _paths(incomplete: str, fits: Callable[[Path], bool]) -> list[str]:
    """Return the paths that begin so and fit, as they were begun."""
    folder, slash, name = incomplete.rpartition("/")
    try:
        paths = [path for path in Path(f"{folder}{slash}" or ".").iterdir() if path.name.startswith(name)]
        return sorted(f"{folder}{slash}{path.name}" for path in paths if not path.name.startswith(".") and fits(path))
    except OSError:
        return []  # a shell has no place for what is wrong with a folder


def _is_spec(path: Path) -> bool:
    return path.suffix == ".toml" and path.is_file()


def _is_log(path: Path) -> bool:
    return _is_spec(path) or any((path / one).is_file() for one in ("spec.toml", "meta.json"))


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
    "finding": finding_codes,
    "fail_on": finding_codes,
    "baseline": policy_names,
    "dataset": dataset_names,
    "made": made_names,
    "log": dataset_names,
    "scenario": scenario_names,
    "data": data_files,
    "conversions": data_files,
    "file": data_files,
    "path": data_files,
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
