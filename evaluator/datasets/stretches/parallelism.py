"""How many threads or workers read stretches of a source, and write parts of its log, at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass


@dataclass(frozen=True)
class AtOnce:
    """Threads of this process, or workers.

    Parameters
    ----------
    jobs
        Number of threads; with one, and no executor, one pass reads all and writes one file.
    executor
        Executor whose workers write the parts instead; None for threads.
    say
        Function that is told in a sentence why one pass reads all, where workers could not.
    """

    jobs: int = 1
    executor: Executor | None = None
    say: Callable[[str], None] = lambda sentence: None

    def alone(self, why: str) -> None:
        """Say, where workers were asked for, that one pass reads all, and why."""
        if self.executor is not None:
            self.say(f"One pass here reads all, without the workers: {why}.")


ONE_PASS = AtOnce()
