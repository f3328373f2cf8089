"""Completions for shells: policies, bundled datasets and scenarios, logs in the folder, columns of the named log.

A shell waits for each answer, so that this module loads neither polars nor numba nor numpy. Where no completion fits,
shells offer files.
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
    """Return the policies that complete a name, or the last name of a list with commas."""
    from evaluator.policies.registry import names

    return _complete_last(incomplete, names())


def dataset_names(incomplete: str) -> list[str]:
    """Return the bundled datasets and scenarios, the specs and the converted folders that complete a name."""
    from evaluator.datasets.locate import bundled_names

    return [*_filter_names(bundled_names(), incomplete), *_find_paths(incomplete, _is_log)]


def scenario_names(incomplete: str) -> list[str]:
    """Return the bundled scenarios and the specs that complete a name."""
    from evaluator.datasets.locate import bundled_scenarios

    return [*_filter_names(bundled_scenarios(), incomplete), *_find_paths(incomplete, _is_spec)]


def finding_codes(incomplete: str) -> list[str]:
    """Return the codes of findings that complete a code, or the last code of a list with commas."""
    from evaluator.findings.catalogue import catalogue

    return _complete_last(incomplete, ["warn", *catalogue()])


def data_files(incomplete: str) -> list[str]:
    """Return the data files that complete a path."""
    from evaluator.datasets.locate import DATA_SUFFIXES

    return _find_paths(incomplete, lambda path: bool(DATA_SUFFIXES & set(path.suffixes)) and path.is_file())


def _filter_names(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in sorted(names) if name.startswith(incomplete)]


def _find_paths(incomplete: str, fits: Callable[[Path], bool]) -> list[str]:
    """Return the fitting paths that complete a path, with the folder as the user wrote it."""
    folder, slash, name = incomplete.rpartition("/")
    try:
        paths = [path for path in Path(f"{folder}{slash}" or ".").iterdir() if path.name.startswith(name)]
        return sorted(f"{folder}{slash}{path.name}" for path in paths if not path.name.startswith(".") and fits(path))
    except OSError:
        return []  # a shell cannot show an error about the folder


def _is_spec(path: Path) -> bool:
    return path.suffix == ".toml" and path.is_file()


def _is_log(path: Path) -> bool:
    return _is_spec(path) or any((path / name).is_file() for name in ("spec.toml", "meta.json"))


def made_names(incomplete: str) -> list[str]:
    """Return the datasets of `evaluate datasets make` that complete a name."""
    from evaluator.datasets.options import MADE

    return [name for name in MADE if name.startswith(incomplete)]


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns that complete a name, if the spec or the first line of a text file lists the columns."""
    try:
        return _complete_last(incomplete, _read_columns(context.params))
    except (OSError, ValueError):
        return []  # a shell cannot show an error about the file; the command will report it


# Functions that complete an option or argument, by its name.
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


def _complete_last(incomplete: str, words: Iterable[str]) -> list[str]:
    """Return the words that complete the last word of a list with commas or plus signs, after the others."""
    at = max(incomplete.rfind(","), incomplete.rfind("+")) + 1
    return [incomplete[:at] + word for word in words if word.startswith(incomplete[at:])]


def _read_columns(given: dict[str, Any]) -> list[str]:
    if (file := given.get("file")) is not None:
        return _read_header(Path(file), {})
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
    return _read_header(Path(path) if path else spec.parent / str(source.get("files", "")), source)


def _read_header(file: Path, source: dict[str, Any]) -> list[str]:
    """Return the names in the first line of a text file, compressed or not; empty for another format."""
    packed = file.suffix == ".gz"
    suffix = Path(file.stem).suffix if packed else file.suffix
    separator = _SEPARATORS.get(f".{source['format']}" if "format" in source else suffix)
    if separator is None:
        return []
    with (gzip.open if packed else open)(file, "rt", encoding="utf-8-sig") as lines:
        return next(csv.reader(lines, delimiter=separator), [])
