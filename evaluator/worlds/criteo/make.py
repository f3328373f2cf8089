"""Write a twin of the Criteo file, chunk by chunk, and the truth about it.

*Campaigns and contexts.* A display meets a context (cat1 and a class of cat4), then a campaign drawn with a known
probability given the context, and converts with a probability that depends on both. Sizes and rates of the campaigns
are kept exactly as margins: the joint distribution of campaign and context is fitted to them by iterative proportional
scaling, the rates given the context average to the campaign's rate.

*Journeys* say which rows convert, when, and together with which others. Drawing a conversion first and its displays
after it would bend the delays: a conversion near either end of the log leaves room for some delays only. Instead every
converted row draws its display time from the arrivals and, independently, its delay from the fitted law, the latter by
stratified inversion, so that quantiles are met whatever the seed. Rows are then sorted by their sum, the conversion
time, and neighbours become one journey: it converts at one time and every row keeps its own delay, its display moving
by the small gap between neighbours (6 s on average at full size). Given their conversion time the rows of a journey are
independent, so display times stay distributed as arrivals and delays as the law, edges included.

*Users* have numbers of rows; users with enough of them get the journeys, the other rows are dealt out at random.

*Chunks* are the rows of a stretch of time: converted rows from the plan, all others drawn. Conditioned on the outcome,
cells (campaign, context) have probability p * q / Q among converted rows and p * (1 - q) / (1 - Q) among the others,
with p their share, q their conversion probability, Q its mean. Each has its own random stream; several threads write
their text, into one gzip file.

What scales with the size of the file is density: the time span stays, the numbers of users and conversions are
proportional to the rows. These totals are fixed, not random.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import ParameterError
from evaluator.outputs.atomic import described, whole_files
from evaluator.outputs.staging import writing
from evaluator.streams import Stream, random_stream
from evaluator.threads import in_threads
from evaluator.units import is_whole
from evaluator.worlds.criteo.parameters import TwinParameters
from evaluator.worlds.criteo.rows import (
    Amounts,
    ArrivalQuantiles,
    CampaignTruth,
    Categories,
    Journeys,
    Users,
    draw,
    ids,
    journey_sizes,
    last_click,
    plan_journeys,
    plan_users,
)
from evaluator.worlds.criteo.rows import truth as known_truth

FEWEST_ROWS = 1_000
_LEVEL = 1  # of gzip, the fastest
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
SCHEMA = "evaluate.twin_truth/1"
TOP = 10


def make_twin(
    twin: TwinParameters,
    name: str,
    path: Path,
    *,
    truth: Path,
    table: Path,
    rows: int,
    seed: int,
    jobs: int | None,
    advance: Callable[[int], None] | None,
) -> dict[str, int]:
    """Write a twin and its truth, as `evaluator.datasets.make` says; return numbers of rows by name.

    Files are the data, gzipped (`path`), the truth as JSON (`truth`), and its rates by context and action (`table`).
    """
    if not FEWEST_ROWS <= rows <= twin.rows:
        raise ParameterError(f"rows={rows}.", remedy=f"give {FEWEST_ROWS:,} to {twin.rows:,} rows.")
    jobs = min(4, os.cpu_count() or 1) if jobs is None else jobs
    if not is_whole(seed, 0) or not is_whole(jobs, 1):
        raise ParameterError(f"seed={seed}, jobs={jobs}.", remedy="seed is 0 to 2^63 - 1, jobs 1 to 2^63 - 1.")
    with whole_files([table, truth, path]) as (rates, text, data), writing(path):
        plan, known = plan_twin(twin, rows=rows, seed=seed)
        document = truth_document(twin, known, plan.journeys, plan.categories)
        document["realised"] = {"rows": rows, "users": plan.users.total, **document["realised"]}
        # By way of memory: what Polars says of a full disk is no OSError.
        truth_table(known, once=document["rewards_per_converted_row"]).write_parquet(parquet := BytesIO())
        rates.write_bytes(parquet.getvalue())
        _write(plan, data, jobs, advance)
        # Which file it is the truth of does not hang on a name.
        files = described([rates, data])
        head = {"schema": SCHEMA, "dataset": name, "seed": seed, "table": table.name, "files": files}
        text.write_text(json.dumps({**head, **document}, indent=1) + "\n", encoding="utf-8")
    counts: dict[str, int] = document["realised"]
    return counts


def truth_of_rows(twin: TwinParameters, rows: int) -> tuple[CampaignTruth, float]:
    """Return the truth of a twin with so many rows, and the conversions per row that carries one."""
    per_journey = journey_sizes(twin, rows)
    converted = int(per_journey.sum())
    return known_truth(twin, conversion_rate=1 - (rows - converted) / rows), len(per_journey) / converted


def plan_twin(twin: TwinParameters, *, rows: int, seed: int) -> tuple[ChunkPlan, CampaignTruth]:
    """Return what the chunks of a twin share, and its truth. It keeps 4 bytes a row."""
    journey_rng, user_rng, count_rng = (random_stream(Stream.CRITEO_TWIN, seed, k) for k in range(OF_CHUNKS))
    per_journey = journey_sizes(twin, rows)
    n_others = rows - int(per_journey.sum())
    known, _ = truth_of_rows(twin, rows)
    converts = known.joint * known.conversion_rate
    stays = known.joint - converts
    clock = ArrivalQuantiles(twin.arrivals)
    journeys = plan_journeys(twin, clock, per_journey, converts.ravel() / converts.sum(), journey_rng)
    edges = _chunk_edges(clock, -(-rows // CHUNK_ROWS))
    mass = np.diff(clock.cdf(edges))
    campaigns = known.campaigns
    plan = ChunkPlan(
        twin=twin,
        clock=clock,
        seed=seed,
        journeys=journeys,
        users=plan_users(twin, rows, journeys.rows, user_rng),
        edges=edges,
        others=np.append(0, np.cumsum(count_rng.multinomial(n_others, mass / mass.sum()))),
        cell_edges=np.cumsum(stays.ravel() / stays.sum()),
        click_rate=(campaigns.click_rate - campaigns.conversion_rate) / (1 - campaigns.conversion_rate),
        categories=Categories(twin),
        amounts=Amounts(twin.cost, twin.cpo, len(campaigns.share)),
    )
    return plan, known


def _chunk_edges(clock: ArrivalQuantiles, chunks: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return whole seconds between stretches of about equally many displays."""
    inner = clock.times(np.arange(1, chunks) / chunks)
    return np.concatenate([[0], inner, [clock.seconds]])


