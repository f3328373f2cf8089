"""``evaluate delays``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.cli import options as o
from evaluator.cli.lending import takes
from evaluator.cli.output import new_folder
from evaluator.cli.reading import Dataset, open_log, reads_log
from evaluator.cli.replaying import origin
from evaluator.delays.study.options import STUDY, DelayOptions
from evaluator.errors import UsageError
from evaluator.options.shared import OUTPUT

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluator.log.delay_rows import DelayRows

FILE = "A bare file of delays"
EXAMPLES = (
    "Examples: evaluate delays shop-log --windows 1h,1d,7d,30d,2000   |   "
    "evaluate delays --file delays.csv --delay-column delay_s --by arm --followed 30d --out how-late"
)


@reads_log
@takes(DelayOptions, to="studying")
def delays_command(
    reading: dict[str, Any],
    studying: dict[str, Any],
    log: Annotated[
        str | None, typer.Argument(help="As --dataset: a bundled name, a spec.toml or a converted folder.")
    ] = None,
    dataset: Dataset = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", rich_help_panel=FILE, help="Instead of a log, one conversion a row: --file delays.csv"),
    ] = None,
    delay_column: Annotated[
        str | None,
        typer.Option("--delay-column", rich_help_panel=FILE, help="Column of the delays: --delay-column delay_s"),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", rich_help_panel=FILE, help="Of the delays: ns, us, ms, s, min, h, d, round. Default: s"),
    ] = None,
    followed: Annotated[
        str | None,
        typer.Option(
            "--followed",
            rich_help_panel=FILE,
            help="How long displays were followed: a duration, or a column of the file. Default: to their end.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            rich_help_panel=STUDY,
            help="Source column whose values are groups, or none: --by country. Default: action; of a file, none.",
        ),
    ] = None,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            rich_help_panel=OUTPUT,
            help="New folder for fit.json (replay --delays takes it), tables and charts: --out how-late",
        ),
    ] = None,
    debug: o.Debug = False,
) -> None:
    """Say how late conversions come, and which window to use.

    Corrects for what the log could not see yet: a conversion is in the log only if it came before the log stopped
    looking, so plain histograms show delays too short.
    """
    from evaluator.delays.study.run import study_log, study_rows
    from evaluator.report.delay_files import write_study

    options = DelayOptions(**studying)
    group = None if by == "none" else by
    source: dict[str, Any]
    with new_folder(out) as save:
        if file is not None:
            of_log = {f"--{name.replace('_', '-')}": value for name, value in reading.items() if name != "on_error"}
            _only_of(file, {"LOG": log, "--dataset": dataset, "--joint": options.joint or None, **of_log})
            rows, quarantine = _of_file(file, delay_column, unit, followed, group, reading.get("on_error", "stop"))
            source = {"file": str(file), "delay_column": delay_column, "unit": rows.tick, "followed": followed}
            study = study_rows(rows, options)
        else:
            _only_with_file({"--delay-column": delay_column, "--unit": unit, "--followed": followed})
            if log is not None and dataset is not None:
                raise UsageError("LOG and --dataset name two logs.", hint="leave one out.")
            by = by or "action"
            keep = [] if by in ("action", "none") else [by]
            opened = open_log(log or dataset, {**reading, "keep": keep})
            quarantine = opened.quarantine
            study = study_log(opened.log, options, by=None if by == "none" else by)
            source = origin(opened, reading)
        written = save(write_study, study, source=source, quarantine=quarantine)
    if as_json:
        o.print_json(study.to_dict())
    else:
        from evaluator.report.delays import print_study

        print_study(o.stdout(), study)
    if written is not None:
        o.note(f"Wrote {', '.join(written.files)} to {out}.")
        if written.undrawn:
            o.note(f"{', '.join(written.undrawn)} could not be drawn; delays.html has the same charts.")


def _only_of(file: Path, others: dict[str, Any]) -> None:
    for name, value in others.items():
        if value is not None:
            raise UsageError(f"{name} does not go with --file {file}.", hint="read a log, or a bare file of delays.")


def _only_with_file(alone: dict[str, Any]) -> None:
    for name, value in alone.items():
        if value is not None:
            raise UsageError(f"{name} goes with --file.", hint="logs say in their spec what these say of a file.")


def _of_file(
    file: Path, column: str | None, unit: str | None, followed: str | None, by: str | None, on_error: str
) -> tuple[DelayRows, pa.Table]:
    from evaluator.datasets.delay_file import read_delay_file

    done = read_delay_file(file, column=column, by=by, unit=unit or "s", followed=followed, on_error=on_error)
    if done.quarantine.num_rows:
        o.note(f"{done.quarantine.num_rows:,} bad rows were left out; --out writes them to quarantine.parquet.")
    return done.rows, done.quarantine
