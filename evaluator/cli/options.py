"""Options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.cli.lending import offered, placed
from evaluator.options.declaration import Option
from evaluator.options.shared import DATASET, KEPT, OUTPUT, POLICIES, WHICH_LOG
from evaluator.reports.command_words import use_command_words
from evaluator.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.findings.finding import Finding
    from evaluator.reports.document import Document
    from evaluator.reports.terminal import ReportConsole

debug = False
stopped_by: int | None = None
# Folder in which the running command keeps its finished results.
kept_in: Path | None = None
signals_wait = False
# Console of the progress bar, above which notes are printed; None without a bar.
bar_console: Console | None = None


def _set_debug(wanted: bool) -> bool:
    global debug
    debug = debug or wanted
    return wanted


Debug = Annotated[
    bool,
    offered("debug", Option(default=False, help="Show the traceback of an error"), callback=_set_debug, is_eager=True),
]
Full = Annotated[
    bool,
    offered("full", Option(default=False, help="Print the whole report, not only a screen of it", question=KEPT)),
]
AsJson = Annotated[
    bool, offered("json", Option(default=False, help="Print JSON (versioned schema) instead of a table", question=KEPT))
]
Dataset = Annotated[str | None, offered("dataset", DATASET)]
# The log as a positional argument, for commands that take it so as well.
LOG = Option(
    default=None,
    help="Bundled name, a spec.toml or a converted folder; as --dataset. Default: synthetic.",
    question=WHICH_LOG,
)
Log = Annotated[str | None, placed(LOG, completes="dataset")]
# Positional argument for a name; each command says what it names.
NAME = Option(default=None, help="Its name.")
Policies = Annotated[list[str], offered("policies", POLICIES)]
# Option for the output; each command says what is written there.
OUT = Option(default=None, help="New folder", example="run1", panel=OUTPUT, question=KEPT, flags=("-o",))


# Codes of findings for which a scheduled run ends with `NOT_FIT`.
FAIL_ON = Option(
    default=(),
    help="Exit with code 4 where the result has a finding of this code, or any warning (warn); once for each, or with "
    "commas",
    example="few-rounds,conversion-gap",
    panel=OUTPUT,
)
FailOn = Annotated[list[str] | None, offered("fail_on", FAIL_ON)]
# Exit code for a result that exists and should not be used; scripts tell it apart from the exit codes of failed runs.
NOT_FIT = 4


def codes_of(words: Iterable[str] | None) -> frozenset[str]:
    """Return the codes that ``--fail-on`` names, which may include ``warn``.

    Raises
    ------
    UnknownNameError
        No finding has such a code.
    """
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
    typer.echo(visible(use_command_words(sentence)))


def note(sentence: str) -> None:
    """Print a note on stderr, apart from the result."""
    line = visible(use_command_words(sentence))
    if bar_console is None:
        typer.echo(line, err=True)
    else:
        bar_console.print(line, markup=False, highlight=False, soft_wrap=True)


def stdout() -> ReportConsole:
    """Return the console of the result: coloured on a terminal, plain in a pipe, 120 or ``COLUMNS`` wide."""
    from evaluator.reports.terminal import ReportConsole

    console = ReportConsole()
    return console if console.is_terminal or _has_columns() else ReportConsole(width=120)


def show(result: Any, *, full: bool, as_json: bool = False) -> None:
    """Print a result: as JSON, as its full report, or as a report that fits a screen."""
    if as_json:
        print_json(result.to_dict())
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

    typer.echo(json.dumps(value, indent=2))


@contextmanager
def progress(what: str, total: int | None, *, compiles: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if stderr is a terminal, and give the function that advances it; total None: unknown.

    Where policies are compiled in the block, signals wait for the next advance or the end of the block: an exception
    that a signal raised inside the compiler's callbacks would be printed and lost. A second signal does not wait. The
    bar names what is being compiled.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    global signals_wait, bar_console
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None if total is None else max(total, 1))

        def advance(done: int) -> None:
            _heed_signals()
            bar.advance(task, done)

        def say(sentence: str) -> None:
            bar.update(task, description=sentence or what)

        signals_wait = compiles
        bar_console = None if bar.disable else console
        try:
            with _announce_compiling(say) if compiles and not bar.disable else nullcontext():
                yield advance
        finally:
            signals_wait = False
            bar_console = None
    _heed_signals()


def _announce_compiling(say: Callable[[str], None]) -> AbstractContextManager[None]:
    from evaluator.kernels.announcing import announced

    return announced(say)


def _heed_signals() -> None:
    if stopped_by is not None:
        sys.exit(128 + stopped_by)
