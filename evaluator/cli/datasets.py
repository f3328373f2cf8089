"""Logs: what they hold, whether they are sound, and their fast form."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument, option, options_of
from evaluator.cli.help import App
from evaluator.cli.options import one_log, reads_log
from evaluator.cli.output import finish, new_file, new_folder, this_command, write_result
from evaluator.errors import UsageError
from evaluator.escape import escape
from evaluator.options.declaration import Option
from evaluator.options.shared import DATASET, JOBS, KEPT, WHICH_LOG
from evaluator.reading.options import MakeOptions, ReadingOptions

if TYPE_CHECKING:
    from evaluator.reading.column_profile import Draft, Question

app = App(help=__doc__, no_args_is_help=True)

_NAME = DATASET.but(
    help="Bundled name, a spec.toml, or a converted folder, on disk or in a bucket.", question=WHICH_LOG
)
_MAKE = (
    "Examples: evaluate datasets make shop -o my-shop && evaluate replay -d my-shop/spec.toml -p linucb --window 7d | "
    "evaluate datasets make criteo_twin --rows 20000 --seed 1 -o twin.tsv.gz && "
    "evaluate replay -d criteo_twin --path twin.tsv.gz --actions top:10 -p ucb1 --propensity estimate:context"
)
_MADE = r"shop, a small example of files of your own; criteo_twin; or a spec.toml with a \[twin] section."
_INIT = (
    "Examples: evaluate datasets init shop/displays.csv --conversions shop/sales.csv | "
    "evaluate datasets init shop/displays.csv --conversions shop/sales.csv -o shop/draft.toml"
)
_DATA = Option(
    default=None,
    help="CSV, TSV, JSON lines, Parquet or Arrow file of displays, or a glob or folder.",
    question=WHICH_LOG,
)
_CONVERSIONS = Option(
    default=None,
    help="File, glob or folder of a second table, of conversions",
    example="sales.parquet",
    question=WHICH_LOG,
)
_SPEC = o.OUT.but(help="New spec; its files are named relative to it. Default: printed", example="spec.toml", panel="")
_JOBS = "Threads; with two or more a large log is written in parts, which hold the same"
Name = Annotated[str, argument(_NAME, completes="dataset")]


@app.command("list", epilog="Example: evaluate datasets list")
def list_command(as_json: o.AsJson = False, debug: o.Debug = False) -> None:
    """List the bundled datasets."""
    from evaluator.reading.summary import bundled

    listed = bundled()
    if as_json:
        o.print_json(listed.to_dict())
        return
    from rich.table import Table

    console = o.stdout()
    # Narrow terminals have no room for all columns; `datasets show` prints the licence.
    columns = [("name", None), ("title", None), ("kind", 14), ("licence", 17)][: 4 if console.width >= 100 else 2]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column, widest in columns:
        table.add_column(column, no_wrap=column == "name", max_width=widest)
    for row in listed.datasets:
        table.add_row(*(getattr(row, column) for column, _ in columns))
    console.print(table)
    o.note("A small example of files of your own: evaluate datasets make shop -o shop.")


@app.command("show", epilog="Example: evaluate datasets show shop/spec.toml")
@reads_log
def show_command(
    reading: dict[str, Any],
    dataset: Name = "synthetic",
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[Path | None, o.out_option("New folder for page, facts, report and manifest")] = None,
    debug: o.Debug = False,
) -> None:
    """Show what a dataset's spec says and, where its files are at hand, what its log holds."""
    from evaluator.datasets import show

    o.doing("Reading the log")
    with new_folder(out) as save:
        facts = show(dataset, **reading)
        if out is not None:
            fingerprint = "" if facts["log"] is None else facts["log"]["fingerprint"]
            source = {"dataset": facts["name"], "fingerprint": fingerprint, "reading": reading}
            save(write_result, facts, source=source, command=this_command())
    finish(facts, out, full=full, as_json=as_json)


