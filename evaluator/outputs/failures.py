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

    The block may also read files. An error that concerns another file is passed on unchanged, and so is an error
    without the system's error number: a library raises it about the content of a file.

    Raises
    ------
    OutputError
        The disk is full, the user may not write to the folder, or the like.
    """
    try:
        yield
    except EvaluatorError:
        raise
    except OSError as error:
        if error.errno is None or not _concerns(target, error.filename):
            raise
        remedy = "make room, or choose another place."
        raise OutputError(f"{target}: cannot be written ({os.strerror(error.errno)}).", remedy=remedy) from None


def _concerns(target: Path, named: object) -> bool:
    """Whether an error concerns an output: it names no file, the output, or a file in, above or hidden beside it."""
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
