"""Every number in the README and the docs is what the command beside it prints."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.runs import evaluate

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT: dict[str, str] = {}


def script(name: str) -> ModuleType:
    """Load a script of the docs, which are no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


shop = script("shop")
consoles = script("consoles")
# Pages whose commands take long: `tests/statistical/test_docs.py` runs them.
LONG = [
    DOCS / "how-to" / "choose-a-window.md",
    DOCS / "how-to" / "decide-on-a-rollout.md",
    DOCS / "how-to" / "read-a-comparison.md",
    DOCS / "why" / "two-clocks.md",
]
PAGES = [page for page in consoles.pages() if page not in LONG]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(command: str) -> str:
    """Run a command in this process; what speaks of no file is run once for all pages."""
    if command in KEPT:
        return KEPT[command]
    program, *words = shlex.split(command)
    if program == "python":
        return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    run = evaluate(*words)
    assert run.code == 0, f"{command}\n{run.err}"
    if "shop" not in command:
        KEPT[command] = run.out
    return run.out


def test_there_are_pages_with_consoles() -> None:
    assert ROOT / "README.md" in PAGES
    assert len(PAGES) > 3
    assert set(LONG) < set(consoles.pages())


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_consoles_show_what_the_commands_print(file: Path, folder: Path) -> None:
    compare(file, folder)


def compare(file: Path, folder: Path) -> None:
    """Run what a page's consoles run, in this folder."""
    page = file.read_text(encoding="utf-8")
    consoles.prepare(page, folder, printed)
    shown = re.findall(r"```console\n.*?```", page, re.DOTALL)
    assert re.findall(r"```console\n.*?```", consoles.with_outputs(page, printed), re.DOTALL) == shown


def test_a_changed_number_is_seen(folder: Path) -> None:
    page = "```console\n$ evaluate policies show fixed\nfixed  Sometimes the same action.\n```"
    assert consoles.with_outputs(page, printed) != page


def test_outputs_are_cut_as_the_shell_cuts_them() -> None:
    page = "```console\n$ evaluate x | head -2\n$ evaluate x | tail -1\n```"
    filled = consoles.with_outputs(page, lambda command: "1\n2\n3\n")
    assert filled.splitlines()[1:-1] == ["$ evaluate x | head -2", "1", "2", "$ evaluate x | tail -1", "3"]
