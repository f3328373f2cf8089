"""Options in messages: from their names in Python to their names on the command line."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING

from evaluator.errors import SEE_TRACEBACK

if TYPE_CHECKING:
    from evaluator.options.declaration import Options

# Arguments of the functions, and options that only the command line has.
_MORE = ("dataset", "overwrite", "policies", "policy", "scenario")
_NAMED = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")


@functools.cache
def declared_options() -> tuple[type[Options], ...]:
    """Return all classes that declare options, which are loaded where a message names an option."""
    from evaluator.audits.options import AuditOptions
    from evaluator.checks.options import CheckOptions
    from evaluator.comparisons.options import CompareOptions
    from evaluator.delays.study.options import DelayOptions
    from evaluator.reading.options import DelayFileOptions, MakeOptions, ReadingOptions
    from evaluator.replays.options import ReplayOptions
    from evaluator.simulations.options import SimulateOptions

    return (
        AuditOptions, CheckOptions, CompareOptions, DelayFileOptions, DelayOptions, MakeOptions, ReadingOptions,
        ReplayOptions, SimulateOptions,
    )  # fmt: skip


@functools.cache
def option_names() -> frozenset[str]:
    """Return the names of all options of the functions."""
    return frozenset(_MORE).union(*({field.name for field in dataclasses.fields(cls)} for cls in declared_options()))


def use_command_words(text: str) -> str:
    """Return a message in which options are named as on the command line.

    >>> use_command_words("`level=2` is out of range; use `sampler='rejection'` with `reward_max`, not `theta`.")
    '--level 2 is out of range; use --sampler rejection with --reward-max, not `theta`.'
    """
    return _NAMED.sub(_spoken, text).replace(SEE_TRACEBACK, "--debug shows where")


def _spoken(match: re.Match[str]) -> str:
    """Return a quoted option as on the command line, and any other quoted word unchanged."""
    name, value = match[1], match[2]
    if name not in option_names():
        return match[0]
    flag = f"--{name.replace('_', '-')}"
    if value in (None, "True"):
        return flag
    inner = value.strip("[]").split(", ") if value.startswith("[") else [value]
    return f"{flag} {','.join(one.strip(chr(39)) for one in inner)}"
