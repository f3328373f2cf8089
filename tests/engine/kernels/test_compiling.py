"""Compiled code is kept apart for every version of the sources, outside the package."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from numba.core import config

import evaluator
from evaluator.engine import frozen, loop
from evaluator.engine.kernels import code_cache

PACKAGE = Path(evaluator.__file__).resolve().parent
FOLDERS = ("engine", "policies", "worlds")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the hashed sources, which `folder_of` then takes for the package's."""
    package = tmp_path / "evaluator"
    for folder in FOLDERS:
        shutil.copytree(PACKAGE / folder, package / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_cache, "__file__", str(package / "engine" / "kernels" / "cache_folder.py"))
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    return package


def folder_now() -> Path:
    return code_cache.cache_folder.__wrapped__()


def test_the_folder_lies_outside_the_package() -> None:
    folder = code_cache.cache_folder()
    assert folder.is_dir()
    assert PACKAGE not in [folder, *folder.parents]


def test_the_loops_are_cached_there() -> None:
    for step in (loop.replay, frozen.ask, frozen.show_greedily):
        assert Path(step.dispatcher.stats.cache_path) == code_cache.cache_folder()
    # No cache would see edits of a user's policy.
    assert loop.replay_uncached.dispatcher.stats.cache_path is None


def test_the_same_sources_share_a_folder(copy: Path) -> None:
    first = folder_now()
    assert first == folder_now()
    assert copy not in first.parents


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_edit_anywhere_changes_the_folder(copy: Path, folder: str) -> None:
    first = folder_now()
    edited = next(f for f in sorted((copy / folder).glob("*.py")) if f.name != "__init__.py")
    edited.write_text(edited.read_text() + "\n")
    second = folder_now()
    (copy / folder / "added.py").write_text("")
    assert len({first, second, folder_now()}) == 3


def test_whatever_a_loop_copies_lies_in_a_folder_whose_edits_are_seen() -> None:
    pieces = {f.relative_to(PACKAGE).parts[0] for f in PACKAGE.rglob("*.py") if "inlinable" in f.read_text("utf-8")}
    assert pieces <= set(FOLDERS)


def test_old_versions_are_forgotten_but_not_the_latest(copy: Path) -> None:
    kept = copy.parent / "cache" / "delayed-replay" / "notes"
    kept.mkdir(parents=True)
    folders = []
    for version in range(8):
        (copy / "policies" / "added.py").write_text(f"# {version}\n")
        folders.append(folder_now())
        os.utime(folders[-1], (version, version))
    left = [f.is_dir() for f in folders]
    assert left == [False] * 3 + [True] * 5
    assert kept.is_dir()  # no version of ours


def test_what_a_killed_process_was_writing_is_removed_in_time(copy: Path) -> None:
    left, current = (folder_now() / f"{code_cache.UNFINISHED}{word}" for word in ("left", "current"))
    for part in (left, current):
        part.touch()
    os.utime(left, (0, 0))
    folder_now()
    assert not left.exists()
    assert current.exists()
