"""The command ``evaluate delays``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.command_parameters import option, options_of
from evaluator.cli.options import one_log, open_log, origin, reading_options, reads_log
from evaluator.cli.output import finish, kept_output, this_command, write_result
from evaluator.delays.study.options import DelayOptions
from evaluator.errors import UsageError
from evaluator.options.declaration import Option
from evaluator.options.shared import WHICH_LOG
from evaluator.reading.options import FILE, DelayFileOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluator.delays.study.delay_jobs import DelayPlace, DelayWorkers
    from evaluator.log.delay_rows import DelayRows

# Options that apply to logs and to files of delays.
OF_BOTH = ("on_error", "quarantine_at_most")
EXAMPLES = (
    "Examples: evaluate delays shop/spec.toml --windows 1h,1d,7d,30d,2000   |   "
    "evaluate delays --file shop/delays.csv --delay-column delay_s --by banner --followed followed_s --out how-late"
)


@reads_log
@options_of(DelayFileOptions, to="filing", but=OF_BOTH, given_only=True)
@options_of(DelayOptions, to="studying")
def delays_command(
    reading: dict[str, Any],
    studying: dict[str, Any],
    filing: dict[str, Any],
    log: o.Log = None,
    dataset: o.Dataset = None,
    file: Annotated[
        Path | None,
        option(
            "file",
            Option(
                default=None,
                help="Instead of a log, one conversion a row",
                example="delays.csv",
                panel=FILE,
                question=WHICH_LOG,
            ),
        ),
    ] = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        o.kept_out_option("fit.json (replay --delays takes it), tables and charts", "study", example="how-late"),
    ] = None,
    cluster: o.DelaysCluster = None,
    debug: o.Debug = False,
) -> None:
    """Say how late conversions come, and which window to use.

    Corrects for what the log could not see yet: a conversion is in the log only if it came before the log stopped
    looking, so plain histograms show delays too short. Outcomes that come before the reward, such as clicks, are named
    with how often it follows them, and whether that depends on the action.
    """
    from evaluator.comparisons.log_places import place_of
    from evaluator.delays.study.run import steps, study_log, study_rows
    from evaluator.log.column import source_columns
    from evaluator.reading.delay_file import place_of_file

    options = DelayOptions(**studying)
    by = filing.pop("by", None if file is not None else "action")
    group = None if by == "none" else by
    source: dict[str, Any]
    with kept_output(out) as (folder, save):
        if file is not None:
            of_log = {f"--{name.replace('_', '-')}": value for name, value in reading.items() if name not in OF_BOTH}
            _refuse_log_options(file, {"LOG": log, "--dataset": dataset, "--joint": options.joint or None, **of_log})
            asked = DelayFileOptions(**filing, by=group, **{name: reading[name] for name in OF_BOTH if name in reading})
            rows, quarantine = _read_file(file, asked)
            source = {
                "file": str(file), "delay_column": asked.delay_column, "unit": rows.tick, "followed": asked.followed
            }  # fmt: skip
            todo = steps(None, options, grouped=group is not None)
            with _workers(cluster, folder, todo, lambda: place_of_file(file, asked, rows)) as workers:
                study = study_rows(rows, options, workers=workers)
        else:
            _refuse_file_options(filing)
            keep = [] if group == "action" else source_columns(group)
            named = one_log(log, dataset)
            opened = open_log(named, reading, keep)
            quarantine = opened.quarantine
            todo = steps(opened.log, options, grouped=group is not None)
            with _workers(
                cluster, folder, todo, lambda: place_of(opened.log, named, reading_options(reading, keep))
            ) as workers:  # fmt: skip
                study = study_log(opened.log, options, by=group, workers=workers)
            source = origin(opened, reading)
        undrawn = save(write_result, study, source=source, quarantine=quarantine, command=this_command())
    finish(study, out, full=full, as_json=as_json)
    if undrawn:
        o.note(f"{', '.join(undrawn)} could not be drawn.")


@contextmanager
def _workers(
    cluster: str | None, folder: Path | None, todo: int, place: Callable[[], DelayPlace]
) -> Iterator[DelayWorkers]:  # fmt: skip
    """Give the workers, the folder of kept results and the progress bar with which a study of `todo` steps runs."""
    from evaluator.delays.study.delay_jobs import DelayWorkers
    from evaluator.outputs.kept_folder import KeptJobs

    store = None if folder is None else KeptJobs(folder, o.note)
    with (
        o.workers(cluster) as executor,
        o.progress("fits and tests", {"Fitting": todo}, compiles=cluster is None) as advance,
    ):
        yield DelayWorkers(advance, store, executor, None if executor is None else place())


def _refuse_log_options(file: Path, others: dict[str, Any]) -> None:
    for name, value in others.items():
        if value is not None:
            raise UsageError(f"{name} does not go with --file {file}.", remedy="read a log, or a bare file of delays.")


def _refuse_file_options(given: dict[str, Any]) -> None:
    for name in given:
        raise UsageError(f"`{name}` goes with --file.", remedy="logs say in their spec what these say of a file.")


def _read_file(file: Path, asked: DelayFileOptions) -> tuple[DelayRows, pa.Table]:
    from evaluator.reading.delay_file import read_delay_file

    done = read_delay_file(file, asked)
    if done.quarantine.num_rows:
        o.note(f"{done.quarantine.num_rows:,} bad rows were left out; --out writes them to quarantine.parquet.")
    return done.rows, done.quarantine
