"""Errors that teach: what is wrong, where, how to repair it.

Every error of the package is one line, carries an exit code for the command line, and is also a builtin,
so that ``except ValueError`` keeps working in a notebook.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Self

from evaluator.visible import visible

# Characters of a message: what quotes a value of a file is as long as the file makes it.
LONGEST = 1_200
# Files of a folder among which the nearest name is looked for.
_LOOKED_THROUGH = 10_000
# Where Python prints tracebacks of itself; the command line says which option prints it.
SEE_TRACEBACK = "the traceback shows where"


def _one_line(text: str) -> str:
    r"""Return a text without control characters, its middle left out where it is very long.

    >>> print(_one_line("ad\x1b[2J, line 3"))
    ad\x1b[2J, line 3
    >>> _one_line("a" * 2_000)[890:950]
    'aaaaaaaaaa... (800 characters) ...aaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    text = visible(text)
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 300]}... ({len(text) - LONGEST:,} characters) ...{text[-300:]}"


class EvaluatorError(Exception):
    """Base of all errors raised on purpose: one printable line, whatever the values that it quotes.

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

    def __new__(cls, *told: str, **_: str) -> Self:
        """Return an error that is yet to be told what is wrong, also where a worker's is made anew.

        That goes by the ``__new__`` of a class; the one of the first builtin among its bases refuses what is an OSError
        too, and Dask sends some other error then.
        """
        return (OSError if issubclass(cls, OSError) else Exception).__new__(cls, *told)

    def __init__(self, what: str, *, remedy: str = "") -> None:
        self.what = _one_line(what)
        self.remedy = _one_line(remedy)
        told = f"{self.what} Hint: {self.remedy}" if remedy else self.what
        super().__init__(told)
        self.args = (told,)  # OSError takes those of __new__ for its own

    def __str__(self) -> str:
        # KeyError would print the repr of its argument.
        return str(self.args[0])


class DataError(EvaluatorError, ValueError):
    """A log, a dataset spec or a source file breaks its contract (exit code 3)."""

    exit_code = 3


class SpecError(DataError):
    """A dataset's ``spec.toml`` does not say what it must."""


class SourceError(DataError, OSError):
    """A source file is missing, truncated, or in another format than its spec says."""


class LogError(DataError):
    """Rows break the log contract."""


class PropensityError(DataError):
    """Propensities are absent, or not probabilities."""


class NoRoundsError(DataError):
    """A replay accepted no display of the log, so there is nothing to estimate from."""


class UsageError(EvaluatorError, ValueError):
    """The call's words do not fit (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """No policy, dataset or action has this name."""


class ParameterError(UsageError):
    """A parameter is unknown, of the wrong type or out of range."""


class UnknownOptionError(UsageError, TypeError):
    """A function has no such option; the message says where it lives, if anywhere."""


class KeyOfFileError(ParameterError):
    """A key of a file is unknown, or its value does not fit; the message names it as it stands there."""

    quotes_keys = True


class OutputExistsError(UsageError, FileExistsError):
    """The output is there already and would be overwritten."""


class OutputInUseError(UsageError, BlockingIOError):
    """Another process writes the output at this moment."""


class OutputError(EvaluatorError, OSError):
    """The output cannot be written: the disk is full, or the folder may not be written."""


class PolicyError(EvaluatorError, RuntimeError):
    """A policy raised or chose an impossible action."""


class WorkerError(EvaluatorError, RuntimeError):
    """Workers are gone, ended by what they were given, or refused: they have another version, or read another log."""


def nearest(name: str, known: Iterable[str], *, listed: Iterable[str] | None = None) -> str:
    """Return a sentence naming the known word nearest to `name`, or those that begin so, or all of them.

    Parameters
    ----------
    name
        Word that is not known.
    known
        Words that are.
    listed
        Those to name where none is near, and the rest are counted; None for all.

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
    """Return a sentence that names the file or folder whose path is nearest to one that is not there, else `otherwise`.

    Each part of the path that is not there is compared with what its folder holds; patterns are not.

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
    r"""Raise if a file's name is not UTF-8: JSON, Arrow and half of all libraries could not write it down.

    Raises
    ------
    UsageError
        The name is not UTF-8; the message quotes it.

    >>> refuse_no_utf8("caf\udce9.csv")
    Traceback (most recent call last):
    evaluator.errors.UsageError: caf\udce9.csv is no UTF-8 name. Hint: rename it.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is no UTF-8 name.", remedy="rename it.") from None
