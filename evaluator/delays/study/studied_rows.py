"""The delays of a study as its parts take them: each sample is made once, by the process that asks and by a worker."""

from __future__ import annotations

from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.delays.study.delay_units import Sample
from evaluator.delays.study.goodness import delays_under_test
from evaluator.delays.study.heterogeneity import grouped_delays
from evaluator.delays.study.likelihood import sample_of
from evaluator.delays.study.result import FEWEST
from evaluator.delays.study.tail import tail_delays
from evaluator.log import Log
from evaluator.log.costs import sales
from evaluator.log.delay_rows import DelayRows
from evaluator.streams import seed_stream

# Laws are told apart with far fewer conversions; beyond this a random sample is fitted, and the study says so.
LAW_ROWS = 200_000

Ints = npt.NDArray[np.int64]


class StudiedRows:
    """Delays of a study, and the samples that its units compute on.

    Parameters
    ----------
    rows
        Delays and their limits.
    seed
        Seed of all samples.
    """

    def __init__(self, rows: DelayRows, seed: int) -> None:
        self.rows, self._seed = rows, seed
        self._samples: dict[str, Sample] = {}
        self._making = Lock()

    def sample(self, of: str) -> Sample:
        """Return what the units of one part compute on: laws, bootstraps, permutations or tail.

        Raises
        ------
        DataError
            There are no such groups; or the delays are impossible.
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


def log_of(log: Log, refunds: bool | None) -> Log:
    """Return a log with its refunds, conversions with a value below 0, alone, or with the others; None: with all."""
    sold = None if refunds is None else sales(log.conversions)
    return log if sold is None else log.with_conversions(log.conversions.filter(pa.array(sold ^ bool(refunds))))
