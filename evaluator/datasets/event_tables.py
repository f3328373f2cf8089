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
    tables = [
        of.events.select(pl.lit(kind.outcome).alias("outcome"), pl.Series("display_id", number), "time", "value")
        .filter(pl.col("display_id") >= 0)
        for kind, of, number in zip(kinds, counted, numbers, strict=True)
    ]  # fmt: skip
    empty = pl.DataFrame(schema={"outcome": pl.String, "display_id": pl.Int64, "time": pl.Int64, "value": pl.Float64})
    conversions, others = (_sorted(pl.concat([empty, *some])) for some in (tables[:1], tables[1:]))
    return conversions.drop_columns(["outcome"]), others


def _sorted(events: pl.DataFrame) -> pa.Table:
    events = events.sort("display_id", "time", maintain_order=True)
    kinds = pa.array(events["outcome"].to_list(), pa.string())
    numbers = {name: pa.array(events[name].to_numpy(), OUTCOMES[name]) for name in ("display_id", "time", "value")}
    return pa.table({"outcome": kinds, **numbers})
