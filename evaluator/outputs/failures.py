"""Failures of the file system while an output is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import EvaluatorError, OutputError
from evaluator.outputs.locks import base_name


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn failures of the file system into one error that names the output.

    What is read meanwhile may fail too: an error about another file is passed on, and one without the system's error
    number, which is a library's word on what it found in a file.

    Raises
    ------
    OutputError
        The disk is full, the folder may not be written, or the like.
    """
    try:
        yield
    except EvaluatorError:
        raise
    except OSError as error:
        if error.errno is None or not _concerns(target, error.filename):
            raise
        hint = "make room, or choose another place."
        raise OutputError(f"{target}: cannot be written ({os.strerror(error.errno)}).", remedy=hint) from None


def _concerns(target: Path, named: object) -> bool:
    """Whether an error concerns an output: its file is the output, lies in it, beside it or above it, or is unnamed."""
    if not isinstance(named, str | bytes):
        return True
    path = Path(os.path.abspath(os.fsdecode(named)))
    for place in (Path(os.path.abspath(target)), Path(os.path.realpath(target))):
        if place.is_relative_to(path) or path.is_relative_to(place):
            return True
        hidden = f".{base_name(place.name)}."
        if path.is_relative_to(place.parent) and path.relative_to(place.parent).parts[0].startswith(hidden):
            return True
    return False
