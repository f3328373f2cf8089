"""Errors that teach: what is wrong, where, how to repair it.

Every error of the package is one line, carries an exit code for the command line, and is also a builtin,
so that ``except ValueError`` keeps working in a notebook.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EvaluatorError(Exception):
    """Base of all errors raised on purpose.

    Parameters
    ----------
    what
        What is wrong and where.
    hint
        How to repair it; printed after ``Hint:``.
    """

    exit_code = 1

    def __init__(self, what: str, *, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        super().__init__(f"{what} Hint: {hint}" if hint else what)

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


class OutputExistsError(UsageError, FileExistsError):
    """The output is there already and would be overwritten."""


class OutputError(EvaluatorError, OSError):
    """The output cannot be written: the disk is full, or the folder may not be written."""


class PolicyError(EvaluatorError, RuntimeError):
    """A policy raised or chose an impossible action."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint naming the known word nearest to `name`, or all of them.

    >>> nearest("otflinucp", ["otflinucb", "ucb1"])
    'did you mean otflinucb?'
    >>> nearest("xyz", ["b", "a"])
    'known: a, b.'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}."
