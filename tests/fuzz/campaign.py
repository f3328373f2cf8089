"""Run cases in processes that may die, and list what went wrong."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

# Cases a process, so that what one leaves in memory does not add up.
PER_CHILD = 400
# Seconds a case, and what a process may take to import everything.
LONGEST, START = 20.0, 120.0
ROOT = Path(__file__).parents[2]

Case = tuple[str, int]


@dataclass(frozen=True)
class Failure:
    """A case that ended as none may."""

    target: str
    case: int
    wrong: str

    def __str__(self) -> str:
        return f"python -m tests.fuzz --target {self.target} --case {self.case}\n    {self.wrong}"


class Child:
    """A process of `tests.fuzz.child`; one thread of it, so that the cores are for others.

    Parameters
    ----------
    seeds
        What `seeds.make` wrote.
    scratch
        Folder of its own.
    """

    def __init__(self, seeds: Path, scratch: Path) -> None:
        scratch.mkdir(exist_ok=True)
        self._said = scratch / "stderr"
        reading, writing = os.pipe()
        words = [sys.executable, "-m", "tests.fuzz.child", str(writing), str(seeds), str(scratch)]
        alone = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                words, cwd=ROOT, pass_fds=[writing], stdin=subprocess.PIPE, stdout=said, stderr=said,
                env=os.environ | alone,
            )  # fmt: skip
        os.close(writing)
        # Unbuffered, so that `select` sees every line.
        self._answers = os.fdopen(reading, "rb", buffering=0)
        self.alive = True
        select.select([self._answers], [], [], START)
        self._answers.readline()

    def run(self, case: Case) -> str | None:
        """Return what is wrong with how a case ended, None if nothing is."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(case).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([self._answers], [], [], LONGEST)[0]:
            self.end()
            return f"took more than {LONGEST:g} s"
        if answer := self._answers.readline():
            return json.loads(answer)
        self.end()
        last = self._said.read_bytes()[-300:].decode("utf-8", "replace").strip().replace("\n", " | ")
        return f"the process died, exit code {self._process.returncode}: {last}"

    def end(self) -> None:
        """End the process."""
        self.alive = False
        self._process.kill()
        self._process.communicate()
        self._answers.close()


def run_cases(
    targets: Sequence[str],
    numbers: Iterable[int],
    *,
    jobs: int = 1,
    until: float = float("inf"),
    told: Callable[[Failure | None], object] = lambda failure: None,
) -> list[Failure]:
    """Return the cases that failed.

    Parameters
    ----------
    targets
        Their names.
    numbers
        Of the cases of each.
    jobs
        Processes at a time.
    until
        Time (`time.monotonic`) after which no case is begun.
    told
        Called after each case.
    """
    from tests.fuzz.broken import BROKEN
    from tests.fuzz.seeds import make
    from tests.fuzz.targets import TARGETS

    known = TARGETS | BROKEN

    waiting = ((target, number) for number in numbers for target in targets)
    lock = threading.Lock()
    failures: list[Failure] = []

    def work(root: Path, number: int) -> None:
        while time.monotonic() < until:
            with lock:
                chunk = list(islice(waiting, PER_CHILD))
            if not chunk:
                return
            child = Child(root / "seeds", root / str(number))
            for case in chunk:
                if time.monotonic() > until:
                    break
                if not child.alive:
                    child = Child(root / "seeds", root / str(number))
                wrong = child.run(case)
                failure = None if wrong is None else Failure(*case, wrong)
                with lock:
                    failures.extend([failure] if failure else [])
                    told(failure)
            if child.alive:
                child.end()

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        root = Path(name)
        make(root / "seeds", dict.fromkeys(known[target].seed for target in targets))
        for done in [pool.submit(work, root, number) for number in range(jobs)]:
            done.result()
    return sorted(failures, key=lambda failure: (failure.target, failure.case))
