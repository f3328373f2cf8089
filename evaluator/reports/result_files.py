"""A result in a folder: tables, result, printed report, page and manifest; and one page of several such folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.audits.result import Audit
from evaluator.checks.run import CheckReport
from evaluator.comparisons.conditions import with_audit, with_checks
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.verdict import Verdict
from evaluator.delays.fit_file import fill_fit_file
from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.study.result import DelayStudy
from evaluator.errors import ParameterError, SourceError
from evaluator.replays.result import ReplayResult
from evaluator.reports.charts import SMALL, charts_of
from evaluator.reports.document import Block, Chapter, Layout, Section, VerdictBlock
from evaluator.reports.documents import chapter_of, document_of, name_command_options
from evaluator.reports.html import PAGE, page_of, pictures
from evaluator.reports.manifest import (
    AGAIN,
    MANIFEST,
    REPORT,
    log_dates,
    read_chapter,
    read_json,
    versions,
    write_chapter,
    write_json,
    write_manifest,
    write_text,
)
from evaluator.reports.terminal import text_of
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.result import Simulation
from evaluator.units import ROUND

Source = Mapping[str, Any] | None
# Number of characters of a line of report.txt.
_WIDTH = 100
# Number of steps of the CDF in fit.json: the conversion share is too low by less than one part in this number.
_STEPS = 4096
_ARRAYS = ("cdf", "naive", "low", "high", "band_low", "band_high")
_RESULT = "result.json"
_FINGERPRINT = "fingerprint"
_KNOWN: dict[str, Callable[[Verdict, Mapping[str, Any]], Verdict]] = {"check": with_checks, "audit": with_audit}


def write_report(folder: Path, result: object, *, command: str, source: Mapping[str, Any] | None = None) -> None:
    """Write ``report.txt``, ``report.html``, and ``chapter.json``, from which pages of several results are made.

    The command is the one that gave the result, empty if Python did; the source is what is known of its log.
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


def _write_files(
    folder: Path, result: Any, tables: Mapping[str, pa.Table], *, source: Source = None, command: str, **done: Any
) -> None:
    """Write tables as Parquet, ``result.json``, ``report.txt``, page and ``manifest.json`` to a folder.

    The result may be its facts as JSON; tables have the names of their files. The source of the log is dataset,
    fingerprint and options of the reading, None without a log. `done` are further entries of the manifest.
    """
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    write_json(folder / "result.json", result if isinstance(result, dict) else result.to_dict())
    write_report(folder, result, command=command, source=source)
    write_manifest(folder, command=command, source=source, **done)


def _left_out(quarantine: pa.Table) -> dict[str, pa.Table]:
    """Return the table of the rows that were left out of a log, if there are any."""
    return {"quarantine": quarantine} if quarantine.num_rows else {}


def write_result(
    folder: Path, result: ReplayResult | Comparison, *, source: Source, quarantine: pa.Table, command: str = ""
) -> None:
    """Write a replay or a comparison with its rounds; a comparison also has ``curves.parquet``."""
    plans = [r.plan for r in (result.results if isinstance(result, Comparison) else [result])]
    replays = [{name: plan[name] for name in ("policy", "options", "warm_start")} for plan in plans]
    # The rows are written in one piece, so that equal rows give equal files.
    tables = {"trajectory": result.trajectory.combine_chunks(), **_left_out(quarantine)}
    if isinstance(result, Comparison):
        tables["curves"] = result.curve_table
    _write_files(folder, result, tables, source=source, command=command, replays=replays)


def write_check(folder: Path, report: CheckReport, *, source: Source, command: str = "") -> None:
    """Write a check of a log with ``checks.parquet``."""
    tables = {"checks": report.check_table}
    _write_files(folder, report, tables, source=source, command=command, options=report.options.to_dict())


def write_simulation(folder: Path, simulation: Simulation, *, options: SimulateOptions, command: str = "") -> None:
    """Write a simulation with ``curves.parquet``."""
    policies = [curve.policy for curve in simulation.curves]
    _write_files(
        folder, simulation, {"curves": simulation.curve_table}, command=command, scenario=simulation.scenario,
        policies=policies, options=options.to_dict(),
    )  # fmt: skip


def write_audit(folder: Path, audit: Audit, *, source: Source, command: str = "") -> None:
    """Write an audit with the results of its twins and live runs."""
    policies = [policy.policy for policy in audit.policies]
    tables = {name: getattr(audit, name) for name in ("twins", "differences", "live")}
    options = audit.options.to_dict()
    _write_files(folder, audit, tables, source=source, command=command, policies=policies, options=options)


def write_facts(folder: Path, facts: dict[str, Any], *, source: Source, command: str = "") -> None:
    """Write the facts of `evaluator.datasets.show`."""
    _write_files(folder, facts, {}, source=source, command=command)


