"""One pass over the displays: rows checked, reduced to what the log needs, set aside; conversions gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.breaches import Breaches, Checked
from evaluator.datasets.cells import Kind
from evaluator.datasets.checks import Order, check_cells, check_displays
from evaluator.datasets.contexts import ContextCodes
from evaluator.datasets.conversions import converted_rows
from evaluator.datasets.identity import SeenIds
from evaluator.datasets.labels import KEPT, Labels, texts
from evaluator.datasets.second_table import SecondTable
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spool import Spool
from evaluator.datasets.target import check_target, target_codes
from evaluator.datasets.threads import behind

TIME, ACTION, PROPENSITY = "time", "action", "propensity"
# What no column of the spool's other parts can be called.
WEIGHT = "display.weight"


@dataclass(kw_only=True)
class Intake:
    """What is known of the displays seen so far. Memory: the conversions and what `spool` takes; the ids' hashes.

    Parameters
    ----------
    spec
        Dataset spec.
    kinds
        Columns read, and their kinds.
    breaches
        Collects the rows that break a rule.
    order
        Collects the rows that are out of order.
    codes
        Encodes the context columns.
    second
        The table of the conversions, if it is not the displays' own.
    repeated
        Rows whose display was listed before, in order.
    target
        Column of each action's probability under a policy to be evaluated, by label.
    spool
        Gets the sound displays: `TIME`, `ACTION` (code of its label), `PROPENSITY` and `WEIGHT` where logged, context
        codes, the probabilities of `target`, and the code of its label in each column of `keep`.
    keep
        Labels of each column that the log keeps as it is, by name.
    """

    spec: FileSpec
    kinds: dict[str, Kind]
    breaches: Breaches
    order: Order
    codes: ContextCodes
    second: SecondTable | None
    repeated: npt.NDArray[np.int64]
    target: Mapping[str, str]
    spool: Spool
    keep: dict[str, Labels] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)
    ids: SeenIds = field(default_factory=SeenIds)
    rows: int = 0
    sound: int = 0
    last_time: int = np.iinfo(np.int64).min
    shown: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    converted: list[pl.DataFrame] = field(default_factory=list)

    def see(self, chunks: Iterable[pl.DataFrame], advance: Callable[[int], None]) -> None:
        """Take in all chunks; `advance` is told the rows of each."""
        with behind(self._set_aside) as set_aside:
            for chunk in chunks:
                sound = self._checked(chunk)
                if sound is not None and sound.height:
                    set_aside(sound)
                advance(chunk.height)

    def _checked(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Return the sound rows of a chunk; None where the run will be refused anyway, when all breaches are known."""
        rows = self.breaches.check(frame)
        check_cells(rows, frame, self.kinds)
        low, high = np.searchsorted(self.repeated, [self.rows, self.rows + frame.height])
        check_displays(rows, frame, self.spec, self.codes.features, self.repeated[low:high] - self.rows)
        check_target(rows, frame, self.target)
        self.rows += frame.height
        if self.spec.display.id is not None:
            self.ids.add(frame[self.spec.display.id])
        found = self._own_conversions(frame, rows) if self.second is None else None
        sound = rows.close()
        if self.breaches.rows and not self.breaches.listed:
            return None
        number = self.sound + np.cumsum(sound) - 1
        if found is not None:
            self.converted.append(found.with_columns(pl.Series("display", number[found["display"].to_numpy()])))
        elif self.second is not None:
            place = {"display": number, "shown": frame[self.spec.display.time], "sound": sound}
            ids = frame[str(self.spec.display.id)].cast(pl.String)
            self.converted.append(self.second.wanted(pl.DataFrame({"id": ids, **place})))
        self.sound += int(sound.sum())
        return frame if sound.all() else frame.filter(pl.Series(sound))

    def _own_conversions(self, frame: pl.DataFrame, rows: Checked) -> pl.DataFrame:
        place = pl.int_range(frame.height, dtype=pl.Int64, eager=True)
        shown = pl.DataFrame({"display": place, "shown": frame[self.spec.display.time]})
        return converted_rows(frame, shown, self.spec.conversion, rows)

    def _set_aside(self, frame: pl.DataFrame) -> None:
        display = self.spec.display
        self.order.see(frame)
        times = frame[display.time]
        self.last_time = int(times.to_numpy().max(initial=self.last_time))
        action = self.labels.codes(frame[display.action])
        shown = np.bincount(action, minlength=len(self.labels.names))
        shown[: len(self.shown)] += self.shown
        self.shown = shown
        columns: dict[str, pl.Series | npt.NDArray[np.generic]] = {TIME: times, ACTION: action}
        if display.propensity is not None:
            columns[PROPENSITY] = frame[display.propensity].cast(pl.Float64)
        if display.weight is not None:
            columns[WEIGHT] = frame[display.weight].cast(pl.Float64)
        for column, labels in self.keep.items():
            columns[KEPT + column] = labels.codes(texts(frame[column]))
        self.spool.add(pl.DataFrame({**columns, **self.codes.of(frame), **target_codes(frame, self.target)}))
