"""Write snapshots anew: ``python -m tests.frozen --write [NAME ...]``."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.frozen.commands import COMMANDS
from tests.frozen.running import SNAPSHOTS, Runs


def main() -> None:
    """Write the snapshots that are named, or all of them, and delete those of commands that are no more."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen", description=__doc__)
    parser.add_argument("--write", nargs="*", required=True, metavar="NAME", help="all by default")
    names = parser.parse_args().write or list(COMMANDS)
    if unknown := set(names) - set(COMMANDS):
        parser.error(f"no command {', '.join(sorted(unknown))}")
    SNAPSHOTS.mkdir(exist_ok=True)
    for file in SNAPSHOTS.glob("*.txt"):
        if file.stem not in COMMANDS:
            file.unlink()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder).resolve())
        for name in names:
            begin = time.process_time()
            text = runs.snapshot(name)
            (SNAPSHOTS / f"{name}.txt").write_text(text, encoding="utf-8")
            print(f"{name}: {time.process_time() - begin:.2f} s, {len(text.encode()):,} bytes; {text.splitlines()[1]}")


if __name__ == "__main__":
    main()
