"""Print the README's line that does a job, so that CI runs what a newcomer is told to type."""

import re
import sys
from pathlib import Path

JOBS = {"run": "evaluate replay", "test": "pytest"}


def main(job: str) -> None:
    """Print the one line of the first code block that does the job."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```(?:sh|bash)\n(.*?)```", readme, flags=re.DOTALL)
    lines = [line for line in block[1].splitlines() if JOBS[job] in line] if block else []
    if len(lines) != 1:
        sys.exit(f"README.md: its first code block must hold one line with {JOBS[job]!r}, found {len(lines)}.")
    print(lines[0].split("  #")[0].strip())


main(sys.argv[1])
