"""Options that several commands share, the log that they name, and how commands show their work and their result."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from evaluator.cli.command_parameters import argument, option, options_of
from evaluator.errors import UsageError
from evaluator.escape import escape
from evaluator.options.declaration import Option
from evaluator.options.shared import CLUSTER, DATASET, KEPT, OUTPUT, POLICIES, STUDY, WHICH_LOG
from evaluator.reports.command_words import use_command_words

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rich.console import Console, RenderableType

    from evaluator.findings.finding import Finding
    from evaluator.replays.result import ReplayResult
    from evaluator.reports.console import ReportConsole
    from evaluator.reports.document import Document


P = ParamSpec("P")

debug = False
stopped_by: int | None = None
# Folder in which the running command keeps its finished results.
kept_in: Path | None = None
signals_wait = False
# Console of the progress bar, above which notes are printed; None without a bar.
bar_console: Console | None = None
Full = Annotated[
    bool, option("full", Option(default=False, help="Print the whole report, not only a screen of it", question=KEPT))
]
AsJson = Annotated[
    bool, option("json", Option(default=False, help="Print JSON (versioned schema) instead of a table", question=KEPT))
]
Dataset = Annotated[str | None, option("dataset", DATASET)]
# The log as a positional argument, for commands that take it so as well.
LOG = Option(
    default=None,
    help="Bundled name, a spec.toml or a converted folder; as --dataset. Default: synthetic.",
    question=WHICH_LOG,
)
Log = Annotated[str | None, argument(LOG, completes="dataset")]
# Positional argument for a name; each command says what it names.
NAME = Option(default=None, help="Its name.")
Policies = Annotated[list[str], option("policies", POLICIES)]
OUT = Option(default=None, help="New folder", example="run1", panel=OUTPUT, question=KEPT, flags=("-o",))
# Codes of findings for which a scheduled run ends with `NOT_FIT`.
FAIL_ON = Option(
    default=(),
    help="Exit with code 4 where the result has a finding of this code, or any warning (warn); once for each, or with "
    "commas",
    example="few-rounds,conversion-gap",
    panel=OUTPUT,
)
FailOn = Annotated[list[str] | None, option("fail_on", FAIL_ON)]
# Exit code for a result that exists and should not be used; scripts tell it apart from the exit codes of failed runs.
NOT_FIT = 4
Cluster = Annotated[str | None, option("cluster", CLUSTER)]
# Option of a command without replays, which has another panel.
DelaysCluster = Annotated[str | None, option("cluster", CLUSTER.but(panel=STUDY))]
# Option of a command whose options have no panels.
SimulateCluster = Annotated[str | None, option("cluster", CLUSTER.but(panel=""))]


def _set_debug(wanted: bool) -> bool:
    global debug
    debug = debug or wanted
    return wanted


Debug = Annotated[
    bool,
    option("debug", Option(default=False, help="Show the traceback of an error"), callback=_set_debug, is_eager=True),
]


def out_option(help: str, **changes: Any) -> Any:
    """Return the option for the output of a command, which says what is written there."""
    return option("out", OUT.but(help=help, **changes))


def kept_out_option(holds: str, interrupted: str, *, example: str = "run1", **changes: Any) -> Any:
    """Return the option for an output beside which what an interrupted run finished is kept."""
    kept = f"what an interrupted {interrupted} finished is kept in {example}.partial, where the same command goes on"
    return out_option(f"New folder for {holds}; {kept}", example=example, **changes)


def codes_of(words: Iterable[str] | None) -> frozenset[str]:
    """Return the codes that ``--fail-on`` names, which may include ``warn``; UnknownNameError for another one."""
    from evaluator.findings.catalogue import catalogue, explain

    codes = frozenset(code for word in words or () for code in word.split(","))
    for code in codes - {"warn"} - catalogue().keys():
        explain(code)
    return codes


def fail_on(codes: Set[str], findings: Iterable[Finding]) -> None:
    """Exit with `NOT_FIT` if a finding has one of these codes, after naming these codes on stderr."""
    met = {f.code for f in findings if f.code in codes or ("warn" in codes and f.severity in ("fail", "warn"))}
    if met:
        note(f"Not fit by --fail-on: {', '.join(sorted(met))}. evaluate explain CODE says what to do.")
        raise typer.Exit(NOT_FIT)


def say(sentence: str) -> None:
    """Print a result of one line."""
    _end_work()
    typer.echo(escape(use_command_words(sentence)))


def note(sentence: str) -> None:
    """Print a note on stderr, apart from the result."""
    line = escape(use_command_words(sentence))
    if bar_console is None:
        typer.echo(line, err=True)
    else:
        bar_console.print(line, markup=False, highlight=False, soft_wrap=True)


def stdout() -> ReportConsole:
    """Return the console of the result: coloured on a terminal, plain in a pipe, 120 or ``COLUMNS`` wide."""
    from evaluator.reports.console import ReportConsole

    _end_work()
    console = ReportConsole()
    return console if console.is_terminal or _has_columns() else ReportConsole(width=120)


def show(result: Any, *, full: bool, as_json: bool = False) -> None:
    """Print a result: as JSON, as its full report, or as a report that fits a screen."""
    if as_json:
        print_json(result if isinstance(result, dict) else result.to_dict())
        return
    from evaluator.reports.documents import show as print_result

    print_result(stdout(), result, full=full)


def show_document(document: Document) -> None:
    """Print a document in which options have their names of the command line."""
    from evaluator.reports.documents import name_command_options
    from evaluator.reports.terminal import print_document

    print_document(stdout(), name_command_options(document))


def _has_columns() -> bool:
    columns = os.environ.get("COLUMNS", "")
    return columns.isdecimal() and int(columns) > 0


def print_json(value: Any) -> None:
    """Print JSON to stdout."""
    import json

    _end_work()
    typer.echo(json.dumps(value, indent=2))


class _Work:
    """What a terminal shows of a command that works: what it does, how far it is, and at the end how long it took."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        counts = TextColumn("{task.fields[amount]}")
        columns = (TextColumn("{task.description}"), BarColumn(20), counts, TimeRemainingColumn())
        self.console, self._began = console, time.monotonic()
        self._bar, self._first = Progress(*columns, console=console), ""
        self._live = Live(
            console=console, transient=True, redirect_stdout=False, refresh_per_second=10, get_renderable=self._shown
        )
        self.do("Starting")
        self._live.start(refresh=True)

    def _shown(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        return Group(Text(self._first.rstrip()), self._bar) if self._first else self._bar

    def show_first(self, text: str) -> None:
        """Show lines above the bar, until it is taken off."""
        self._first = text
        self._live.refresh()

    def do(self, what: str, total: int | None = None) -> None:
        """Show what is done now, of a number of steps; None: no end is known."""
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._task = self._bar.add_task(what, total=total, amount="")
        self._live.refresh()  # what takes less time than lies between two drawings is shown, too

    def say(self, what: str) -> None:
        """Say in other words what is done now."""
        self._bar.update(self._task, description=what)

    def advance(self, done: int, unit: str, stages: Sequence[tuple[str, int | None]], last: str) -> None:
        """Show that so many steps more are done, never more than there are; after all of them, what is done last."""
        self._bar.advance(self._task, done)
        task = self._bar.tasks[0]
        whole, steps = task.total, int(task.completed)
        amount = f"{steps:,}" if whole is None else f"{min(steps, int(whole)):,} of {int(whole):,}"
        ends = accumulate(count or 0 for _, count in stages)
        stage = next((name for (name, _), end in zip(stages, ends, strict=True) if steps < end), last)
        other = stage != task.description
        self._bar.update(self._task, description=stage, amount=f"{amount} {unit}")
        if other:
            self._live.refresh()

    def stop(self, *, finished: bool) -> None:
        """Take it off the terminal; where the work is finished, say how long it took."""
        global work, bar_console
        self._live.stop()
        work = bar_console = None
        if finished:
            minutes, seconds = divmod(time.monotonic() - self._began, 60)
            self.console.print(f"Took {f'{minutes:.0f} min ' * (minutes > 0)}{seconds:.1f} s.", highlight=False)


# Of the command that works, while stderr is a terminal.
work: _Work | None = None


def at_work(command: Callable[P, None]) -> Callable[P, None]:
    """Let a command show from its first moment that it works; it stops when the result is printed."""

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        with _working():
            command(*arguments, **options)

    return run


@contextmanager
def _working() -> Iterator[None]:
    """Show work, if none is shown, while stderr is a terminal."""
    global work, bar_console
    from rich.console import Console

    console = Console(stderr=True)
    if work is not None or not console.is_terminal:
        yield
        return
    started = work = _Work(console)
    bar_console = console
    finished = False
    try:
        yield
        finished = True
    finally:
        if work is started:
            started.stop(finished=finished)


def doing(what: str) -> None:
    """Show what a command does now."""
    if work is not None:
        work.do(what)


def show_first(results: Sequence[ReplayResult]) -> None:
    """Show on a terminal what replays found, while logs are resampled; the report takes its place."""
    if work is None:
        return
    from evaluator.reports.comparison import first_numbers
    from evaluator.reports.terminal import text_of

    width, height = work.console.size
    work.show_first(text_of(first_numbers(results, most=max(height - 5, 1)), width=width))


def _end_work() -> None:
    if work is not None:
        work.stop(finished=True)


@contextmanager
def progress(
    unit: str, stages: Mapping[str, int | None], *, compiles: bool = False, last: str = ""
) -> Iterator[Callable[[int], None]]:
    """Show how far the stages of a work are if stderr is a terminal, and give the function that advances them.

    Each stage has a number of units, None where no end is known; after all of them the bar says what is done last.
    Where policies are compiled in the block, signals wait for the next advance or the end of the block: an exception
    that a signal raised inside the compiler's callbacks would be printed and lost. A second signal does not wait. The
    bar names what is being compiled.
    """
    global signals_wait
    steps = [(name, count) for name, count in stages.items() if count != 0] or list(stages.items())
    with _working():
        shown = work

        def advance(done: int) -> None:
            _heed_signals()
            if shown is not None:
                shown.advance(done, unit, steps, last or steps[-1][0])

        if shown is not None:
            known = [count for _, count in steps if count is not None]
            shown.do(steps[0][0], max(sum(known), 1) if known else None)
            shown.advance(0, unit, steps, last or steps[-1][0])
        signals_wait = compiles
        try:
            with (
                _announce_compiling(lambda sentence: shown.say(sentence or steps[0][0]))
                if compiles and shown is not None
                else nullcontext()
            ):
                yield advance
        finally:
            signals_wait = False
        doing("Finishing")
    _heed_signals()


def _announce_compiling(say: Callable[[str], None]) -> AbstractContextManager[None]:
    from evaluator.engine.kernels.compiling import announced

    return announced(say)


def _heed_signals() -> None:
    if stopped_by is not None:
        sys.exit(128 + stopped_by)


@contextmanager
def workers(cluster: str | None) -> Iterator[Executor | None]:
    """Give the executor of a cluster, whose workers report to stderr; None if this process computes."""
    if cluster is None:
        yield None
        return
    from evaluator.jobs.addresses import workers_at

    with workers_at(cluster, note) as executor:
        yield executor


if TYPE_CHECKING:
    from evaluator.datasets import Reading


def reads_log(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a log's reading; it shows from its first moment that it works."""
    from evaluator.reading.options import ReadingOptions

    # Commands keep the columns that they need by themselves; generated logs have a seed in their spec.
    return options_of(ReadingOptions, to="reading", but=("seed", "keep"), given_only=True)(at_work(command))


def one_log(log: str | None, dataset: str | None) -> str | None:
    """Return the log that the user names as argument or by ``--dataset``; None if the user names no log."""
    return one_place(("LOG", log), ("--dataset", dataset), "logs")


def one_place(first: tuple[str, str | None], second: tuple[str, str | None], what: str) -> str | None:
    """Return the value given as argument or by an option, each with its name in messages; UsageError for both."""
    (place, by_place), (option, by_option) = first, second
    if by_place is not None and by_option is not None:
        raise UsageError(f"{place} and {option} name two {what}.", remedy="leave one out.")
    return by_option if by_place is None else by_place


def open_log(dataset: str | None, reading: Mapping[str, Any], keep: Sequence[str] = ()) -> Reading:
    """Read the named log with some extra columns; notes report a log that was not named, and rows that are left out."""
    doing("Reading the log")
    from evaluator.datasets import read

    if dataset is None:
        note("No --dataset named: using the bundled synthetic log.")
    done = read("synthetic" if dataset is None else dataset, **reading_options(reading, keep))
    if done.quarantine.num_rows:
        note(f"{done.quarantine.num_rows:,} bad rows were left out; --out writes them to quarantine.parquet.")
    doing("Preparing")
    return done


def reading_options(reading: Mapping[str, Any], keep: Sequence[str]) -> dict[str, Any]:
    """Return the options for reading a log with some extra columns."""
    return {**reading, **({"keep": list(keep)} if keep else {})}


def origin(source: Reading, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of a result: the log with its size and time range, and the options of its reading."""
    meta = source.log.meta
    log_facts = {"displays": len(source.log), "tick": meta.tick, "time_range": list(source.log.time_range())}
    return {"dataset": meta.name, "fingerprint": meta.fingerprint, "reading": reading, "log": log_facts}
