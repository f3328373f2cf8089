"""The command ``evaluate datasets init``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument, option
from evaluator.cli.output import new_file
from evaluator.errors import UsageError
from evaluator.escape import escape
from evaluator.options.declaration import Option
from evaluator.options.shared import WHICH_LOG

if TYPE_CHECKING:
    from evaluator.datasets.draft_lines import Draft, Question

EXAMPLES = (
    "Examples: evaluate datasets init shop/displays.csv --conversions shop/sales.csv | "
    "evaluate datasets init shop/displays.csv --conversions shop/sales.csv -o shop/draft.toml"
)
DATA = Option(
    default=None,
    help="CSV, TSV, JSON lines, Parquet or Arrow file of displays, or a glob or folder.",
    question=WHICH_LOG,
)
CONVERSIONS = Option(
    default=None,
    help="File, glob or folder of a second table, of conversions",
    example="sales.parquet",
    question=WHICH_LOG,
)
OUT = o.OUT.but(help="New spec; its files are named relative to it. Default: printed", example="spec.toml", panel="")


def init_command(
    data: Annotated[str, argument(DATA, completes="data")],
    conversions: Annotated[str | None, option("conversions", CONVERSIONS)] = None,
    out: Annotated[Path | None, option("out", OUT)] = None,
    debug: o.Debug = False,
) -> None:
    """Draft a spec.toml from a file: guess what its columns are, say what is a guess, and validate it.

    On a terminal, what the first 10,000 rows cannot tell is asked; else the draft says what to check.
    """
    from evaluator.datasets import draft

    with new_file(out) as save:
        drafted = draft(data, conversions=conversions, ask=_ask if _has_terminal() else None)
        text = drafted.toml(Path() if out is None else out.parent)
        save(lambda place: place.write_text(text, encoding="utf-8"))
    if out is None:
        typer.echo(text, nl=False)
    for sentence in drafted.open:
        o.note(f"check {sentence}")
    if drafted.missing:
        o.note(f"No spec yet: {', '.join(drafted.missing)} could not be told. Complete the lines that lack a value.")
        raise typer.Exit(3)
    _validate(drafted, out)


def _validate(drafted: Draft, out: Path | None) -> None:
    """Read every row as the draft says, and print the number of rows and the next commands."""
    from tempfile import TemporaryDirectory

    from evaluator.datasets import validate

    if out is None:
        with TemporaryDirectory(prefix="evaluate-") as folder:
            place = Path(folder) / "spec.toml"
            place.write_text(drafted.toml(), encoding="utf-8")
            counts = validate(place)["counts"]
    else:
        counts = validate(out)["counts"]
    say: Callable[[str], None] = o.note if out is None else o.say
    spec = shlex.quote(str(out or "spec.toml"))
    known = " --propensity estimate" if "display.propensity_kind" in drafted.commented else ""
    say(f"{spec}: sound, {counts['displays']:,} displays, {counts['conversions']:,} conversions.")
    say("Next, when what the draft says to check is checked:")
    users = " --cluster-by user" if "keep" in drafted.sections else ""
    for command in (f"datasets validate {spec}", f"check -d {spec}{known}", f"replay -d {spec} -p ucb1{known}{users}"):
        say(f"  evaluate {command}")


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _check_answer(question: Question) -> Callable[[str], str]:
    def checked(answer: str) -> str:
        if question.choices is not None and answer.strip() not in question.choices:
            raise typer.BadParameter(f"one of {', '.join(map(escape, question.choices))}")
        return answer.strip()

    return checked


def _ask(question: Question) -> str:
    o.note(f"{question.key}: {question.why}")
    words = escape(question.words)
    try:
        answer: str = typer.prompt(words, default=question.guess, value_proc=_check_answer(question), err=True)
    except typer.Abort:  # Ctrl-D; `stopping` handles Ctrl-C
        typer.echo(err=True)
        raise UsageError(
            f"{question.key}: the answers ended here.", remedy="answer it, or take the guesses: `< /dev/null`."
        ) from None
    return answer
