"""Compiled code that is kept on disk never stands in the way: damaged, of another's, or not to be written."""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from numba import njit

from evaluator.engine.kernels import code_cache
from evaluator.engine.kernels.code_cache import CodeCache


def twice(x: float) -> float:
    return 2 * x


def thrice(x: float) -> float:
    return 3 * x


def fresh(folder: Path) -> Any:
    """Return the function as a new process would compile it."""
    out = njit(twice)
    out._cache = CodeCache(twice, folder)
    return out


def hits(function: Any) -> int:
    return sum(function.stats.cache_hits.values())


@pytest.fixture(scope="module")
def of_twice() -> Any:
    """Return `twice` compiled, for whole numbers."""
    compiled = njit(twice)
    compiled(4)
    return compiled


def save(folder: Path, compiled: Any) -> Path:
    """Keep what is compiled; return the file."""
    ((sig, code),) = compiled.overloads.items()
    CodeCache(compiled.py_func, folder).save_overload(sig, code)
    (file,) = folder.iterdir()
    return file


def load(folder: Path, compiled: Any) -> Any:
    return CodeCache(compiled.py_func, folder).load_overload(*compiled.overloads, compiled.targetctx)


def full(*args: object, **options: object) -> None:
    raise OSError(28, "No space left on device")


def test_what_is_kept_is_not_compiled_again(tmp_path: Path) -> None:
    first = fresh(tmp_path)
    assert (first(4), first(2.5), hits(first)) == (8, 5.0, 0)
    second = fresh(tmp_path)
    assert (second(4), second(2.5), hits(second)) == (8, 5.0, 2)
    assert len(list(tmp_path.iterdir())) == 2  # one for each type
    second._cache.flush()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_compiled_anew_and_replaced(tmp_path: Path, of_twice: Any) -> None:
    save(tmp_path, of_twice).write_bytes(b"")
    again, after = fresh(tmp_path), fresh(tmp_path)
    assert (again(4), hits(again)) == (8, 0)
    assert (after(4), hits(after)) == (8, 1)


def test_whatever_is_damaged_is_not_loaded(tmp_path: Path, of_twice: Any) -> None:
    file = save(tmp_path, of_twice)
    whole = file.read_bytes()
    damaged = [whole[:n] for n in (1, 31, 32, 33, len(whole) - 1)] + [whole + b"\0", b"\x80\x05." * 99]
    for at in range(0, len(whole), 97):
        damaged.append(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    for content in damaged:
        file.write_bytes(content)
        assert load(tmp_path, of_twice) is None
    save(tmp_path, of_twice)
    assert load(tmp_path, of_twice) is not None
    file.unlink()
    file.mkdir()
    assert load(tmp_path, of_twice) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user ids")
def test_what_another_can_have_written_is_not_loaded(
    tmp_path: Path, of_twice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save(tmp_path, of_twice)
    for mode in (0o620, 0o602):
        file.chmod(mode)
        assert load(tmp_path, of_twice) is None
    again = fresh(tmp_path)
    assert (again(4), hits(again)) == (8, 0)
    assert file.stat().st_mode & 0o777 == 0o600  # replaced
    assert load(tmp_path, of_twice) is not None
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert (load(tmp_path, of_twice) is None) == (user != 0)  # root's is taken
    if user == 0:
        os.chown(file, 12345, -1)
        assert load(tmp_path, of_twice) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_nothing_waits_for_what_is_no_file(tmp_path: Path, of_twice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save(tmp_path, of_twice)
    elsewhere = tmp_path / "elsewhere"
    for put in (os.mkfifo, lambda at: at.symlink_to("/dev/zero"), lambda at: at.symlink_to(elsewhere)):
        file.rename(elsewhere)
        put(file)
        assert load(tmp_path, of_twice) is None
        again = fresh(tmp_path)
        assert (again(4), hits(again)) == (8, 0)
        assert file.is_file()
        assert not file.is_symlink()
        assert load(tmp_path, of_twice) is not None
    monkeypatch.setattr(code_cache, "_MOST_BYTES", file.stat().st_size - 1)
    assert load(tmp_path, of_twice) is None


def test_the_code_of_another_function_is_not_taken(tmp_path: Path, of_twice: Any) -> None:
    content = save(tmp_path, of_twice).read_bytes()
    cache = CodeCache(thrice, tmp_path)
    (sig,) = of_twice.overloads
    cache._file(cache._key(sig, of_twice.targetctx.codegen())).write_bytes(content)
    assert cache.load_overload(sig, of_twice.targetctx) is None


def test_nor_that_of_an_edited_file(tmp_path: Path, of_twice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, of_twice)
    assert load(tmp_path, of_twice) is not None
    monkeypatch.setattr(code_cache, "_source", lambda file: "edited")
    assert load(tmp_path, of_twice) is None


def test_whole_files_that_do_not_load_are_compiled_anew(
    tmp_path: Path, of_twice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, of_twice)

    def loads(data: bytes) -> object:
        raise ModuleNotFoundError("numba.core.elsewhere")

    monkeypatch.setattr(pickle, "loads", loads)
    assert load(tmp_path, of_twice) is None


@pytest.mark.parametrize("missing", [False, True])
def test_lean_code_loads_the_compiler_only_where_it_calls_what_is_not_there(
    tmp_path: Path, of_twice: Any, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    ((sig, code),) = of_twice.overloads.items()
    lean = CodeCache(twice, tmp_path, lean=True)
    lean.save_overload(sig, code)
    refreshed: list[object] = []
    monkeypatch.setattr(type(of_twice.targetctx), "refresh", lambda self: refreshed.append(self))
    if missing:
        monkeypatch.setattr(code_cache, "address_of_symbol", lambda name: None)
    assert lean.load_overload(sig, of_twice.targetctx) is not None
    assert len(refreshed) == missing
    assert load(tmp_path, of_twice) is not None  # the same file, by a cache that is not lean
    assert len(refreshed) == missing + 1


def test_a_full_disk_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module, step in ((tempfile, "mkstemp"), (os, "replace")):
        with monkeypatch.context() as patched:
            patched.setattr(module, step, full)
            assert fresh(tmp_path)(4) == 8
    assert [(r.name, r.levelno, r.message) for r in caplog.records] == [
        (
            "evaluator",
            logging.WARNING,
            f"Compiled code cannot be kept in {tmp_path} (No space left on device): it will be compiled again in "
            "each run.",
        )
    ]
    assert list(tmp_path.iterdir()) == []
