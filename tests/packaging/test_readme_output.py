"""Every block of the README and the docs runs as pasted, and prints what stands below it."""

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


consoles = script("consoles")
# Pages whose blocks take seconds: the others are pasted by `tests/statistical/test_docs.py`.
QUICK = [
    DOCS / "index.md",
    DOCS / "how-to" / "bring-a-policy.md",
    DOCS / "start" / "own-log.md",
    DOCS / "start" / "thirty-seconds.md",
]
LONG = [page for page in consoles.pages() if page not in QUICK]
BELONGS_TO_NO_FOLDER = re.compile(r"evaluate (replay|compare)( -[-\w]+ [\w,.:=-]+)*")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> str | None:
    """Run a line of a shell, in this process where it only calls `evaluate`."""
    if consoles.CHECKOUT in line:
        return None
    line = re.sub(r"(^|\s+)#.*", "", line)
    if line and re.search(r"[|<>$();*`]|^(?!evaluate )", line):
        return str(consoles.shell(line))
    return "".join(printed(command) for command in line.split(" && ") if command)


def printed(command: str) -> str:
    """Run `evaluate` in this process; what reads and writes no file is run once for all pages."""
    if command in KEPT:
        return KEPT[command]
    done = evaluate(*shlex.split(command)[1:])
    assert done.code == 0, f"{command}\n{done.err}"
    if BELONGS_TO_NO_FOLDER.fullmatch(command) and not re.search(r"shop|mine| -o|--out|--save", command):
        KEPT[command] = done.out
    return done.out


def paste(file: Path) -> None:
    """Paste a page into this folder."""
    page = file.read_text(encoding="utf-8")
    consoles_of = re.compile(r"^```console\n.*?^```$", re.DOTALL | re.MULTILINE)
    assert consoles_of.findall(consoles.paste(page, run)) == consoles_of.findall(page)


def test_there_are_pages_with_blocks() -> None:
    assert set(QUICK) < set(consoles.pages())
    assert len(LONG) > 3


@pytest.mark.parametrize("file", consoles.pages(), ids=lambda file: str(file.relative_to(ROOT)))
def test_blocks_of_toml_say_which_file_they_are(file: Path) -> None:
    for kind, text in consoles.BLOCK.findall(file.read_text(encoding="utf-8")):
        assert kind != "toml" or consoles.NAMED.match(text), text


@pytest.mark.parametrize("file", QUICK, ids=lambda file: str(file.relative_to(ROOT)))
def test_blocks_run_as_pasted_and_print_what_is_shown(file: Path) -> None:
    paste(file)


@pytest.mark.parametrize(
    "block",
    [
        "```sh\nevaluate policies show fixedd\n```",
        "```sh\nevaluate policies show fixed && evaluate policies show fixedd\n```",
        "```sh\nfalse | cat\n```",
        "```sh\ncat absent.csv\n```",
        "```console\n$ evaluate policies show fixedd\n```",
        "```python\nfrom evaluator import absent\n```",
        '```toml\nname = "of no file"\n```',
    ],
)
def test_a_block_that_fails_is_seen(block: str) -> None:
    with pytest.raises((AssertionError, subprocess.CalledProcessError, ImportError, ValueError)):
        consoles.paste(f"Text\n\n{block}\n", run)


def test_a_changed_number_is_seen() -> None:
    page = "```console\n$ evaluate policies show fixed\nfixed  Sometimes the same action.\n```"
    assert consoles.paste(page, run) != page


def test_outputs_are_cut_as_the_shell_cuts_them() -> None:
    page = "```console\n$ evaluate x | head -2\n$ evaluate x | tail -1\n```"
    filled = consoles.paste(page, lambda command: "1\n2\n3\n")
    assert filled.splitlines()[1:-1] == ["$ evaluate x | head -2", "1", "2", "$ evaluate x | tail -1", "3"]


def test_blocks_of_a_page_share_a_folder_and_a_session(folder: Path) -> None:
    page = (
        "```toml\n# a/mine.toml\nx = 1\n```\n```python\n# mine.py\ny = 2\n```\n"
        "```python\nfrom pathlib import Path\n```\n```sh\ncp a/mine.toml b.toml   # kept\n```\n"
        "```python\nassert Path('b.toml').read_text().endswith('x = 1\\n')\n```\n"
        "```sh\nexit 1   # in the checkout\n```\n```text\nnot run\n```\n"
    )
    assert consoles.paste(page, run) == page
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b.toml", "mine.py"]
