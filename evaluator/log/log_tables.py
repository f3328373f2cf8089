"""The tables of a log and how they are read; `evaluator.log.contract` says what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.events import CONVERSION, choose_kinds, outcomes_of
from evaluator.log.meta import LogMeta
from evaluator.log.ragged_vectors import is_uneven
from evaluator.log.schema import BATCH, Columns, is_sets, read, take_rows, to_numpy


@dataclass(frozen=True, eq=False)
class LogTables:
    """Displays, events, actions and metadata, whether they keep the contract or not; and which kinds of events count.

    Of a log as it was read conversions count; of that of a replay also what else is reward.
    """

    displays: pa.Table
    events: pa.Table
    actions: pa.Table
    meta: LogMeta
    counted: tuple[str, ...] = (CONVERSION,)

    @cached_property
    def conversions(self) -> pa.Table:
        """Events that count; with their kinds only where several kinds may."""
        return choose_kinds(self.events, self.counted)

    @cached_property
    def outcomes(self) -> pa.Table:
        """Events of the outcomes: ``outcome`` (text) and the columns of events."""
        return outcomes_of(self.events)

    def __len__(self) -> int:
        return int(self.displays.num_rows)

    @property
    def n_actions(self) -> int:
        """Number of actions K."""
        return int(self.actions.num_rows)

    @property
    def labels(self) -> list[str]:
        """Label of each action, shape (K,)."""
        return list(self.actions["label"].to_pylist())

    @property
    def schema(self) -> pa.Schema:
        """Schema of `displays`."""
        return self.displays.schema

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of `displays` as a NumPy array; fixed-size lists become further axes."""
        return to_numpy(self.displays[name])

    def batches(
        self, columns: Sequence[str], size: int = BATCH, *, coded: bool = False
    ) -> Iterator[tuple[int, Columns]]:
        """Yield the displays in order: (number of the first one, columns as NumPy arrays of about `size` rows).

        Sets of actions come as bits or, `coded`, as numbers of distinct ones (`evaluator.log.eligible.SetCodes`).
        """
        # What is another array than its column is made of a batch's displays at a time: sets that many displays share
        # become as many copies, and uneven lists lose where a display's begin.
        kinds = {name: self.displays.schema.field(name).type for name in columns}
        own = {name: self.displays[name] for name, kind in kinds.items() if is_sets(kind) or is_uneven(kind)}
        whole = {name: self.column(name) for name in columns if name not in own}
        for first in range(0, len(self), size):
            batch = {name: array[first : first + size] for name, array in whole.items()}
            yield first, batch | {name: read(column.slice(first, size), coded=coded) for name, column in own.items()}

    def arrays(self, column: str) -> Iterator[tuple[int, pa.Array]]:
        """Yield a column of the displays in order, as Arrow: what is missing is told, and no digit of an id is lost."""
        for first in range(0, len(self), BATCH):
            yield first, pa.concat_arrays(self.displays[column].slice(first, BATCH).chunks)

    def take(self, displays: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return some columns of the displays with these numbers, in the order asked for."""
        return take_rows(self.displays.select(list(columns)), displays)

    def time_range(self) -> tuple[int, int]:
        """Return the times of the first and the last display in ticks; of a log on disk at the cost of `take`."""
        first, last = to_numpy(self.take(np.array([0, len(self) - 1]), ["time"])["time"])
        return int(first), int(last)
