"""Failures of the file system while an output is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from evaluator.errors import EvaluatorError, OutputError


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn failures of the file system into one error that names the output.

    Raises
    ------
    OutputError
        The disk is full, the folder may not be written...
    """
    try:
        yield
    except EvaluatorError:
        raise
    except (OSError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else str(error).split("\n")[0]
        hint = "make room, or choose another place."
        raise OutputError(f"{target}: cannot be written ({reason}).", hint=hint) from None
