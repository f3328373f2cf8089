"""The rows of one stretch of time, as text."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.criteo.ids import ids
from evaluator.datasets.criteo.journeys import Journeys
from evaluator.datasets.criteo.parameters import TwinParameters
from evaluator.datasets.criteo.quantiles import ArrivalQuantiles, draw
from evaluator.datasets.criteo.text_columns import Amounts, Categories, last_click
from evaluator.datasets.criteo.users import Users
from evaluator.streams import Stream, random_stream

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

COLUMNS = (
    "timestamp", "uid", "campaign", "conversion", "conversion_timestamp", "conversion_id", "attribution", "click",
    "click_pos", "click_nb", "cost", "cpo", "time_since_last_click",
    "cat1", "cat2", "cat3", "cat4", "cat5", "cat6", "cat7", "cat8", "cat9",
)  # fmt: skip
# Fixed, so that the bytes do not depend on the number of threads.
CHUNK_ROWS = 131_072
TIE_BITS = 20
# The streams of chunks; those before are the streams of what the chunks share.
OF_CHUNKS = 3


@dataclass(frozen=True)
class ChunkPlan:
    """All that the chunks share.

    `edges` (B + 1,) are the times (s) between chunks, `others` (B + 1,) the rank of each chunk's first row among the
    rows without a conversion.
    """

    twin: TwinParameters
    clock: ArrivalQuantiles
    seed: int
    journeys: Journeys
    users: Users
    edges: Ints
    others: Ints
    cell_edges: Floats  # (G * K,) cumulated probabilities of the cell of a row without a conversion
    click_rate: Floats  # (K,) of rows without a conversion
    categories: Categories
    amounts: Amounts

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.edges) - 1


def chunk_text(plan: ChunkPlan, number: int) -> bytes:
    """Return the lines of a chunk, sorted by time, ties in random order."""
    stream = io.BytesIO()
    chunk_rows(plan, number).write_csv(stream, include_header=False, separator="\t", quote_style="never")
    return stream.getvalue()


def chunk_rows(plan: ChunkPlan, number: int) -> pl.DataFrame:
    """Return the rows of a chunk with the columns `COLUMNS`."""
    rng = random_stream(Stream.CRITEO_TWIN, plan.seed, OF_CHUNKS, number)
    n_campaigns = len(plan.click_rate)
    j = plan.journeys
    first, last = np.searchsorted(j.row_time, plan.edges[number : number + 2])
    of = j.row_journey[first:last]
    time = _times(plan, number, rng)
    n_converted, n_others = len(of), len(time)
    cell = np.concatenate([j.cell[of], draw(plan.cell_edges, rng.random(n_others))])
    campaign = cell % n_campaigns
    clicked = rng.random(n_others) < plan.click_rate[campaign[n_converted:]]
    user = np.concatenate([plan.users.of_journey[of], plan.users.of_others[slice(*plan.others[number : number + 2])]])
    whole: dict[str, Ints] = {
        "timestamp": np.concatenate([j.row_time[first:last], time]),
        "uid": ids("uid", user),
        "campaign": ids("campaign", campaign),
        "conversion": _then(np.ones(n_converted), n_others, 0),
        "conversion_timestamp": _then(j.conversion_time[of], n_others, -1),
        "conversion_id": _then(ids("conversion", j.identity[of]), n_others, -1),
        "attribution": _then(j.attributed[of], n_others, 0),
        "click": np.concatenate([np.ones(n_converted, dtype=np.int64), clicked]),
        "click_pos": _then(j.row_position[first:last], n_others, -1),
        "click_nb": _then(j.rows[of], n_others, -1),
        "time_since_last_click": last_click(plan.twin, n_converted + n_others, rng),
        **plan.categories.columns(cell // n_campaigns, rng),
    }
    frame = pl.DataFrame(whole).with_columns(plan.amounts.columns(campaign, rng)).select(COLUMNS)
    # Ties in random order, or converted rows would lead them.
    ties = rng.integers(1 << TIE_BITS, size=len(frame))
    return frame[np.argsort((whole["timestamp"] << TIE_BITS) + ties, kind="stable")]


def _times(plan: ChunkPlan, number: int, rng: np.random.Generator) -> Ints:
    """Return times of the rows without a conversion; those at the ends of the log are at its first and last second."""
    begin, end = plan.edges[number : number + 2]
    below, above = plan.clock.cdf([begin, end])
    n = int(plan.others[number + 1] - plan.others[number])
    time = np.clip(plan.clock.times(below + rng.random(n) * (above - below)), begin, end - 1)
    if number == 0:
        time[time.argmin()] = 0
    if number == plan.chunks - 1:
        time[time.argmax()] = plan.clock.seconds - 1
    return time


def _then(converted: npt.NDArray[np.generic], n_others: int, other: int) -> Ints:
    return np.concatenate([converted.astype(np.int64), np.full(n_others, other)])
