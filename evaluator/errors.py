"""Errors of the package: each says what is wrong, where it is wrong, and how to repair it.

Every error prints as one line and carries an exit code for the command line. Most are also a builtin error, so that
``except ValueError`` works in a notebook.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Self

from evaluator.escape import escape

# Largest number of characters of a message: a message may quote a value of a file, which may have any length.
LONGEST = 1_200
# Largest number of files of a folder that are searched for the nearest name.
_LOOKED_THROUGH = 10_000
# Remedy in Python, which prints tracebacks by itself; the command line names the option that prints them.
SEE_TRACEBACK = "the traceback shows where"


def _one_line(text: str) -> str:
    r"""Return a text without control characters; a very long text loses its middle.

    >>> print(_one_line("ad\x1b[2J, line 3"))
    ad\x1b[2J, line 3
    >>> _one_line("a" * 2_000)[890:950]
    'aaaaaaaaaa... (800 characters) ...aaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    text = escape(text)
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 300]}... ({len(text) - LONGEST:,} characters) ...{text[-300:]}"


class EvaluatorError(Exception):
    """Base class of all errors that are raised on purpose: one printable line, whatever values it quotes.

    Parameters
    ----------
    what
        Sentence or clause that says what is wrong and where.
    remedy
        Sentence that says how to repair it; printed after ``Hint:``.
    """

    exit_code = 1
    # Whether names in backticks are keys of a file, and not options.
    quotes_keys = False

    def __new__(cls, *message: str, **_: str) -> Self:
        """Create the error, also where the error of a Dask worker is created again in this process.

        Python calls the ``__new__`` of the first builtin among the bases. That one refuses a class that is an OSError
        as well, and Dask would then send another error.
        """
        return (OSError if issubclass(cls, OSError) else Exception).__new__(cls, *message)

    def __init__(self, what: str, *, remedy: str = "") -> None:
        self.what = _one_line(what)
        self.remedy = _one_line(remedy)
        message = f"{self.what} Hint: {self.remedy}" if remedy else self.what
        super().__init__(message)
        self.args = (message,)  # OSError keeps the arguments of __new__ otherwise

    def __str__(self) -> str:
        # KeyError would print the repr of its argument.
        return str(self.args[0])


class DataError(EvaluatorError, ValueError):
    """A log, a dataset spec or a source file breaks its contract (exit code 3)."""

    exit_code = 3


class SpecError(DataError):
    """A dataset's ``spec.toml`` lacks a key, or a key or its value is wrong."""


class SourceError(DataError, OSError):
    """A source file is missing or truncated, or has another format than its spec says."""


class LogError(DataError):
    """Rows break the log contract."""


class PropensityError(DataError):
    """Propensities are absent, or not probabilities."""


class NoRoundsError(DataError):
    """A replay accepted no display of the log, so there is nothing to estimate from."""


class UsageError(EvaluatorError, ValueError):
    """A call's options or arguments are wrong, or do not fit together (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """No policy, dataset or action has this name."""


class ParameterError(UsageError):
    """A parameter is unknown, of the wrong type or out of range."""


class UnknownOptionError(UsageError, TypeError):
    """A function has no such option; the message names the functions that have it, if any."""


class KeyOfFileError(ParameterError):
    """A key of a file is unknown or has a wrong value; the message spells the key as the file does."""

    quotes_keys = True


class OutputExistsError(UsageError, FileExistsError):
    """The output exists already and would be overwritten."""


class OutputInUseError(UsageError, BlockingIOError):
    """Another process is writing the output."""


class OutputError(EvaluatorError, OSError):
    """The output cannot be written: the disk is full, or the user may not write to the folder."""


class PolicyError(EvaluatorError, RuntimeError):
    """A policy raised or chose an impossible action."""


class WorkerError(EvaluatorError, RuntimeError):
    """Workers cannot be reached, crashed on a job, or were refused: they run another version or read another log."""


def nearest(name: str, known: Iterable[str], *, listed: Iterable[str] | None = None) -> str:
    """Return a phrase that names the known word nearest to `name`, the known words that begin with it, or all of them.

    Where no known word is near, the words that are `listed` are named, and the others counted; None for all words.

    >>> nearest("otflinucp", ["otflinucb", "ucb1"])
    'did you mean otflinucb?'
    >>> nearest("prom", ["promotions", "synthetic"])
    'did you mean promotions?'
    >>> nearest("xyz", ["b", "a"])
    'known: a, b.'
    >>> nearest("xyz", ["b", "a1", "a2"], listed=["b"])
    'known: b and 2 more.'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1) or [word for word in known if name and word.startswith(name)]
    if close:
        return f"did you mean {' or '.join(close[:3])}?"
    named = known if listed is None else sorted(listed)
    more = f" and {len(known) - len(named):,} more" if len(named) < len(known) else ""
    return f"known: {', '.join(named)}{more}."


def nearest_file(path: str | PathLike[str], otherwise: str) -> str:
    """Return a phrase that names the existing path nearest to a path that does not exist, or else `otherwise`.

    Each missing part of the path is compared with the names in its folder; parts that are patterns are not compared.

    >>> nearest_file("absent/of/all", "name a file.")
    'name a file.'
    """
    missing, at = [], Path(path)
    try:
        while not at.exists() and at != at.parent:
            missing.append(at.name)
            at = at.parent
        for part in reversed(missing):
            if not re.search(r"[*?[]", part):
                names = {entry.name.lower(): entry.name for entry in islice(at.iterdir(), _LOOKED_THROUGH)}
                part = names[difflib.get_close_matches(part.lower(), names, n=1)[0]]
            at /= part
        at.as_posix().encode()
    except (OSError, ValueError, IndexError):
        return otherwise
    return otherwise if at == Path(path) else f"did you mean {at}?"


def refuse_no_utf8(name: str) -> None:
    r"""Raise UsageError if a file's name is not UTF-8: JSON, Arrow and many libraries cannot write such a name.

    >>> refuse_no_utf8("caf\udce9.csv")
    Traceback (most recent call last):
    evaluator.errors.UsageError: caf\udce9.csv is no UTF-8 name. Hint: rename it.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is no UTF-8 name.", remedy="rename it.") from None
