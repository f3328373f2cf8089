"""The folder of kept results beside an output: it belongs to one command at a time, and holds only our own files.

A finished job is one file, which is kept until the command has written its output.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.errors import EvaluatorError, OutputExistsError
from evaluator.outputs.atomic import refuse_existing, refuse_foreign
from evaluator.outputs.locks import base_name, locked
from evaluator.outputs.staging import collect, sync, writing

# Key of the metadata under which a file says which job it is the result of.
RESULT = b"result"

_KEPT = re.compile(r"([0-9a-f]{64})-([0-9a-f]{64})\.kept")
# File of an unfinished result: the result still lacks its expected value, or the file is a part of that value.
_PART = re.compile(r"([0-9a-f]{64})-([0-9a-f]{64})\.part")
_PASSING = re.compile(r"\.[0-9a-f]{16}\.kept")
# Files of version 0.1.0, whose names have no checksum.
_BEFORE = re.compile(r"([0-9a-f]{64})()\.parquet")
_PASSING_BEFORE = re.compile(r"\.[0-9a-f]{64}\.parquet-[0-9]+")

_MAGIC = b"PAR1"  # first bytes of a Parquet file; a killed writer may have written none or some of them
_COLUMN = "found"


def kept_name(key: str, checksum: str) -> str:
    """Return the name of a file from the key of its job and the checksum of its content, both hashes in hexadecimal."""
    return f"{key}-{checksum}.kept"


def part_name(key: str, checksum: str) -> str:
    """Return the name of a file that holds part of a result; parameters as for `kept_name`."""
    return f"{key}-{checksum}.part"


def write_kept(folder: Path, name: Callable[[str, str], str], key: str, content: bytes) -> None:
    """Write a file, whole or not at all, under the name that follows from its key and the hash of its content."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        passing = folder / f".{secrets.token_hex(8)}.kept"  # no other process takes this name
        try:
            passing.write_bytes(content)
            sync(passing)
            passing.rename(folder / name(key, hashlib.sha256(content).hexdigest()))
        finally:
            passing.unlink(missing_ok=True)
        # The first file made the folder, whose own entry in its parent must reach the disk as well.
        sync(folder)
        sync(folder.parent)


def read_kept(file: Path, digest: str) -> bytes | None:
    """Return the content of a file, or None if the file cannot be read or its content does not match the hash."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == digest else None


def pack_table(table: pa.Table, key: str, more: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """Return a table as the bytes of a Parquet file, whose metadata hold the key of its job and more as JSON."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({RESULT: json.dumps({"key": key, **more})}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpack_table(content: bytes, key: str) -> tuple[pa.Table, dict[str, Any]] | None:
    """Return a table and what its metadata hold beside the key; None where it belongs to another job, or is damaged."""
    try:
        table = pq.read_table(pa.BufferReader(content))
        more: dict[str, Any] = json.loads(table.schema.metadata[RESULT])
        return (table.replace_schema_metadata(None), more) if more.pop("key") == key else None
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError):
        return None


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
    """Give the folder of results that are kept until `out` is written, ``out.partial``, which need not exist yet.

    Files that killed processes left half written are removed, and the whole folder is removed where a process was
    killed after it wrote `out` and before it removed the folder. The block ends when `out` is written: then the kept
    results are removed. They stay if anything fails. Raises OutputExistsError where `out` exists, or the folder holds
    something that this package did not write and would delete in the end; OutputInUseError where another process keeps
    its results there.
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
                # Without locks one cannot tell whether the file is left over or in use.
                if held and _is_passing(file) and _is_ours(file):
                    file.unlink(missing_ok=True)
        try:
            yield folder
            # The output is written: a kept file that cannot be removed does no harm.
            with suppress(OSError):
                _remove_ours(folder)
        finally:
            with suppress(OSError):  # the folder does not exist, or it holds results or files of others
                folder.rmdir()


def _collect_kept(folder: Path, out: Path) -> None:
    """Remove the lock and the kept results of a study that was killed after it had written `out`.

    Results that are younger than `out` belong to another study and stay. They stay as well if no command wrote `out`.
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
    """Whether a file is a kept result; with `damaged`, an unreadable beginning of a Parquet file counts as well."""
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


class KeptJobs:
    """Results of jobs as texts, in files named by the key of the job and the checksum of the content.

    Each file is complete or absent, whenever the process is killed; the folder is made with the first of them. `say` is
    called with a sentence: once when results are found, and when results are damaged.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = lambda sentence: None) -> None:
        self.folder = folder
        self._say = say
        self._has_reported = False

    def find(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the kept results of the jobs with these keys; damaged files are removed."""
        wanted = set(keys)
        texts, damaged = {}, 0
        for file, (key, digest) in part_files(self.folder).items():
            if key in wanted:
                text = _read_text(read_kept(file, digest), key)
                if text is None:
                    file.unlink(missing_ok=True)
                    damaged += 1
                else:
                    texts[key] = text
        if texts and not self._has_reported:
            self._say(f"Took up what was finished before, from {self.folder}.")
            self._has_reported = True
        if damaged:
            self._say(f"Damaged, so computed anew: {damaged:,} kept in {self.folder}.")
        return texts

    def keep(self, key: str, text: str) -> None:
        """Write the results of a job; OutputError if the folder cannot be written."""
        write_kept(self.folder, part_name, key, pack_table(pa.table({_COLUMN: [text]}), key))


def _read_text(content: bytes | None, key: str) -> str | None:
    unpacked = None if content is None else unpack_table(content, key)
    if unpacked is None:
        return None
    try:
        text: str = unpacked[0][_COLUMN][0].as_py()
    except (KeyError, IndexError):
        return None
    return text
