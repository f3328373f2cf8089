"""A result in a folder: tables, result, printed report, page and manifest; and one page of several such folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
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
from evaluator.reports.document import Block, Chapter, Layout, VerdictBlock
from evaluator.reports.documents import SMALL, chapter_of, charts_of, document_of, name_command_options
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


def write_result(
    folder: Path,
    result: Any,
    *,
    command: str = "",
    source: Source = None,
    quarantine: pa.Table | None = None,
    options: SimulateOptions | None = None,
) -> list[str]:
    """Write a result, or its facts as JSON, to a folder; return the names of the pictures that could not be drawn.

    Every folder has ``result.json``, ``report.txt``, ``report.html``, ``chapter.json`` (from which pages of several
    results are made) and ``manifest.json``; tables are Parquet. The command is the one that gave the result, empty if
    Python did; the source of the log is dataset, fingerprint and options of the reading, None without a log; rows that
    were left out of the log are a table, too; options are those of a simulation, whose result has none.
    """
    tables: dict[str, pa.Table] = {}
    done: dict[str, Any] = {}
    undrawn: list[str] = []
    match result:
        case ReplayResult() | Comparison():
            # The rows are written in one piece, so that equal rows give equal files.
            tables = {"trajectory": result.trajectory.combine_chunks()}
            plans = [r.plan for r in (result.results if isinstance(result, Comparison) else [result])]
            done["replays"] = [{name: plan[name] for name in ("policy", "options", "warm_start")} for plan in plans]
        case CheckReport():
            tables, done = {"checks": result.check_table}, {"options": result.options.to_dict()}
        case Simulation():
            tables = {"curves": result.curve_table}
            done = {"scenario": result.scenario, "policies": [curve.policy for curve in result.curves]}
            done["options"] = None if options is None else options.to_dict()
        case Audit():
            tables = {name: getattr(result, name) for name in ("twins", "differences", "live")}
            done = {"policies": [policy.policy for policy in result.policies], "options": result.options.to_dict()}
        case DelayStudy():
            undrawn = _write_study(folder, result)
            tables = {"cdf": result.cdf_table, **({"groups": result.group_cdf_table} if result.groups else {})}
            study = {"command": "delays", "options": result.options.to_dict(), "by": result.rows.by}
            done = {"study": study, "libraries": ("altair", "vl-convert-python")}
    if isinstance(result, Comparison):
        tables["curves"] = result.curve_table
    if quarantine is not None and quarantine.num_rows:
        tables["quarantine"] = quarantine
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    write_json(folder / _RESULT, result if isinstance(result, dict) else result.to_dict())
    _write_report(folder, result, command, source or {})
    write_manifest(folder, command=command, source=source, **done)
    return undrawn


def _write_report(folder: Path, result: object, command: str, source: Mapping[str, Any]) -> None:
    """Write the printed report, the page, and the chapter from which pages of several results are made."""
    text = text_of(name_command_options(document_of(result, Layout(width=_WIDTH))), width=_WIDTH)
    write_text(folder / REPORT, text)
    dates = log_dates(source.get("log"))
    facts = {
        "command": command,
        "dataset": str(source.get("dataset") or ""),
        "fingerprint": str(source.get("fingerprint") or ""),
        "dates of the log": str(dates or ""),
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
        "manifest": f"{MANIFEST}, beside this page: every option, and the checksum of every file",
    }
    known = {name: fact for name, fact in facts.items() if fact}
    chapter = chapter_of(result, known, dates="" if dates is None else dates.spoken)
    write_chapter(folder, chapter)
    write_text(folder / PAGE, page_of([chapter]))


def _write_study(folder: Path, study: DelayStudy) -> list[str]:
    """Write the fits and the charts of a study of delays; return the names of those that could not be drawn.

    ``fit.json`` (product limit) and ``law.json`` (best law) are what ``evaluate replay --delays`` takes.
    ``cdf.parquet`` holds delay (ticks), cdf, naive, low, high, band_low, band_high; ``groups.parquet`` group, delay,
    cdf, low, high. Charts are in ``report.html``, one page that needs no network, and as PNG.
    """
    tick = ROUND if study.rows.tick == ROUND else f"1 {study.rows.tick}"
    charts = {name: chart for name, chart in charts_of(study).items() if name not in SMALL}
    fill_fit_file(folder / "fit.json", _thinned(study.fit), tick=tick)
    if study.choice is not None:
        fill_fit_file(folder / "law.json", study.choice.comparison.best_fit, tick=tick)
    drawn = pictures(charts)
    for name, picture in drawn.items():
        (folder / f"{name}.png").write_bytes(picture)
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

        def block_of(block: Block) -> Block:
            if not isinstance(block, VerdictBlock):
                return block
            return replace(block, verdict=reduce(lambda verdict, add: add(verdict), additions, block.verdict))

        sections = (replace(part, blocks=tuple(map(block_of, part.blocks))) for part in chapter.sections)
        return replace(chapter, sections=tuple(sections))

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
