"""Replay speed on one core, on logs in memory."""

from __future__ import annotations

import argparse
import importlib
import platform

from tests.bench import SECTIONS
from tests.bench.timing import RUNS

parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all by default")
parser.add_argument("--displays", type=int, default=1_000_000)
given = parser.parse_args()
unknown = set(given.sections) - set(SECTIONS)
if unknown:
    parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
print(f"one core, {platform.machine()}, median processor time of {RUNS} runs")
for section in given.sections or SECTIONS:
    print()
    importlib.import_module(f"tests.bench.{section}").print_section(given.displays)
