"""A result in a folder: trajectory, result and manifest, all of them or none."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator import __version__
from evaluator.atomic import whole_folder
from evaluator.evaluation.comparison import Comparison
from evaluator.evaluation.result import ReplayResult
from evaluator.simulator.options import SimulateOptions
from evaluator.simulator.result import Simulation

MANIFEST_SCHEMA = "evaluate.manifest/1"
_VERSIONS = ("numpy", "numba", "polars", "pyarrow", "scipy")


def write_result(out: Path, result: ReplayResult | Comparison, *, source: dict[str, Any], quarantine: pa.Table) -> None:
    """Write ``trajectory.parquet``, ``result.json`` and ``manifest.json`` to a new folder.

    Parameters
    ----------
    out
        Must not exist.
    result
        The result of a replay, or those of a comparison.
    source
        Where the log came from: dataset, fingerprint, options of the adapter.
    quarantine
        Rows left out of the log; written as ``quarantine.parquet`` if there are any.
    """
    plans = [r.plan for r in (result.results if isinstance(result, Comparison) else [result])]
    manifest = {
        "schema": MANIFEST_SCHEMA,
        "replays": [{"policy": plan["policy"], "options": plan["options"]} for plan in plans],
        "source": source,
        **_software(),
    }
    with whole_folder(out) as folder:
        pq.write_table(result.trajectory, folder / "trajectory.parquet")
        if quarantine.num_rows:
            pq.write_table(quarantine, folder / "quarantine.parquet")
        _write_json(folder, result=result.to_dict(), manifest=manifest)


def write_simulation(out: Path, found: Simulation, *, options: SimulateOptions) -> None:
    """Write ``curves.parquet``, ``result.json`` and ``manifest.json`` to a new folder, all of them or none."""
    manifest = {
        "schema": MANIFEST_SCHEMA,
        "scenario": found.scenario,
        "policies": [curve.policy for curve in found.curves],
        "options": asdict(options),
        **_software(),
    }
    with whole_folder(out) as folder:
        pq.write_table(found.table, folder / "curves.parquet")
        _write_json(folder, result=found.to_dict(), manifest=manifest)


def _software() -> dict[str, Any]:
    return {
        "versions": {"delayed-replay": __version__, **{name: version(name) for name in _VERSIONS}},
        "python": platform.python_version(),
    }


def _write_json(folder: Path, **values: dict[str, Any]) -> None:
    for name, value in values.items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
