"""A result in a folder: trajectory, result, the report that is printed, and manifest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.audits.result import Audit
from evaluator.comparisons.result import Comparison
from evaluator.replays.result import ReplayResult
from evaluator.report.audit import print_audit
from evaluator.report.comparison import print_comparison
from evaluator.report.console import as_text
from evaluator.report.manifest import REPORT, write_json, write_manifest, write_text
from evaluator.report.simulation import print_simulation
from evaluator.report.terminal import print_result
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.result import Simulation


def write_result(
    folder: Path, result: ReplayResult | Comparison, *, source: dict[str, Any], quarantine: pa.Table
) -> None:
    """Write ``trajectory.parquet``, ``result.json``, ``report.txt`` and ``manifest.json`` to an empty folder.

    A comparison also has ``curves.parquet``.

    Parameters
    ----------
    folder
        Empty folder that the files are written to.
    result
        Result of a replay, or of a comparison.
    source
        Facts about where the log came from: dataset, fingerprint, options of the adapter.
    quarantine
        Rows that were left out of the log, written as ``quarantine.parquet`` if there are any.
    """
    plans = [r.plan for r in (result.results if isinstance(result, Comparison) else [result])]
    replays = [{name: plan[name] for name in ("policy", "options", "warm_start")} for plan in plans]
    # In one piece, so that equal rows make equal files.
    pq.write_table(result.trajectory.combine_chunks(), folder / "trajectory.parquet")
    if isinstance(result, Comparison):
        pq.write_table(result.curve_table, folder / "curves.parquet")
    if quarantine.num_rows:
        pq.write_table(quarantine, folder / "quarantine.parquet")
    report = as_text(print_comparison, result) if isinstance(result, Comparison) else as_text(print_result, result)
    write_text(folder / REPORT, report)
    write_json(folder / "result.json", result.to_dict())
    write_manifest(folder, source=source, replays=replays)


def write_simulation(folder: Path, found: Simulation, *, options: SimulateOptions) -> None:
    """Write ``curves.parquet``, ``result.json``, ``report.txt`` and ``manifest.json`` to an empty folder."""
    policies = [curve.policy for curve in found.curves]
    pq.write_table(found.curve_table, folder / "curves.parquet")
    write_text(folder / REPORT, as_text(print_simulation, found))
    write_json(folder / "result.json", found.to_dict())
    write_manifest(folder, scenario=found.scenario, policies=policies, options=asdict(options))


def write_audit(folder: Path, found: Audit, *, source: dict[str, Any]) -> None:
    """Write what twins and live runs gave, ``result.json``, ``report.txt`` and ``manifest.json`` to an empty folder."""
    policies = [policy.policy for policy in found.policies]
    for name in ("twins", "differences", "live"):
        pq.write_table(getattr(found, name), folder / f"{name}.parquet")
    write_text(folder / REPORT, as_text(print_audit, found))
    write_json(folder / "result.json", found.to_dict())
    write_manifest(folder, source=source, policies=policies, options=found.options.to_dict())
