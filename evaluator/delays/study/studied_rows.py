"""The delays of a study as its parts take them: each sample is made once, by the process that asks and by a worker."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
import numpy.typing as npt

from evaluator.delays.study.delay_jobs import DelayJob, DelayPlace, Sample
from evaluator.delays.study.goodness import delays_under_test
from evaluator.delays.study.heterogeneity import grouped_delays
from evaluator.delays.study.likelihood import sample_of
from evaluator.delays.study.result import FEWEST
from evaluator.delays.study.tail import tail_delays
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import as_text
from evaluator.jobs.workers import OpenedLast, loaded, tell, this_worker
from evaluator.log.delay_rows import DelayRows, delay_rows, delays_hash
from evaluator.log.reward_kinds import events_of
from evaluator.streams import seed_stream

# Laws are told apart with far fewer conversions; beyond this a random sample is fitted, and the study says so.
LAW_ROWS = 200_000

Ints = npt.NDArray[np.int64]


class StudiedRows:
    """Delays of a study, and the samples that its jobs compute on, all by one seed."""

    def __init__(self, rows: DelayRows, seed: int) -> None:
        self.rows, self._seed = rows, seed
        self._samples: dict[str, Sample] = {}
        self._making = Lock()

    def sample(self, of: str) -> Sample:
        """Return what the jobs of one part compute on: laws, bootstraps, permutations or tail.

        Raises DataError where there are no such groups, or the delays are impossible.
        """
        with self._making:
            if of not in self._samples:
                self._samples[of] = self._made(of)
            return self._samples[of]

    def _made(self, of: str) -> Sample:
        rows = self.rows
        if of == "laws":
            return sample_of(*self._of_laws())
        if of == "bootstraps":
            return delays_under_test(*self._of_laws(), seed=self._seed)
        if of == "permutations":
            assert rows.group is not None
            return grouped_delays(rows.delay, rows.limit, groups=rows.group, smallest=FEWEST, seed=self._seed)
        assert of == "tail"
        return tail_delays(rows.delay, rows.limit, width=rows.stamp)

    def _of_laws(self) -> tuple[Ints, Ints | None]:
        """Return the delays that laws are fitted to and their limits, in what the time stamps tell apart."""
        rows, n = self.rows, len(self.rows.delay)
        kept: Ints | slice = slice(None)
        if n > LAW_ROWS:
            kept = seed_stream(self._seed).choice(n, LAW_ROWS, replace=False)
        limit = None if rows.limit is None else (rows.limit // rows.stamp)[kept]
        return (rows.delay // rows.stamp)[kept], limit


@dataclass(frozen=True)
class StudiedDelays:
    """What a worker has to know of a study, as plain values.

    The log or the file lies at `place`; `by` makes groups of a log's delays, None for none; `kind` is the kind of
    events that are studied, empty for all conversions; `content` is the hash of the delays
    (`evaluator.log.delay_rows.delays_hash`).
    """

    place: DelayPlace | None
    by: str | None
    kind: str
    seed: int
    content: str

    def key(self, job: DelayJob) -> str:
        """Return the hash of all that fixes what a job finds, wherever the delays lie."""
        said = [self.content, self.seed, loaded(), job.of, as_text(replace(job, studied=None))]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def open(self, of: str) -> Sample:
        """Open the delays, on a worker, and return the sample that the jobs of one part compute on.

        Raises WorkerError where the worker is refused because it has other delays under the name.
        """
        return _opened(self).sample(of)


def _open(studied: StudiedDelays) -> StudiedRows:
    assert studied.place is not None
    there = studied.place.opened()
    rows = there if isinstance(there, DelayRows) else delay_rows(events_of(there, studied.kind), by=studied.by)
    if delays_hash(rows) != studied.content:
        raise WorkerError(
            f"Worker {this_worker()} is refused: it reads other delays than the command does.",
            remedy="let all workers see the same files, or copy them to each.",
        )
    tell("read the delays before its first job")
    return StudiedRows(rows, studied.seed)


_opened = OpenedLast(_open)
