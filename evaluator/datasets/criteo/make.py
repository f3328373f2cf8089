"""Write a twin and its truth."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.datasets.criteo.campaign_contexts import CampaignTruth, truth
from evaluator.datasets.criteo.chunks import CHUNK_ROWS, COLUMNS, OF_CHUNKS, ChunkPlan, chunk_text
from evaluator.datasets.criteo.journeys import journey_sizes, plan_journeys
from evaluator.datasets.criteo.parameters import TwinParameters
from evaluator.datasets.criteo.quantiles import ArrivalQuantiles
from evaluator.datasets.criteo.text_columns import Amounts, Categories
from evaluator.datasets.criteo.truth_file import SCHEMA, truth_document, truth_table
from evaluator.datasets.criteo.users import plan_users
from evaluator.datasets.made_files import MadeFiles
from evaluator.datasets.resolve import dataset_spec
from evaluator.datasets.spec import FileSpec
from evaluator.errors import ParameterError, UsageError
from evaluator.outputs.atomic import whole_files
from evaluator.outputs.checksums import described
from evaluator.outputs.failures import writing
from evaluator.streams import Stream, random_stream
from evaluator.threads import in_threads
from evaluator.units import is_whole

FEWEST_ROWS = 1_000
_LEVEL = 1  # of gzip, the fastest


def make_twin(
    dataset: str | Path,
    out: str | Path,
    *,
    rows: int,
    seed: int,
    jobs: int | None,
    advance: Callable[[int], None] | None,
) -> MadeFiles:
    """Write a twin and its truth, as `evaluator.datasets.make` says."""
    twin, name = _twin(dataset)
    if not FEWEST_ROWS <= rows <= twin.rows:
        raise ParameterError(f"rows={rows}.", hint=f"give {FEWEST_ROWS:,} to {twin.rows:,} rows.")
    jobs = min(4, os.cpu_count() or 1) if jobs is None else jobs
    if not is_whole(seed, 0) or not is_whole(jobs, 1):
        raise ParameterError(f"seed={seed}, jobs={jobs}.", hint="seed is 0 to 2^63 - 1, jobs 1 to 2^63 - 1.")
    path = Path(out)
    made = MadeFiles(path, path.with_name(f"{path.name}.truth.json"), path.with_name(f"{path.name}.truth.parquet"), {})
    with whole_files([made.table, made.truth, made.path]) as (table, text, data), writing(made.path):
        plan, known = plan_twin(twin, rows=rows, seed=seed)
        document = truth_document(twin, known, plan.journeys, plan.categories)
        document["realised"] = {"rows": rows, "users": plan.users.total, **document["realised"]}
        # By way of memory: what Polars says of a full disk is no OSError.
        truth_table(known, once=document["rewards_per_converted_row"]).write_parquet(parquet := BytesIO())
        table.write_bytes(parquet.getvalue())
        _write(plan, data, jobs, advance)
        # Which file it is the truth of does not hang on a name.
        files = described([table, data])
        head = {"schema": SCHEMA, "dataset": name, "seed": seed, "table": made.table.name, "files": files}
        text.write_text(json.dumps({**head, **document}, indent=1) + "\n", encoding="utf-8")
    return MadeFiles(made.path, made.truth, made.table, document["realised"])


def plan_twin(twin: TwinParameters, *, rows: int, seed: int) -> tuple[ChunkPlan, CampaignTruth]:
    """Return what the chunks of a twin share, and its truth. It keeps 4 bytes a row."""
    journey_rng, user_rng, count_rng = (random_stream(Stream.CRITEO_TWIN, seed, k) for k in range(OF_CHUNKS))
    per_journey = journey_sizes(twin, rows)
    n_others = rows - int(per_journey.sum())
    known = truth(twin, conversion_rate=1 - n_others / rows)
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


def _twin(dataset: str | Path) -> tuple[TwinParameters, str]:
    spec = dataset_spec(dataset)
    if not isinstance(spec, FileSpec) or spec.twin is None:
        raise UsageError(
            f"{dataset} cannot be made: its spec has no [twin] section.", hint="criteo_twin can; others are read."
        )
    return spec.twin, spec.name


def _write(plan: ChunkPlan, path: Path, jobs: int, advance: Callable[[int], None] | None) -> None:
    # No name and no time in the header: same content, same bytes.
    with path.open("wb") as file, gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
        packed.write(("\t".join(COLUMNS) + "\n").encode())
        # At most `jobs` + 1 texts are in memory.
        for text in in_threads(lambda number: chunk_text(plan, number), range(plan.chunks), jobs, ready=jobs):
            packed.write(text)
            if advance is not None:
                advance(text.count(b"\n"))
