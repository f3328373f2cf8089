"""Compiled code on disk, one file for each function and types of its arguments, which is whole or is not used.

In the place of Numba's own cache, whose index is read without asking whether it is whole, whose two files can come to
disagree when two processes compile at once, and which ends the run where it cannot write. A file here is the SHA-256 of
the rest, and then the key it was compiled for with the code, pickled as Numba pickles it. What is damaged, or another
key's, is compiled anew and replaced; where nothing can be written that is said once, and the run goes on.

What lies in the folder of the cache is run, so nobody else may write there. It is named by a hash of the package's
sources, since edits in functions reached through `overload` do not show in the function that is compiled. It lives in
the user's cache directory, because site-packages may be read-only; where that is not to be had, in a folder of the
user's own among the temporary files; and for want of that in one for this process alone.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import inspect
import logging
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import address_of_symbol
from numba.core import config
from numba.core.caching import Cache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from evaluator.input_files import open_regular

_LOG = logging.getLogger("evaluator")
_DIGEST = hashlib.sha256().digest_size
# A hundred times the largest function's.
_MOST_BYTES = 64 * 1024 * 1024
# How files begin that are being written.
UNFINISHED = ".code-"
# Who can write everywhere.
OF_ROOT = 0
_ACL = "system.posix_acl_access"
# What a killed process was writing is older than any process writes for.
_ABANDONED = 3600.0
# Folders of earlier versions are kept for processes that still run them.
_KEPT_VERSIONS = 4


class CodeCache(Cache):  # type: ignore[misc]  # Numba has no types
    """What Numba asks for the compiled code of one function, and gives it to.

    The code is kept in `folder`, and what lies there is run. A `lean` cache loads code without the modules that Numba
    compiles with, which take longer than the code: it knows what the code calls, and loads them where that is missing.
    """

    def __init__(self, function: Callable[..., Any], folder: Path, *, lean: bool = False) -> None:
        self._py_func = function
        self._lean = lean
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._folder = folder
        # Functions elsewhere than in the sources that name the folder may be edited.
        self._source = _source(inspect.getfile(function)), function.__code__.co_firstlineno
        self.enable()

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def flush(self) -> None:
        """Forget the function's code."""
        for file in self._folder.glob(f"{self._name}-*"):
            file.unlink(missing_ok=True)

    def holds(self, types: Any, target_context: Any) -> bool:
        """Whether there is code for these types of arguments; it is not read."""
        return bool(self._enabled) and self._file(self._key(types, target_context.codegen())).is_file()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for these types of arguments, or None when it has to be compiled."""
        if not self._enabled:
            return None
        key = self._key(sig, target_context.codegen())
        file = self._file(key)
        try:
            content = _read_own(file)
        except OSError:
            return None
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            return None
        try:
            of, called, code = pickle.loads(content[_DIGEST:])
            if of != key:
                return None
            if not (self._lean and _all_defined(called, target_context)):
                target_context.refresh()
            return CompileResult._rebuild(target_context, *code)
        except Exception:  # whole, but of a Numba that pickled otherwise
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for these types of arguments, if the folder can be written."""
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, _called(data.library) if self._lean else (), data._reduce()))
        try:
            _write(self._file(key), hashlib.sha256(content).digest() + content)
        except OSError as error:
            _say_once(self._folder, error.strerror)

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*self._index_key(sig, codegen), self._source)

    def _file(self, key: tuple[Any, ...]) -> Path:
        # Types of one name are told apart by the key in the file.
        return self._folder / f"{self._name}-{hashlib.sha256(str(key).encode()).hexdigest()[:24]}.code"


def _called(library: Any) -> tuple[str, ...]:
    """Return the names of what compiled code takes from outside of it: of Python, Numba and the C library."""
    module = library._final_module
    named = (*module.functions, *module.global_variables)
    return tuple(sorted(each.name for each in named if each.is_declaration and not each.name.startswith("llvm.")))


def _all_defined(names: tuple[str, ...], target_context: Any) -> bool:
    """Whether this process has what compiled code calls; to link code without it would end the process."""
    rtsys.initialize(target_context)
    return all(address_of_symbol(name) is not None for name in names)


