"""A result in a folder: tables, result, printed report, page and manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.audits.result import Audit
from evaluator.checks.run import CheckReport
from evaluator.comparisons.result import Comparison
from evaluator.delays.fit_file import fill_fit_file
from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.study.result import DelayStudy
from evaluator.replays.result import ReplayResult
from evaluator.reports.chapter import write_chapter
from evaluator.reports.charts import SMALL, charts_of
from evaluator.reports.document import Layout
from evaluator.reports.documents import chapter_of, document_of, name_command_options
from evaluator.reports.html import PAGE, page_of, pictures
from evaluator.reports.manifest import MANIFEST, REPORT, log_dates, versions, write_json, write_manifest, write_text
from evaluator.reports.terminal import text_of
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.result import Simulation
from evaluator.units import ROUND

# Number of characters of a line of report.txt.
_WIDTH = 100
# Number of steps of the CDF in fit.json: the conversion share is too low by less than one part in this number.
_STEPS = 4096
_ARRAYS = ("cdf", "naive", "low", "high", "band_low", "band_high")


def write_report(folder: Path, result: object, *, command: str, source: Mapping[str, Any] | None = None) -> None:
    """Write ``report.txt``, ``report.html``, and ``chapter.json``, from which pages of several results are made.

    Parameters
    ----------
    folder
        Folder of the result.
    result
        Result of a command.
    command
        Command that gave the result; empty if Python did.
    source
        Facts about the source of its log.
    """
    text = text_of(name_command_options(document_of(result, Layout(width=_WIDTH))), width=_WIDTH)
    write_text(folder / REPORT, text)
    origin = source or {}
    dates = log_dates(origin.get("log"))
    facts = {
        "command": command,
        "dataset": str(origin.get("dataset") or ""),
        "fingerprint": str(origin.get("fingerprint") or ""),
        "dates of the log": str(dates or ""),
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
        "manifest": f"{MANIFEST}, beside this page: every option, and the checksum of every file",
    }
    known = {name: fact for name, fact in facts.items() if fact}
    chapter = chapter_of(result, known, dates="" if dates is None else dates.spoken)
    write_chapter(folder, chapter)
    write_text(folder / PAGE, page_of([chapter]))


def write_result(
    folder: Path, result: ReplayResult | Comparison, *, source: dict[str, Any], quarantine: pa.Table, command: str = ""
) -> None:
    """Write ``trajectory.parquet``, ``result.json``, ``report.txt``, the page and ``manifest.json`` to an empty folder.

    A comparison also has ``curves.parquet``. The page is ``report.html``, and ``chapter.json`` holds its content.

    Parameters
    ----------
    folder
        Empty folder that the files are written to.
    result
        Result of a replay, or of a comparison.
    source
        Facts about the source of the log: dataset, fingerprint, options of the adapter.
    quarantine
        Rows that were left out of the log, written as ``quarantine.parquet`` if there are any.
    command
        Command that gave the result, for the page and the manifest.
    """
    plans = [r.plan for r in (result.results if isinstance(result, Comparison) else [result])]
    replays = [{name: plan[name] for name in ("policy", "options", "warm_start")} for plan in plans]
    # The rows are written in one piece, so that equal rows give equal files.
    pq.write_table(result.trajectory.combine_chunks(), folder / "trajectory.parquet")
    if isinstance(result, Comparison):
        pq.write_table(result.curve_table, folder / "curves.parquet")
    if quarantine.num_rows:
        pq.write_table(quarantine, folder / "quarantine.parquet")
    write_json(folder / "result.json", result.to_dict())
    write_report(folder, result, command=command, source=source)
    write_manifest(folder, command=command, source=source, replays=replays)


def write_check(folder: Path, report: CheckReport, *, source: dict[str, Any], command: str = "") -> None:
    """Write ``checks.parquet``, ``result.json``, ``report.txt``, page and ``manifest.json`` to an empty folder."""
    pq.write_table(report.check_table, folder / "checks.parquet")
    write_json(folder / "result.json", report.to_dict())
    write_report(folder, report, command=command, source=source)
    write_manifest(folder, command=command, source=source, options=report.options.to_dict())


def write_simulation(folder: Path, simulation: Simulation, *, options: SimulateOptions, command: str = "") -> None:
    """Write ``curves.parquet``, ``result.json``, ``report.txt``, page and ``manifest.json`` to an empty folder."""
    policies = [curve.policy for curve in simulation.curves]
    pq.write_table(simulation.curve_table, folder / "curves.parquet")
    write_json(folder / "result.json", simulation.to_dict())
    write_report(folder, simulation, command=command)
    write_manifest(folder, command=command, scenario=simulation.scenario, policies=policies, options=options.to_dict())


def write_audit(folder: Path, audit: Audit, *, source: dict[str, Any], command: str = "") -> None:
    """Write results of twins and live runs, ``result.json``, ``report.txt``, page and manifest to an empty folder."""
    policies = [policy.policy for policy in audit.policies]
    for name in ("twins", "differences", "live"):
        pq.write_table(getattr(audit, name), folder / f"{name}.parquet")
    write_json(folder / "result.json", audit.to_dict())
    write_report(folder, audit, command=command, source=source)
    write_manifest(folder, command=command, source=source, policies=policies, options=audit.options.to_dict())


def write_facts(folder: Path, facts: dict[str, Any], *, source: dict[str, Any], command: str = "") -> None:
    """Write the facts of `evaluator.datasets.show`: ``result.json``, ``report.txt``, page and ``manifest.json``."""
    write_json(folder / "result.json", facts)
    write_report(folder, facts, command=command, source=source)
    write_manifest(folder, command=command, source=source)


class StudyFiles(NamedTuple):
    """Names of the files of a study, and of the pictures that could not be drawn."""

    files: list[str]
    undrawn: list[str]


def write_study(
    folder: Path, study: DelayStudy, *, source: dict[str, Any], quarantine: pa.Table, command: str = ""
) -> StudyFiles:
    """Write a study to an empty folder.

    ``fit.json`` (product limit) and ``law.json`` (best law) are what ``evaluate replay --delays`` takes.
    ``cdf.parquet`` holds delay (ticks), cdf, naive, low, high, band_low, band_high; ``groups.parquet`` group, delay,
    cdf, low, high.
    Charts are in ``report.html``, one page that needs no network, and as PNG.

    Parameters
    ----------
    folder
        Empty folder that the files are written to.
    study
        Study of the delays to write.
    source
        Facts about the source of the delays, for the manifest.
    quarantine
        Rows that were left out, written as ``quarantine.parquet`` if there are any.
    command
        Command that gave the study, for the page and the manifest.
    """
    rows = study.rows
    tick = ROUND if rows.tick == ROUND else f"1 {rows.tick}"
    charts = {name: chart for name, chart in charts_of(study).items() if name not in SMALL}
    fill_fit_file(folder / "fit.json", _thinned(study.fit), tick=tick)
    if study.choice is not None:
        fill_fit_file(folder / "law.json", study.choice.comparison.best_fit, tick=tick)
    pq.write_table(study.cdf_table, folder / "cdf.parquet")
    if study.groups:
        pq.write_table(study.group_cdf_table, folder / "groups.parquet")
    if quarantine.num_rows:
        pq.write_table(quarantine, folder / "quarantine.parquet")
    write_json(folder / "result.json", study.to_dict())
    write_report(folder, study, command=command, source=source)
    drawn = pictures(charts)
    for name, picture in drawn.items():
        (folder / f"{name}.png").write_bytes(picture)
    done = {"command": "delays", "options": study.options.to_dict(), "by": rows.by}
    write_manifest(folder, libraries=("altair", "vl-convert-python"), command=command, source=source, study=done)
    return StudyFiles(
        sorted(file.name for file in folder.iterdir()), [f"{name}.png" for name in charts if name not in drawn]
    )


def _thinned(fit: NonparametricFit) -> NonparametricFit:
    """Return the fit with fewer steps: it is exact at evenly spaced quantiles, and flat between them."""
    if fit.delays.size <= _STEPS:
        return fit
    at = np.unique(np.searchsorted(fit.cdf, np.arange(1, _STEPS + 1) / _STEPS).clip(max=fit.delays.size - 1))
    arrays = {name: getattr(fit, name)[at] for name in ("delays", *_ARRAYS)}
    return replace(fit, **arrays, source=f"{fit.source}, at {at.size:,} quantiles")
