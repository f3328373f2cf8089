"""What may come of a damaged input: an error that teaches, or a result that is sound; nothing else, and no trace."""

from __future__ import annotations

import hashlib
import resource
import shutil
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from evaluator.errors import EvaluatorError
from tests.fuzz.canary import SONG, put_payload
from tests.fuzz.files import damage
from tests.fuzz.targets import TARGETS, Target, UnsoundError, same

# Of inputs of a few kB: what reading one may take beyond what the process has.
MEMORY = 1_500_000_000
RESIDENT = 400_000_000
LONGEST_LINE = 3_000
# What says where as well as a file's name: the case's folder, the tables of a log, the name of its dataset, an option.
WHERE = {"case", "displays", "conversions", "actions", "meta", "mine", "`followed`"}
_PAGE = resource.getpagesize()


class Bench:
    """Where cases are run: the seeds, a folder for the case, and an empty one to run it in.

    Parameters
    ----------
    seeds
        What `tests.fuzz.seeds.make` wrote.
    scratch
        Empty folder; ``cwd`` in it is the working folder, ``tmp`` that of temporary files.
    """

    def __init__(self, seeds: Path, scratch: Path) -> None:
        self._seeds = seeds
        self.cwd, self.tmp, self._case = (scratch / name for name in ("cwd", "tmp", "case"))
        self._wholes: dict[str, Any] = {}

    def prepare(self) -> None:
        for folder in (self.cwd, self.tmp):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def whole(self, target: Target) -> Any:
        """Return what the undamaged files of a target hold."""
        if target.name not in self._wholes:
            self._place(target)
            self._wholes[target.name] = target.read(self._case)
        return self._wholes[target.name]

    def _place(self, target: Target) -> None:
        shutil.rmtree(self._case, ignore_errors=True)
        shutil.copytree(self._seeds / target.seed, self._case)

    def run(self, name: str, case: int) -> str | None:
        """Return what is wrong with how a case ended, None if nothing is."""
        target = TARGETS[name]
        whole = self.whole(target)
        self._place(target)
        rng = np.random.default_rng([crc32(name.encode()), case])
        files = sorted(path for path in self._case.glob(target.damaged) if path.is_file())
        done = damage(rng, files)
        put_payload(self.cwd)
        before, around = _state(self._case), _state(self.cwd)
        sealed = target.sealed == "whole" or (target.sealed == "bytes" and not done.knowing)
        wrong = self._ended(target, whole, sealed=sealed)
        if (self.cwd / SONG).exists():
            wrong = "code of the file was run"
        elif _state(self._case) != before:
            wrong = "its own files were changed, or others left beside them"
        elif _state(self.cwd) != around or any(self.tmp.iterdir()):
            wrong = "files were left in the working folder or among temporary ones"
        if wrong is not None:
            self.prepare()
            return f"[{done.how}] {wrong}"
        return None

    def _ended(self, target: Target, whole: Any, *, sealed: bool) -> str | None:
        before = forget_peak()
        try:
            with _bounded():
                found = target.read(self._case)
        except EvaluatorError as error:
            return self._lacks(error)
        except UnsoundError as error:
            return str(error)
        except BaseException as error:  # what Polars raises when it panics is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{type(error).__name__} at {_where(error)}: {str(error)[:300]}"
        if peak() - before > RESIDENT:
            return f"{(peak() - before) / 1e6:,.0f} MB of memory"
        if sealed and not same(found, whole):
            return "read without an error as something else than was written"
        return None

    def _lacks(self, error: EvaluatorError) -> str | None:
        line = str(error)
        names = {path.name for path in self._case.rglob("*")} | WHERE
        what = f"{type(error).__name__}: {line[:300]!r}"
        if error.exit_code not in (2, 3):
            return f"exit code {error.exit_code}: {what}"
        if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in line):
            return f"control characters in the line: {what}"
        if len(line) > LONGEST_LINE:
            return f"a line of {len(line):,} characters: {what}"
        if "Hint: " not in line:
            return f"no hint: {what}"
        if not any(name in line for name in names):
            return f"names no file: {what}"
        return None


def _where(error: BaseException) -> str:
    """Return the last line of ours that an exception passed."""
    found, step = "?", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if "/evaluator/" in file:
            found = f"evaluator/{file.rpartition('/evaluator/')[2]}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _state(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "folder" for p in paths}


def forget_peak() -> int:
    """Return the resident size of this process, in bytes, and let `peak` count from here."""
    pa.default_memory_pool().release_unused()  # else what others held may go meanwhile, and hide what grows
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the largest resident size of this process since `forget_peak`, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@contextmanager
def _bounded() -> Iterator[None]:
    """Let the process grow by so much and no more; its warnings are errors."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, hard))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
