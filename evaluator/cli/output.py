"""Outputs of commands: each is reserved before the work is done, and in place before anything is printed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from evaluator.cli import options
from evaluator.cli.options import origin
from evaluator.errors import UsageError

if TYPE_CHECKING:
    from evaluator.comparisons.result import Comparison
    from evaluator.datasets import Reading
    from evaluator.replays.result import ReplayResult


P = ParamSpec("P")
T = TypeVar("T")


class Save(Protocol):
    """Function that calls `write` with the reserved place and the other arguments, or does nothing without a place."""

    def __call__(self, write: Callable[Concatenate[Path, P], T], /, *result: P.args, **more: P.kwargs) -> T | None:
        """Return what `write` returned, or None without an output; OutputError if the output could not be written."""


@contextmanager
def new_folder(out: Path | None) -> Iterator[Save]:
    """Reserve a folder, which is in place when the block has ended; None reserves nothing.

    OutputExistsError or OutputError, before the block, if the folder exists or cannot be written.
    """
    if out is None:
        yield _skip_writing
        return
    from evaluator.outputs.atomic import whole_folder

    with whole_folder(out) as folder:
        yield _write_to(folder, out)


@contextmanager
def kept_output(out: Path | None, *, keeps: bool = True) -> Iterator[tuple[Path | None, Save]]:
    """Reserve a folder as `new_folder`, and give the folder beside it in which finished results are kept until then.

    The second is None without an output, or where nothing is kept.
    """
    from evaluator.outputs.kept_folder import kept_beside

    with kept_beside(out) if keeps and out is not None else nullcontext() as folder, new_folder(out) as save:
        options.kept_in = folder
        yield folder, save


@contextmanager
def new_file(out: Path | None) -> Iterator[Save]:
    """Reserve a file in an existing folder, which is in place when the block has ended; None reserves nothing.

    OutputExistsError, UsageError or OutputError, before the block, if the file exists, its folder does not, or it
    cannot be written.
    """
    if out is None:
        yield _skip_writing
        return
    from evaluator.outputs.atomic import whole_files

    with whole_files([out]) as (part,):
        yield _write_to(part, out)


def this_command() -> str:
    """Return the command line of this run, by which the same result can be computed again.

    The output and the workers are left out, since the result does not depend on them.
    """
    words = iter(sys.argv[1:])
    arguments = []
    for word in words:
        if word in ("--out", "-o", "--cluster"):
            next(words, None)
        elif not word.startswith(("--out=", "--cluster=")):
            arguments.append(word)
    return shlex.join(["evaluate", *arguments])


def finish(result: Any, out: Path | None, *, full: bool, as_json: bool) -> None:
    """Print a result, and name the files of its output, the page first."""
    options.show(result, full=full, as_json=as_json)
    if out is not None:
        names = sorted((file.name for file in out.iterdir()), key=lambda name: (name != "report.html", name))
        options.note(f"Wrote {', '.join(names)} to {out}.")


def refuse_one_place(**outputs: Path | None) -> None:
    """Raise UsageError if two outputs of a command, by the names of their options, would be written to one place."""
    seen: dict[str, str] = {}
    for option, out in outputs.items():
        if out is None:
            continue
        name = f"--{option.replace('_', '-')}"
        if other := seen.get(place := os.path.realpath(out)):
            raise UsageError(f"{other} and {name} are one place: {out}.", remedy="give each a name of its own.")
        seen[place] = name


def _write_to(place: Path, out: Path) -> Save:
    from evaluator.outputs.staging import writing

    def save(write: Callable[Concatenate[Path, P], T], /, *result: P.args, **more: P.kwargs) -> T | None:
        with writing(out):
            return write(place, *result, **more)

    return save


def _skip_writing(write: Callable[Concatenate[Path, P], T], /, *result: P.args, **more: P.kwargs) -> T | None:
    return None


def save_result(save: Save, result: ReplayResult | Comparison, source: Reading, reading: Mapping[str, Any]) -> None:
    """Write the result of a command on a log to its ``--out``."""
    where = origin(source, reading)
    save(write_result, result, source=where, quarantine=source.quarantine, command=this_command())


def write_result(folder: Path, /, result: Any, **facts: Any) -> list[str]:
    """Write a result as `evaluator.reports.result_files.write_result`, which knows all kinds and loads when one is."""
    from evaluator.reports.result_files import write_result as write

    return write(folder, result, **facts)
