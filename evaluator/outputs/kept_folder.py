"""The folder of what is kept until an output is written: ours alone, and one command's at a time."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.errors import EvaluatorError, OutputExistsError
from evaluator.outputs.atomic import refuse_existing
from evaluator.outputs.failures import writing
from evaluator.outputs.locks import base_name, locked
from evaluator.outputs.ownership import refuse_foreign
from evaluator.outputs.staging import collect, sync

# Under which the metadata of a file says what it answers.
RESULT = b"result"

_KEPT = re.compile(r"([0-9a-f]{64})-([0-9a-f]{64})\.kept")
# Of a result that is not finished: it lacks its expected value, or is part of that.
_PART = re.compile(r"([0-9a-f]{64})-([0-9a-f]{64})\.part")
_PASSING = re.compile(r"\.[0-9a-f]{16}\.kept")
# Of version 0.1.0: without a checksum.
_BEFORE = re.compile(r"([0-9a-f]{64})()\.parquet")
_PASSING_BEFORE = re.compile(r"\.[0-9a-f]{64}\.parquet-[0-9]+")

_MAGIC = b"PAR1"  # Parquet's first bytes, which a writer that is killed may not have come to


def kept_name(key: str, checksum: str) -> str:
    """Return the name of a file, from the hash of what it answers and that of its content, both in hex."""
    return f"{key}-{checksum}.kept"


def part_name(key: str, checksum: str) -> str:
    """Return the name of a file that holds part of a result; as `kept_name`."""
    return f"{key}-{checksum}.part"


def write_kept(folder: Path, name: Callable[[str, str], str], key: str, content: bytes) -> None:
    """Write a file, whole or not at all, under the name that its key and the hash of its content give it.

    Raises
    ------
    OutputError
        The folder cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        passing = folder / passing_name()
        try:
            passing.write_bytes(content)
            sync(passing)
            passing.rename(folder / name(key, hashlib.sha256(content).hexdigest()))
        finally:
            passing.unlink(missing_ok=True)
        # With its entry in the folder above, if it is the first.
        sync(folder)
        sync(folder.parent)


def read_kept(file: Path, digest: str) -> bytes | None:
    """Return what a file holds; None where it is not what was written, by its hash."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == digest else None


def passing_name() -> str:
    """Return a name that no other process takes, for a file on its way."""
    return f".{secrets.token_hex(8)}.kept"


def kept_files(folder: Path) -> dict[Path, tuple[str, str]]:
    """Return the files of kept results, each with the two hashes of its name."""
    names = {file: _KEPT.fullmatch(file.name) or _BEFORE.fullmatch(file.name) for file in _files(folder)}
    return {file: (match[1], match[2]) for file, match in names.items() if match}


def part_files(folder: Path) -> dict[Path, tuple[str, str]]:
    """Return the files of parts of results, each with the two hashes of its name."""
    matches = {file: _PART.fullmatch(file.name) for file in _files(folder)}
    return {file: (match[1], match[2]) for file, match in matches.items() if match}


@contextmanager
def kept_beside(out: Path) -> Iterator[Path]:
    """Give the folder of results that are kept until `out` is written, ``out.partial``, which need not be there yet.

    What processes that are gone left half written in it is removed, and all of it where they were gone between writing
    `out` and removing it. When the block is left `out` is written: the
    results are removed, and stay if anything fails.

    Raises
    ------
    OutputExistsError
        `out` exists; or something of the folder's name is not ours, or not ours alone: it would be deleted in the end.
    OutputInUseError
        Another process keeps its results there.
    """
    folder = out.parent / f"{base_name(out.name)}.partial"
    try:
        refuse_existing(out)
    except OutputExistsError:
        _collect_kept(folder, out)
        raise
    with ExitStack() as stack:
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            held = stack.enter_context(locked(folder))
            _refuse_foreign(folder)
            for file in _files(folder):
                # Without locks nobody knows whether it is left or in use.
                if held and _is_passing(file) and _is_ours(file):
                    file.unlink(missing_ok=True)
        try:
            yield folder
            # All is written: what cannot be removed costs nothing.
            with suppress(OSError):
                _remove_ours(folder)
        finally:
            with suppress(OSError):  # it never was there, or holds results, or what someone put there meanwhile
                folder.rmdir()


def _collect_kept(folder: Path, out: Path) -> None:
    """Remove what a study that was killed when `out` was written left: its lock, and the results that `out` has.

    Results that are younger than `out` are of another study, and so are those beside what no command wrote.
    """
    collect(folder)
    with suppress(EvaluatorError, OSError), locked(folder) as held:
        written = (out / "manifest.json").stat().st_mtime_ns
        if held and folder.is_dir() and all(file.stat().st_mtime_ns <= written for file in _files(folder)):
            _remove_ours(folder)
            folder.rmdir()


def _remove_ours(folder: Path) -> None:
    for file in filter(_is_ours, _files(folder)):
        file.unlink(missing_ok=True)


def _refuse_foreign(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OutputExistsError(
            f"{folder} is no folder, and finished results are kept there.", remedy="name another folder, or move it."
        )
    if folder.is_dir():
        refuse_foreign(folder, _is_ours, kind="the kept results of a study")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_ours(file: Path) -> bool:
    if file.is_symlink() or not file.is_file():
        return False
    if _BEFORE.fullmatch(file.name):
        return _holds_result(file, damaged=False)
    known = _is_passing(file) or any(name.fullmatch(file.name) for name in (_KEPT, _PART))
    return known and _holds_result(file, damaged=True)


def _is_passing(file: Path) -> bool:
    return bool(_PASSING.fullmatch(file.name) or _PASSING_BEFORE.fullmatch(file.name))


def _holds_result(file: Path, *, damaged: bool) -> bool:
    """Whether a file is a kept result; `damaged`: or at least the beginning of a Parquet file that cannot be read."""
    try:
        return RESULT in (pq.read_schema(file).metadata or {})
    except (OSError, pa.ArrowException):
        return damaged and _is_begun(file)


def _is_begun(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return _MAGIC.startswith(stream.read(len(_MAGIC)))
    except OSError:
        return False