@cache
def _source(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _read_own(file: Path) -> bytes:
    """Return the content of a file that only its user or root can have written; nothing if others could.

    Who could write to the folder once may have left it there.
    """
    with open_regular(file, follow=False) as stream:
        about = os.fstat(stream.fileno())
        if hasattr(os, "geteuid"):
            # An access control list that lets others write shows as a group that may.
            shared = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if shared or about.st_uid not in (os.geteuid(), OF_ROOT):
                return b""
        return stream.read() if about.st_size <= _MOST_BYTES else b""


def _write(file: Path, content: bytes) -> None:
    """Put a file in its place at once. Of two processes that do, either leaves a whole one."""
    number, name = tempfile.mkstemp(prefix=UNFINISHED, dir=file.parent)
    try:
        with open(number, "wb") as part:
            part.write(content)
        os.replace(name, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


@cache
def _say_once(folder: Path, why: str) -> None:
    _LOG.warning("Compiled code cannot be kept in %s (%s): it will be compiled again in each run.", folder, why)


@cache
def cache_folder() -> Path:
    """Return the folder of this version's compiled code, created if need be; nobody else may write to it."""
    sources = hashlib.sha256(numba.__version__.encode())
    package = Path(__file__).resolve().parents[2]
    for folder in ("engine", "policies", "worlds"):
        for file in sorted((package / folder).rglob("*.py")):
            sources.update(file.name.encode() + file.read_bytes())
    name = sources.hexdigest()[:16]
    for parent in _parents():
        version = _private(parent) and _private(parent / name)
        if version:
            _forget_old(version)
            return version
    try:
        version = Path(tempfile.mkdtemp(prefix="delayed-replay-"))
    except OSError:  # the disk is full, or read-only: that nothing is kept is said when something is to be
        return Path(os.devnull) / name
    atexit.register(shutil.rmtree, version, ignore_errors=True)
    _LOG.warning("Compiled code is kept for this process alone: no folder of the user's own can be written.")
    return version


def _parents() -> Iterator[Path]:
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches").expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    yield base / "delayed-replay"
    with suppress(OSError):  # nowhere is there room for temporary files
        yield Path(tempfile.gettempdir()) / f"delayed-replay-{os.geteuid() if hasattr(os, 'geteuid') else ''}"


def _private(folder: Path) -> Path | None:
    """Return the folder, made if need be, or None where it cannot be written, or others can change what it holds."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_symlink() and hasattr(os, "geteuid") and folder.lstat().st_uid not in (os.geteuid(), OF_ROOT):
            return None
        folder = folder.resolve(strict=True)
        if not os.access(folder, os.W_OK):
            return None
        others = written_by_others(folder)
    except OSError:
        return None
    if others:
        _LOG.warning("Compiled code is not kept in %s: others may write to %s.", folder, others)
        return None
    return folder


def written_by_others(folder: Path) -> Path | None:
    """Return the folder, or the one above it, through which another user can change what the folder holds, if any.

    Root can always. A sticky folder, such as ``/tmp``, lets others add what is theirs and leaves ours alone, which is
    enough above the folder; so is a group that is the user's own. Systems without user ids are taken at their word.
    """
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid()
    for at in (folder, *folder.parents):
        about = at.stat()
        if at == folder:
            ours, apart = about.st_uid == user, False
        else:
            ours, apart = about.st_uid in (user, OF_ROOT), bool(about.st_mode & stat.S_ISVTX)
        by_group = about.st_mode & stat.S_IWGRP and (at == folder or not _group_of_one(at, about))
        if not ours or ((by_group or about.st_mode & stat.S_IWOTH) and not apart):
            return at
    return None


def _group_of_one(folder: Path, about: os.stat_result) -> bool:
    """Whether a folder's group is its owner's alone: many systems give each user one, with the user's own number.

    Not root's, which services are put into. Where a folder has an access control list, what its mode says of the group
    is the most that the list allows anybody, whoever that is.
    """
    if about.st_gid != about.st_uid or about.st_uid == OF_ROOT:
        return False
    try:
        os.getxattr(folder, _ACL)
    except AttributeError:  # a system without
        return True
    except OSError as error:
        return error.errno in (errno.ENODATA, errno.ENOTSUP)
    return False


def _forget_old(keep: Path) -> None:
    """Remove the versions used longest ago, and what processes that were killed left of this one."""

    def last_used(entry: Path) -> float:
        try:
            return entry.stat().st_mtime
        except OSError:  # another process forgot it meanwhile
            return 0.0

    named = re.compile("[0-9a-f]{16}")
    versions = sorted((f for f in keep.parent.iterdir() if named.fullmatch(f.name) and f != keep), key=last_used)
    for folder in versions[:-_KEPT_VERSIONS]:
        shutil.rmtree(folder, ignore_errors=True)
    for part in keep.glob(f"{UNFINISHED}*"):
        if last_used(part) < time.time() - _ABANDONED:
            part.unlink(missing_ok=True)
