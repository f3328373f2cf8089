"""A study of delays in a folder: fits that a replay takes, tables, charts and one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.delays.fit_file import fill_fit_file
from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.study.result import DelayStudy
from evaluator.report.manifest import write_json, write_manifest
from evaluator.report.pictures import pictures
from evaluator.report.result_files import write_report
from evaluator.units import ROUND

# Steps of the CDF in fit.json: tau is low by less than one part in so many.
_STEPS = 4096
_ARRAYS = ("cdf", "naive", "low", "high", "band_low", "band_high")


class StudyFiles(NamedTuple):
    """Names of the files of a study, and of those that are missing because no picture of them could be drawn."""

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
        Facts about where the delays came from, for the manifest.
    quarantine
        Rows that were left out, written as ``quarantine.parquet`` if there are any.
    command
        Command that gave the study, for the page and the manifest.
    """
    from evaluator.report.study_charts import charts_of

    rows = study.rows
    tick = ROUND if rows.tick == ROUND else f"1 {rows.tick}"
    charts = charts_of(study)
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
    done = {"command": "delays", "options": dict(study.options.__dict__), "by": rows.by}
    write_manifest(folder, libraries=("altair", "vl-convert-python"), command=command, source=source, study=done)
    return StudyFiles(
        sorted(file.name for file in folder.iterdir()), [f"{name}.png" for name in charts if name not in drawn]
    )


def _thinned(fit: NonparametricFit) -> NonparametricFit:
    """Return the fit with few steps: at evenly spaced quantiles, where it is exact, flat in between."""
    if fit.delays.size <= _STEPS:
        return fit
    at = np.unique(np.searchsorted(fit.cdf, np.arange(1, _STEPS + 1) / _STEPS).clip(max=fit.delays.size - 1))
    arrays = {name: getattr(fit, name)[at] for name in ("delays", *_ARRAYS)}
    return replace(fit, **arrays, source=f"{fit.source}, at {at.size:,} quantiles")
