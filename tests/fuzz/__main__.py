"""``python -m tests.fuzz --target policy --case 17``: run a case again; ``--minutes 10``: run new ones."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from itertools import count

from tests.fuzz.campaign import Failure, run_cases
from tests.fuzz.targets import TARGETS


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--target", action="append", choices=TARGETS, help="all of them by default")
    words.add_argument("--case", type=int, help="this one only")
    words.add_argument("--first", type=int, default=0, help="number of the first case")
    words.add_argument("--cases", type=int, help="so many of each target")
    words.add_argument("--minutes", type=float, default=1.0, help="without --case and --cases")
    words.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    asked = words.parse_args()
    targets = tuple(asked.target or TARGETS)
    until = float("inf")
    numbers: Iterable[int]
    if asked.case is not None:
        numbers = [asked.case]
    elif asked.cases is not None:
        numbers = range(asked.first, asked.first + asked.cases)
    else:
        numbers = count(asked.first)
        until = time.monotonic() + 60 * asked.minutes
    ran = 0

    def told(failure: Failure | None) -> None:
        nonlocal ran
        ran += 1
        if failure is not None:
            print(failure, flush=True)

    failures = run_cases(targets, numbers, jobs=asked.jobs if asked.case is None else 1, until=until, told=told)
    print(f"{ran:,} cases, {len(failures):,} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
