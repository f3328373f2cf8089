"""Events that count as the tables of a log: those of its conversions, and those of other outcomes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.datasets.event_kinds import EventKind
from evaluator.datasets.outcomes import Outcomes
from evaluator.log.schema import OUTCOMES


def event_tables(
    kinds: Sequence[EventKind], counted: Sequence[Outcomes], display_id: npt.NDArray[np.int64]
) -> tuple[pa.Table, pa.Table]:
    """Return the conversions, and the events of other outcomes, of the displays that stay, as the contract has them.

    Parameters
    ----------
    kinds, counted
        Kinds of events, the conversions first, and the events of each that count.
    display_id
        Number of the display of each of all these events, kind by kind, -1 where it was dropped, shape (n,).
    """
    numbers = np.split(display_id, np.cumsum([of.events.height for of in counted])[:-1])
    conversions, *others = (
        of.events.select(pl.Series("display_id", number), "time", "value").filter(pl.col("display_id") >= 0)
        for of, number in zip(counted, numbers, strict=True)
    )
    named = [
        events.with_columns(pl.lit(kind.outcome).alias("outcome"))
        for kind, events in zip(kinds[1:], others, strict=True)
    ]
    empty = conversions.clear().with_columns(pl.lit("").alias("outcome"))
    of_others = _sorted(pl.concat([empty, *named]))
    names = pa.array(of_others["outcome"].to_list(), pa.string())
    return _as_arrow(_sorted(conversions)), _as_arrow(of_others).add_column(0, "outcome", names)


def _sorted(events: pl.DataFrame) -> pl.DataFrame:
    return events.sort("display_id", "time", maintain_order=True)


def _as_arrow(events: pl.DataFrame) -> pa.Table:
    return pa.table(
        {name: pa.array(events[name].to_numpy(), OUTCOMES[name]) for name in ("display_id", "time", "value")}
    )