def write_study(
    folder: Path, study: DelayStudy, *, source: Source, quarantine: pa.Table, command: str = ""
) -> list[str]:
    """Write a study of delays, and return the names of the pictures that could not be drawn.

    ``fit.json`` (product limit) and ``law.json`` (best law) are what ``evaluate replay --delays`` takes.
    ``cdf.parquet`` holds delay (ticks), cdf, naive, low, high, band_low, band_high; ``groups.parquet`` group, delay,
    cdf, low, high.
    Charts are in ``report.html``, one page that needs no network, and as PNG.
    """
    rows = study.rows
    tick = ROUND if rows.tick == ROUND else f"1 {rows.tick}"
    charts = {name: chart for name, chart in charts_of(study).items() if name not in SMALL}
    fill_fit_file(folder / "fit.json", _thinned(study.fit), tick=tick)
    if study.choice is not None:
        fill_fit_file(folder / "law.json", study.choice.comparison.best_fit, tick=tick)
    drawn = pictures(charts)
    for name, picture in drawn.items():
        (folder / f"{name}.png").write_bytes(picture)
    tables = {"cdf": study.cdf_table, **({"groups": study.group_cdf_table} if study.groups else {})}
    done = {"command": "delays", "options": study.options.to_dict(), "by": rows.by}
    _write_files(
        folder, study, {**tables, **_left_out(quarantine)}, source=source, command=command, study=done,
        libraries=("altair", "vl-convert-python"),
    )  # fmt: skip
    return [f"{name}.png" for name in charts if name not in drawn]


def _thinned(fit: NonparametricFit) -> NonparametricFit:
    """Return the fit with fewer steps: it is exact at evenly spaced quantiles, and flat between them."""
    if fit.delays.size <= _STEPS:
        return fit
    at = np.unique(np.searchsorted(fit.cdf, np.arange(1, _STEPS + 1) / _STEPS).clip(max=fit.delays.size - 1))
    arrays = {name: getattr(fit, name)[at] for name in ("delays", *_ARRAYS)}
    return replace(fit, **arrays, source=f"{fit.source}, at {at.size:,} quantiles")


def report_runs(folders: Sequence[str | Path]) -> str:
    """Return one self-contained HTML page with a chapter for each result that a command wrote with ``--out``.

    Several results may answer the same question (one command, policies, windows and options) on logs of different
    dates. Then the first chapter has their joint verdict, a chart of each policy along the dates and what changed, and
    their chapters follow in the order of the dates.

    Parameters
    ----------
    folders
        Folders of the results.

    Raises
    ------
    SourceError
        A folder holds no result of this version, or is damaged.
    ParameterError
        No folder is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> page = report_runs(["monday", "tuesday"])  # doctest: +SKIP
    >>> Path("watch.html").write_text(page, encoding="utf-8")  # doctest: +SKIP
    """
    return told_page(folders)[0]


def told_page(folders: Sequence[str | Path]) -> tuple[str, list[str]]:
    """Return the page of `report_runs`, and a line on each run that does not fit the order of time of the others."""
    from evaluator.reports.over_time import order_by_time  # it draws, and who writes a result need not

    places = [Path(folder) for folder in folders]
    if not places:
        raise ParameterError("No folder is named.", remedy="name those that commands wrote with --out.")
    ordered = order_by_time(places, add_known_results(places, [read_chapter(folder) for folder in places]))
    return page_of(ordered.chapters), ordered.left


def add_known_results(folders: Sequence[Path], chapters: Sequence[Chapter]) -> list[Chapter]:
    """Return the chapters, each verdict completed by the checks and audits of the same log among these folders."""
    known = [
        (chapter.reproduce.get(_FINGERPRINT), _adding(_KNOWN[chapter.kind], folder / _RESULT))
        for folder, chapter in zip(folders, chapters, strict=True)
        if chapter.kind in _KNOWN
    ]

    def decided(chapter: Chapter) -> Chapter:
        log = chapter.reproduce.get(_FINGERPRINT)
        additions = [add for fingerprint, add in known if fingerprint == log is not None]
        return replace(chapter, sections=tuple(_decided(section, additions) for section in chapter.sections))

    return [decided(chapter) if chapter.kind == "compare" else chapter for chapter in chapters]


def _adding(add: Callable[[Verdict, Mapping[str, Any]], Verdict], path: Path) -> Callable[[Verdict], Verdict]:
    """Return a function that adds the result in a file to a verdict."""
    result = read_json(path)
    if not {"checks", "policies"} & result.keys():
        raise SourceError(f"{path}: not as a command wrote it.", remedy=AGAIN)

    def added(verdict: Verdict) -> Verdict:
        try:
            return add(verdict, result)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SourceError(f"{path}: not as a command wrote it, at {error}.", remedy=AGAIN) from None

    return added


def _decided(section: Section, known: Sequence[Callable[[Verdict], Verdict]]) -> Section:
    def block_of(block: Block) -> Block:
        if not isinstance(block, VerdictBlock):
            return block
        verdict = block.verdict
        for add in known:
            verdict = add(verdict)
        return replace(block, verdict=verdict)

    return replace(section, blocks=tuple(map(block_of, section.blocks)))
