"""Paste the blocks of README and docs: ``python docs/consoles.py`` runs them and writes what their consoles print.

``python docs/consoles.py start/own-log.md`` does so for some pages. The blocks of a page are run in their order, in an
empty folder: `sh` and `console` line by line, `python` in one session, and a `toml` or `python` block that begins with
the name of a file, as a comment, is written to that file. Lines that say ``# in the checkout`` need more than the
installed package: they are run there by this script, and by no test of pages. All other blocks are to be read.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BLOCK = re.compile(r"^```(console|sh|python|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w./-]+\.(?:toml|py))\n")
CUT = re.compile(r" \| (head|tail) -(\d+)$")
CHECKOUT = "# in the checkout"
# A line of a shell to what it prints; it raises if the line fails. None: not run here.
Run = Callable[[str], str | None]


def pages() -> list[Path]:
    """Return README and the pages of docs that hold blocks."""
    every = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [file for file in every if BLOCK.search(file.read_text(encoding="utf-8"))]


def paste(page: str, run: Run) -> str:
    """Run the blocks of a page in the working folder; return it with what its consoles print.

    Raises
    ------
    ValueError
        A block of TOML names no file.
    """
    session: dict[str, Any] = {"__name__": "__main__"}

    def pasted(block: re.Match[str]) -> str:
        kind, text = block.groups()
        named = NAMED.match(text)
        if kind == "console":
            return f"```console\n{_printed(text, run)}```"
        if kind == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                run(line)
        elif named:
            place = Path(named[1])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, "the page's python", "exec"), session)
        else:
            raise ValueError(f"Begin the block with the name of its file, such as # study.toml:\n{text}")
        return block[0]

    return BLOCK.sub(pasted, page)


def _printed(text: str, run: Run) -> str:
    """Return a console's commands, each with what it prints."""
    shown: list[str] = []
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, before = part.partition("\n")
        cut = CUT.search(command)
        printed = run(CUT.sub("", command))
        if printed is None:
            shown += [f"$ {command}", *before.splitlines()]
            continue
        lines = [line.rstrip() for line in printed.splitlines()]
        if cut:
            lines = lines[: int(cut[2])] if cut[1] == "head" else lines[-int(cut[2]) :]
        shown += [f"$ {command}", *lines]
    return "".join(f"{line}\n" for line in shown)


def shell(line: str) -> str:
    """Run a line as a shell does, with the package of this interpreter; return what it prints.

    Raises
    ------
    subprocess.CalledProcessError
        The line fails, or a part of it.
    """
    names = {"evaluate": f"'{sys.executable}' -m evaluator", "python": f"'{sys.executable}'"}
    called = "".join(f'{name}() {{ {program} "$@"; }}\n' for name, program in names.items())
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", called + line],
        cwd=ROOT if CHECKOUT in line else None,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    """Write what the consoles of these pages print, or those of all."""
    named = [DOCS / name for name in sys.argv[1:]]
    sys.path.insert(0, str(ROOT))

    def run(line: str) -> str | None:
        # What installs and tests is of no page's folder.
        return None if CHECKOUT in line and "python -m" not in line else shell(line)

    for file in named or pages():
        page = file.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            file.write_text(paste(page, run), encoding="utf-8")
            os.chdir(ROOT)
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
