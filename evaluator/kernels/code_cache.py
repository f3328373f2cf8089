"""Compiled code on disk, one file for each function and types of its arguments, which is whole or is not used.

In the place of Numba's own cache, whose index is read without asking whether it is whole, whose two files can come to
disagree when two processes compile at once, and which ends the run where it cannot write. A file here is the SHA-256 of
the rest, and then the key it was compiled for with the code, pickled as Numba pickles it. What is damaged, or another
key's, is compiled anew and replaced; where nothing can be written that is said once, and the run goes on.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import pickle
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from evaluator.inputs.regular import open_regular
from evaluator.kernels.cache_folder import OF_ROOT, UNFINISHED

_LOG = logging.getLogger("evaluator")
_DIGEST = hashlib.sha256().digest_size
# A hundred times the largest function's.
_MOST_BYTES = 64 * 1024 * 1024


class CodeCache(Cache):  # type: ignore[misc]  # Numba has no types
    """What Numba asks for the compiled code of one function, and gives it to.

    Parameters
    ----------
    function
        Function whose compiled code is cached.
    folder
        Folder in which the code is kept; what lies there is run.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_func = function
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
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        file = self._file(key)
        try:
            content = _read_own(file)
        except OSError:
            return None
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            return None
        try:
            of, code = pickle.loads(content[_DIGEST:])
            return CompileResult._rebuild(target_context, *code) if of == key else None
        except Exception:  # whole, but of a Numba that pickled otherwise
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for these types of arguments, if the folder can be written."""
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, data._reduce()))
        try:
            _write(self._file(key), hashlib.sha256(content).digest() + content)
        except OSError as error:
            _say_once(self._folder, error.strerror)

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*self._index_key(sig, codegen), self._source)

    def _file(self, key: tuple[Any, ...]) -> Path:
        # Types of one name are told apart by the key in the file.
        return self._folder / f"{self._name}-{hashlib.sha256(str(key).encode()).hexdigest()[:24]}.code"


@cache
def _source(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _read_own(file: Path) -> bytes:
    """Return what a file holds that nobody but its user, or root, can have written; nothing where that is not so.

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
