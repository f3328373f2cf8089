"""Files that appear together and whole, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evaluator.atomic import refuse_existing
from evaluator.errors import UsageError

HINT = "name another file, or remove this one."


def refuse_outputs(targets: Sequence[Path]) -> None:
    """Raise before the work is done if an output exists or its folder does not.

    Raises
    ------
    OutputExistsError
        One of the files exists.
    UsageError
        Their folder does not.
    """
    for target in targets:
        refuse_existing(target, hint=HINT)
        if not target.parent.is_dir():
            raise UsageError(f"No folder {target.parent}.", hint="make it, or name a file elsewhere.")


@contextmanager
def whole_files(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """Give files to write in a hidden sibling folder, which become `targets`, the last one last.

    Whoever finds the last target finds the others. Any failure, Ctrl-C included, leaves none of them.
    """
    refuse_outputs(targets)
    partial = targets[-1].parent / f".{targets[-1].name}.partial-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    placed: list[Path] = []
    try:
        parts = [partial / target.name for target in targets]
        yield parts
        for part in parts:
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
        refuse_outputs(targets)
        for part, target in zip(parts, targets, strict=True):
            part.rename(target)
            placed.append(target)
    except BaseException:
        for target in placed:
            target.unlink()
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
