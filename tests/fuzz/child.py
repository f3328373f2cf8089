"""A process that runs one case after the other: if it dies, the one it was asked for last killed it."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Answer each ``[target, case]`` line of stdin with a line of what is wrong, on the descriptor given."""
    answers, seeds, scratch = os.fdopen(int(sys.argv[1]), "w", buffering=1), Path(sys.argv[2]), Path(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from evaluator.comparisons import kept
    from evaluator.jobs.workers import loaded
    from tests.fuzz import oracle
    from tests.fuzz.broken import BROKEN

    oracle.TARGETS |= BROKEN
    kept.software = loaded  # the code of the package is not read anew in each case
    bench = oracle.Bench(seeds, scratch)
    bench.prepare()
    os.chdir(bench.cwd)
    tempfile.tempdir = str(bench.tmp)
    print("ready", file=answers)
    for line in sys.stdin:
        print(json.dumps(bench.run(*json.loads(line))), file=answers)


if __name__ == "__main__":
    main()