def _write(plan: ChunkPlan, path: Path, jobs: int, advance: Callable[[int], None] | None) -> None:
    # No name and no time in the header: same content, same bytes.
    with path.open("wb") as file, gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
        packed.write(("\t".join(COLUMNS) + "\n").encode())
        # At most `jobs` + 1 texts are in memory.
        for text in in_threads(lambda number: chunk_text(plan, number), range(plan.chunks), jobs, ready=jobs):
            packed.write(text)
            if advance is not None:
                advance(text.count(b"\n"))


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


def truth_document(
    twin: TwinParameters, truth: CampaignTruth, journeys: Journeys, categories: Categories
) -> dict[str, Any]:
    """Return the truth but for its table, ready for JSON.

    Rates: ``conversion_rate`` is P(the row converts); ``reward_rate`` is P(the row carries the conversion) once each
    conversion counts on one row only (`deduplicate` last_click, first_click; or its mean value under share).
    """
    n_rows = len(journeys.row_time)
    once = len(journeys.rows) / n_rows
    t = truth.campaigns
    label = ids("campaign", np.arange(len(t.share)))
    reward = truth.conversion_rate * once
    logged = (truth.joint * reward).sum(axis=1) / truth.context_share
    classes = len(twin.contexts.classes)
    contexts = [
        {
            "context": g,
            "cat1": int(categories.ids[0][g // classes]),
            "cat4": categories.of_class(g % classes).tolist(),
            "share": truth.context_share[g],
            "conversion_rate": logged[g] / once,
            "reward_rate": logged[g],
            "best_campaign": int(label[reward[g].argmax()]),
            "best_reward_rate": reward[g].max(),
            "best_of_top": int(label[reward[g, :TOP].argmax()]),
            "best_of_top_reward_rate": reward[g, :TOP].max(),
        }
        for g in range(len(reward))
    ]
    return {
        "realised": _realised(journeys),
        "rewards_per_converted_row": once,
        "delay": _delay(twin, journeys),
        "top": _top(truth.joint[:, :TOP], reward[:, :TOP], label[:TOP]),
        "campaigns": [
            {"campaign": int(c), "share": s, "click_rate": k, "conversion_rate": q, "reward_rate": q * once}
            for c, s, k, q in zip(label, t.share, t.click_rate, t.conversion_rate, strict=True)
        ],
        "contexts": contexts,
    }


def truth_table(truth: CampaignTruth, *, once: float) -> pl.DataFrame:
    """Return one row per context and campaign: propensity given the context, and rates."""
    contexts, campaigns = truth.joint.shape
    return pl.DataFrame(
        {
            "context": np.repeat(np.arange(contexts), campaigns),
            "campaign": np.tile(ids("campaign", np.arange(campaigns)), contexts),
            "propensity": truth.propensity.ravel(),
            "conversion_rate": truth.conversion_rate.ravel(),
            "reward_rate": truth.conversion_rate.ravel() * once,
        }
    )


def _realised(journeys: Journeys) -> dict[str, int]:
    return {
        "conversion_rows": len(journeys.row_time),
        "conversions": len(journeys.rows),
        "shared_conversions": int((journeys.rows > 1).sum()),
        "attributed_conversions": int(journeys.attributed.sum()),
        "colliding_ids": len(journeys.rows) - len(np.unique(journeys.identity)),
    }


def _delay(twin: TwinParameters, journeys: Journeys) -> dict[str, list[float]]:
    """Return the law of the rows' delays, and how the delays of last clicks came out at its knots."""
    last = journeys.row_position == journeys.rows[journeys.row_journey] - 1
    waited = np.sort((journeys.conversion_time[journeys.row_journey] - journeys.row_time)[last])
    below = np.searchsorted(waited, twin.delays.seconds, side="right") / len(waited)
    return {"seconds": list(twin.delays.seconds), "cdf": list(twin.delays.cdf), "last_click_cdf": below.tolist()}


def _top(joint: Floats, reward: Floats, label: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return values, in rewards per display, on the displays of the largest campaigns (``actions="top:10"``)."""
    share = joint.sum(axis=1) / joint.sum()
    fixed = share @ reward
    return {
        "campaigns": label.tolist(),
        "logged_value": (joint * reward).sum() / joint.sum(),
        "fixed_values": fixed.tolist(),
        "best_fixed_campaign": int(label[fixed.argmax()]),
        "best_fixed_value": fixed.max(),
        "best_by_context_value": share @ reward.max(axis=1),
    }
