"""Where the bundled dataset specs are, and which paths are tables that have no spec yet."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from shlex import quote

from evaluator.errors import SourceError

# Endings of the files that a spec is drafted from, packed or not.
DATA_SUFFIXES = {".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", ".ipc"}


def bundled_folder() -> Path:
    """Return ``_bundled`` in an installed wheel, the top-level ``datasets`` folder in a checkout."""
    package = Path(__file__).parents[1]
    bundled = package / "datasets" / "_bundled"
    return bundled if bundled.is_dir() else package.parent / "datasets"


@cache
def bundled_names() -> dict[str, Path]:
    """Return the spec of each bundled dataset: a folder each, but for the scenarios, which share one."""
    return bundled_logs() | bundled_scenarios()


def bundled_logs() -> dict[str, Path]:
    """Return the spec of each bundled dataset that has a folder of its own."""
    return {path.parent.name: path for path in bundled_folder().glob("*/spec.toml")}


def bundled_scenarios() -> dict[str, Path]:
    """Return the spec of each bundled scenario."""
    scenarios = (bundled_folder() / "synthetic").glob("*.toml")
    return {path.parent.name if path.stem == "spec" else path.stem: path for path in scenarios}


def needs_spec(dataset: str | Path) -> SourceError | None:
    """Return the error that says how a file, a folder or a glob of rows becomes a log; None where it is none of them.

    A name of a bundled dataset, a spec and a folder that has one need no spec.
    """
    name, path = str(dataset), Path(dataset)
    if not name or name in bundled_names() or path.suffix == ".toml":
        return None
    if path.is_file():
        what = "is a file, not a spec.toml or a converted folder"
    elif path.is_dir():
        if any((path / one).is_file() for one in ("spec.toml", "meta.json")) or not _holds_tables(path.rglob("*")):
            return None
        what = "holds files of rows, but no spec.toml and no converted log"
    elif _holds_tables(map(Path, glob.iglob(name))):
        what = "matches files of rows, not a spec.toml or a converted folder"
    else:
        return None
    remedy = f"have its spec drafted: evaluate datasets init {quote(name)}; then name the spec."
    return SourceError(f"{name} {what}.", remedy=remedy)


def _holds_tables(paths: Iterable[Path]) -> bool:
    first = islice(paths, 10_000)  # of a folder that holds a disk, no message waits for the rest
    return any(DATA_SUFFIXES & set(path.suffixes) and path.is_file() for path in first)
