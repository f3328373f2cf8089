"""Where a command writes: reserved before the work is done, in place before anything is printed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from evaluator.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")


class Save(Protocol):
    """Call what writes a result with the place that is reserved for it, and the rest; not called without one."""

    def __call__(self, write: Callable[Concatenate[Path, P], T], /, *result: P.args, **more: P.kwargs) -> T | None:
        """Return what it returned, or None.

        Raises
        ------
        OutputError
            The output could not be written.
        """


@contextmanager
def new_folder(out: Path | None) -> Iterator[Save]:
    """Reserve a folder, None for none, which is there when the block has ended.

    Raises
    ------
    OutputExistsError, OutputError
        Raised before the block: the folder exists, or cannot be written.
    """
    if out is None:
        yield _nowhere
        return
    from evaluator.outputs.atomic import whole_folder

    with whole_folder(out) as folder:
        yield _to(folder, out)


@contextmanager
def new_file(out: Path | None) -> Iterator[Save]:
    """Reserve a file in an existing folder, None for none, which is there when the block has ended.

    Raises
    ------
    OutputExistsError, UsageError, OutputError
        Raised before the block: the file exists, its folder does not, or it cannot be written.
    """
    if out is None:
        yield _nowhere
        return
    from evaluator.outputs.atomic import whole_files

    with whole_files([out]) as (part,):
        yield _to(part, out)


def this_command() -> str:
    """Return the command that runs: whoever types it again gets the same result.

    Where its output goes is left out, and so is which workers compute it.
    """
    words = iter(sys.argv[1:])
    arguments = []
    for word in words:
        if word in ("--out", "-o", "--cluster"):
            next(words, None)
        elif not word.startswith(("--out=", "--cluster=")):
            arguments.append(word)
    return shlex.join(["evaluate", *arguments])


def wrote(out: Path) -> str:
    """Return a sentence that names the files of an output, the page first."""
    names = sorted(file.name for file in out.iterdir())
    page = [name for name in names if name == "report.html"]
    return f"Wrote {', '.join([*page, *(name for name in names if name not in page)])} to {out}."


def refuse_one_place(**outputs: Path | None) -> None:
    """Raise if two outputs of a command, by the names of their options, would be written to one place.

    Raises
    ------
    UsageError
        Two outputs would be written to one place.
    """
    seen: dict[str, str] = {}
    for option, out in outputs.items():
        if out is None:
            continue
        name = f"--{option.replace('_', '-')}"
        if other := seen.get(place := os.path.realpath(out)):
            raise UsageError(f"{other} and {name} are one place: {out}.", remedy="give each a name of its own.")
        seen[place] = name


def _to(place: Path, out: Path) -> Save:
    from evaluator.outputs.failures import writing

    def save(write: Callable[Concatenate[Path, P], T], /, *result: P.args, **more: P.kwargs) -> T | None:
        with writing(out):
            return write(place, *result, **more)

    return save


def _nowhere(write: Callable[Concatenate[Path, P], T], /, *result: P.args, **more: P.kwargs) -> T | None:
    return None
