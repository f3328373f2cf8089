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
from evaluator.auditor.result import Audit
from evaluator.evaluation.comparison import Comparison
from evaluator.evaluation.result import ReplayResult
from evaluator.outputs.whole import whole_folder
from evaluator.simulator.options import SimulateOptions
from evaluator.simulator.result import Simulation

MANIFEST_SCHEMA = "evaluate.manifest/1"
_VERSIONS = ("numpy", "numba", "polars", "pyarrow", "scipy")


def write_result(out: Path, result: ReplayResult | Comparison, *, source: dict[str, Any], quarantine: pa.Table) -> None:
    """Write ``trajectory.parquet``, ``result.json`` and ``manifest.json`` to a new folder, all of them or none.

    A comparison also has ``curves.parquet``.

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
    replays = [{"policy": plan["policy"], "options": plan["options"]} for plan in plans]
    with whole_folder(out) as folder:
        # In one piece, so that equal rows make equal files.
        pq.write_table(result.trajectory.combine_chunks(), folder / "trajectory.parquet")
        if isinstance(result, Comparison):
            pq.write_table(result.curve_table, folder / "curves.parquet")
        if quarantine.num_rows:
            pq.write_table(quarantine, folder / "quarantine.parquet")
        write_json(folder / "result.json", result.to_dict())
        write_json(folder / "manifest.json", manifest(source=source, replays=replays))


def write_simulation(out: Path, found: Simulation, *, options: SimulateOptions) -> None:
    """Write ``curves.parquet``, ``result.json`` and ``manifest.json`` to a new folder, all of them or none."""
    policies = [curve.policy for curve in found.curves]
    with whole_folder(out) as folder:
        pq.write_table(found.table, folder / "curves.parquet")
        write_json(folder / "result.json", found.to_dict())
        write_json(
            folder / "manifest.json", manifest(scenario=found.scenario, policies=policies, options=asdict(options))
        )


def write_audit(out: Path, found: Audit, *, source: dict[str, Any]) -> None:
    """Write what twins and live runs gave, ``result.json`` and ``manifest.json`` to a new folder, all or none."""
    policies = [policy.policy for policy in found.policies]
    with whole_folder(out) as folder:
        for name in ("twins", "differences", "live"):
            pq.write_table(getattr(found, name), folder / f"{name}.parquet")
        write_json(folder / "result.json", found.to_dict())
        write_json(
            folder / "manifest.json", manifest(source=source, policies=policies, options=found.options.to_dict())
        )


def manifest(*, libraries: tuple[str, ...] = (), **done: Any) -> dict[str, Any]:
    """Return how a result came about: what was done, to which source, with which versions of what."""
    return {
        "schema": MANIFEST_SCHEMA,
        **done,
        "versions": {"delayed-replay": __version__, **{name: version(name) for name in (*_VERSIONS, *libraries)}},
        "python": platform.python_version(),
    }


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
