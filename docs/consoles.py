"""Run the console blocks of README and docs: ``python docs/consoles.py`` writes what they print, a test compares.

``python docs/consoles.py why/two-clocks.md`` does so for some pages. Commands run in a folder that holds what the
pages take for given: the made-up shop's files, its converted log where the page does not make it, and `mine.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from shop import write_shop

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
CONSOLE = re.compile(r"```console\n(.*?)\n```", re.DOTALL)
CUT = re.compile(r" \| (head|tail) -(\d+)$")
Run = Callable[[str], str]  # the words of a command to what it prints


def pages() -> list[Path]:
    """Return README and the pages of docs that hold console blocks."""
    every = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [file for file in every if CONSOLE.search(file.read_text(encoding="utf-8"))]


def prepare(page: str, folder: Path, run: Run) -> None:
    """Put into the working folder what the commands of a page take for given."""
    if "shop" in page:
        write_shop(folder / "shop")
    if "shop-log" in page and "$ evaluate datasets convert" not in page:
        run("evaluate datasets convert shop/spec.toml shop-log")
    policy = re.search(r"```python mine.py\n(.*?)```", page, re.DOTALL)
    if policy:
        (folder / "mine.py").write_text(policy[1], encoding="utf-8")


def with_outputs(page: str, run: Run) -> str:
    """Return a page whose console blocks hold their commands and what these print."""

    def filled(block: re.Match[str]) -> str:
        shown: list[str] = []
        for command in re.findall(r"^\$ (.*)$", block[1], re.M):
            cut = CUT.search(command)
            lines = [line.rstrip() for line in run(CUT.sub("", command)).splitlines()]
            if cut:
                lines = lines[: int(cut[2])] if cut[1] == "head" else lines[-int(cut[2]) :]
            shown += [f"$ {command}", *lines]
        return "```console\n" + "\n".join(shown) + "\n```"

    return CONSOLE.sub(filled, page)


def _run_in(folder: Path) -> Run:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

    def run(command: str) -> str:
        program, _, words = command.partition(" ")
        line = {"evaluate": "-m evaluator", "python": ""}[program]
        # Commands of the bench import the tests, which lie in the checkout.
        where = ROOT if program == "python" else folder
        done = subprocess.run(
            f"{sys.executable} {line} {words}", shell=True, cwd=where, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"$ {command}\n{done.stdout}{done.stderr}")
        return done.stdout

    return run


def main() -> None:
    """Write what the blocks of these pages print, or those of all."""
    named = [DOCS / name for name in sys.argv[1:]]
    for file in named or pages():
        page = file.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            run = _run_in(Path(folder))
            prepare(page, Path(folder), run)
            file.write_text(with_outputs(page, run), encoding="utf-8")
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
