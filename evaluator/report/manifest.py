"""How the result in a folder came about, and what its files are known by."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluator.outputs.checksums import described
from evaluator.version import __version__

MANIFEST = "manifest.json"
# What the command printed, beside what it wrote.
REPORT = "report.txt"
MANIFEST_SCHEMA = "evaluate.manifest/2"
_VERSIONS = ("numpy", "numba", "polars", "pyarrow", "scipy")


def write_manifest(folder: Path, *, libraries: tuple[str, ...] = (), **done: Any) -> None:
    """Write ``manifest.json`` beside the files of a result, all of which are there.

    Parameters
    ----------
    folder
        Folder of the files; each is described by its size and checksum.
    libraries
        Names of libraries whose versions matter, beside those that always do.
    **done
        Facts by name: what was done, to which source.
    """
    document = {
        "schema": MANIFEST_SCHEMA,
        **done,
        "versions": versions(*libraries),
        "python": platform.python_version(),
        "files": described(folder),
    }
    write_json(folder / MANIFEST, document)


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of the product, of the libraries that always matter, and of others."""
    return {"delayed-replay": __version__, **{name: version(name) for name in (*_VERSIONS, *libraries)}}


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text with the same bytes everywhere."""
    path.write_text(text, encoding="utf-8", newline="\n")
