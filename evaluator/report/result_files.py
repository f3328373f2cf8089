"""A result in a folder: trajectory, result, the report that is printed, and manifest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.audits.result import Audit
from evaluator.checks.run import CheckReport
from evaluator.comparisons.result import Comparison
from evaluator.replays.result import ReplayResult
from evaluator.report.audit import print_audit
from evaluator.report.chapters import report_of, report_of_facts
from evaluator.report.check import print_check
from evaluator.report.comparison import print_comparison
from evaluator.report.console import as_text
from evaluator.report.dataset import print_facts
from evaluator.report.manifest import REPORT, write_json, write_manifest, write_text
from evaluator.report.page_files import write_page
from evaluator.report.simulation import print_simulation
from evaluator.report.terminal import print_result
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.result import Simulation


def write_result(
    folder: Path, result: ReplayResult | Comparison, *, source: dict[str, Any], quarantine: pa.Table, command: str = ""
) -> None:
    """Write ``trajectory.parquet``, ``result.json``, ``report.txt``, the page and ``manifest.json`` to an empty folder.

    A comparison also has ``curves.parquet``. The page is ``report.html``, and ``chapter.json`` what it is made of.

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
    command
        Command that gave the result, for the page and the manifest.
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
    write_page(folder, report_of(result), command=command, source=source)
    write_manifest(folder, command=command, source=source, replays=replays)


def write_check(folder: Path, found: CheckReport, *, source: dict[str, Any], command: str = "") -> None:
    """Write ``checks.parquet``, ``result.json``, ``report.txt``, page and ``manifest.json`` to an empty folder."""
    pq.write_table(found.check_table, folder / "checks.parquet")
    write_text(folder / REPORT, as_text(print_check, found))
    write_json(folder / "result.json", found.to_dict())
    write_page(folder, report_of(found), command=command, source=source)
    write_manifest(folder, command=command, source=source, options=asdict(found.options))


def write_simulation(folder: Path, found: Simulation, *, options: SimulateOptions, command: str = "") -> None:
    """Write ``curves.parquet``, ``result.json``, ``report.txt``, page and ``manifest.json`` to an empty folder."""
    policies = [curve.policy for curve in found.curves]
    pq.write_table(found.curve_table, folder / "curves.parquet")
    write_text(folder / REPORT, as_text(print_simulation, found))
    write_json(folder / "result.json", found.to_dict())
    write_page(folder, report_of(found), command=command)
    write_manifest(folder, command=command, scenario=found.scenario, policies=policies, options=asdict(options))


def write_audit(folder: Path, found: Audit, *, source: dict[str, Any], command: str = "") -> None:
    """Write what twins and live runs gave, ``result.json``, ``report.txt``, page and manifest to an empty folder."""
    policies = [policy.policy for policy in found.policies]
    for name in ("twins", "differences", "live"):
        pq.write_table(getattr(found, name), folder / f"{name}.parquet")
    write_text(folder / REPORT, as_text(print_audit, found))
    write_json(folder / "result.json", found.to_dict())
    write_page(folder, report_of(found), command=command, source=source)
    write_manifest(folder, command=command, source=source, policies=policies, options=found.options.to_dict())


def write_facts(folder: Path, facts: dict[str, Any], *, source: dict[str, Any], command: str = "") -> None:
    """Write what `evaluator.datasets.show` found: ``result.json``, ``report.txt``, page and ``manifest.json``."""
    write_text(folder / REPORT, as_text(print_facts, facts))
    write_json(folder / "result.json", {"schema": "evaluate.dataset/1", **facts})
    write_page(folder, report_of_facts(facts), command=command, source=source)
    write_manifest(folder, command=command, source=source)