@app.command("validate", epilog="Example: evaluate datasets validate shop/spec.toml")
@reads_log
def validate_command(
    reading: dict[str, Any],
    log: o.Log = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Check a spec and every row of its log; exit code 3 if anything is wrong."""
    from evaluator.datasets import validate

    name = one_log(log, dataset)
    if name is None:
        raise UsageError("No log is named.", remedy="`evaluate datasets validate spec.toml`.")
    o.doing("Reading the log")
    report = validate(name, **reading)
    if as_json:
        o.print_json(report)
    else:
        from evaluator.reports.dataset import validation_document

        o.show_document(validation_document(report))
    for note in report["notes"]:
        o.note(note)
    if not report["ok"]:
        raise typer.Exit(3)


@app.command(
    "convert",
    epilog="Example: evaluate datasets convert shop/spec.toml shop-log && evaluate replay -d shop-log -p ucb1",
)
@options_of(ReadingOptions, to="reading", but=("seed",), given_only=True)
def convert_command(
    dataset: Name,
    out: Annotated[str, argument(o.OUT.but(help="New folder, on disk or in a bucket: s3://bucket/shop-log."))],
    reading: dict[str, Any],
    overwrite: Annotated[
        bool, option("overwrite", Option(default=False, help="Replace a converted folder", question=KEPT))
    ] = False,
    jobs: Annotated[int, option("jobs", JOBS.but(help=_JOBS, panel=""))] = 1,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Write a log once as Parquet, which every command reads at disk speed. Files may be larger than memory.

    Rows left out by --on-error quarantine are written to quarantine.parquet in that folder.
    """
    from evaluator.datasets import convert

    with o.progress("rows", {"Converting": None}) as advance:
        done = convert(dataset, out, overwrite=overwrite, jobs=jobs, advance=advance, **reading)
    log, left_out = done.log, done.quarantine
    if as_json:
        from evaluator.reading.facts import Conversion

        written = Conversion(
            out=str(out), name=log.meta.name, displays=len(log), conversions=log.conversions.num_rows,
            actions=log.n_actions, quarantined=left_out.num_rows, counts=dict(log.meta.counts),
        )  # fmt: skip
        o.print_json(written.to_dict())
    else:
        o.say(f"{out}: {len(log):,} displays, {log.conversions.num_rows:,} conversions, {log.n_actions} actions.")
    if left_out.num_rows:
        o.note(f"{left_out.num_rows:,} bad rows were left out: {out}/quarantine.parquet holds them.")


@app.command("init", epilog=_INIT)
def init_command(
    data: Annotated[str, argument(_DATA, completes="data")],
    conversions: Annotated[str | None, option("conversions", _CONVERSIONS)] = None,
    out: Annotated[Path | None, option("out", _SPEC)] = None,
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


@app.command("make", epilog=_MAKE)
@options_of(MakeOptions, to="making")
def make_command(
    dataset: Annotated[str, argument(DATASET.but(help=_MADE, question=WHICH_LOG), completes="made")],
    out: Annotated[Path, o.out_option("New folder of the shop; new gzipped file of a twin", example="shop", panel="")],
    making: dict[str, Any],
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Generate a dataset whose truth is known: a small example shop, or a twin in the exact format of a real file.

    The shop is a folder of tables as CSV, their spec, a study and a file of delays; its README.md says what is true.
    """
    from evaluator.datasets import make

    asked = MakeOptions(**making)
    with o.progress("rows", {"Generating": asked.rows if dataset != "shop" else None}) as advance:
        made = make(dataset, out, rows=asked.rows, seed=asked.seed, jobs=asked.jobs, advance=advance)
    if as_json:
        from evaluator.reading.facts import MadeShop, MadeTwin

        kind = MadeShop if dataset == "shop" else MadeTwin
        document = kind(out=str(made.path), truth=str(made.truth), table=str(made.table), **made.counts)
        o.print_json(document.to_dict())
        return
    o.say(f"{made.path}: " + ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in made.counts.items()))
    o.note(f"Its truth: {made.truth} and {made.table}.")


@app.command("schema", epilog="Example: evaluate datasets schema > spec.schema.json")
def schema_command(debug: o.Debug = False) -> None:
    """Print the JSON schema of a spec.toml, for editors."""
    from evaluator.datasets import json_schema

    o.print_json(json_schema())
