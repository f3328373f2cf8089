"""Results have the same bits however many threads BLAS may have, which adds up in as many parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.linalg  # noqa: F401 (loads a BLAS of its own)
from threadpoolctl import threadpool_info, threadpool_limits

import evaluator
from evaluator.log import Log
from evaluator.threads import one_blas_thread
from tests.cli.runs import evaluate
from tests.reading.sources import write_spec


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the spec of a log of 24,000 conversions, hardly two of which have the same delay."""
    folder = tmp_path_factory.mktemp("blas")
    rng = np.random.default_rng(1)
    n = 160_000
    time = np.sort(rng.integers(0, 30 * 86_400, n))
    sold = time + rng.exponential(4 * 86_400.0, n).astype(np.int64)
    sells = pl.lit(rng.random(n) < 0.15)
    rows = pl.DataFrame({"t": time, "ad": rng.integers(0, 3, n), "x": rng.random(n), "sold": sold})
    rows.with_columns(pl.when(sells).then("sold").alias("sold")).write_parquet(folder / "l.parquet")
    return write_spec(
        folder,
        source={"files": "l.parquet"},
        display={"propensity_kind": "uniform"},
        context={"columns": {"x": "number"}},
        log={"attribution_window": "60d", "observed_until": "complete"},
    )


def with_threads(threads: int, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"OPENBLAS_NUM_THREADS": str(threads)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(log: Log, executor: ProcessPoolExecutor | None) -> str:
    """Return what plans, results and audits say, to the bit."""
    found: dict[str, Any] = {
        "plan": evaluator.plan(log, "odaaf", window="2d"),
        "replay": evaluator.replay(log, "linucb", window="2d", final="last:30%", doubly_robust=True),
        "audit": evaluator.audit(log, "linucb", window="2d", twins=10, horizon=2_000),
        "check": evaluator.check(log),
        "compare": evaluator.compare(log, ["ucb1", "odaaf"], executor=executor, bootstrap=20),
    }
    return json.dumps({name: result.to_dict() for name, result in found.items()})


def test_results_in_python_do_not_depend_on_them(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Dot products of as many numbers as conversions.
    rng = np.random.default_rng(0)
    pairs = [(rng.random(20_000), rng.random(20_000)) for _ in range(20)]
    read, alone = evaluator.load(log), []
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for threads, executor in ((1, None), (2, pool)):
            with threadpool_limits(threads, user_api="blas"):
                alone.append((results(read, executor), [float(a @ b) for a, b in pairs], threads_of_blas()))
    (one, dots, before), (two, other_dots, after) = alone
    assert one == two
    if before == after or dots == other_dots:
        pytest.skip("NumPy's BLAS here adds up the same in two threads as in one")
    assert (before, after) == ({1}, {2})  # BLAS has its threads again


def test_workers_find_what_the_command_finds(log: Path) -> None:
    words = ("compare", "-p", "odaaf,ucb1", "-d", str(log), "--bootstrap", "0", "--json")
    with threadpool_limits(1, user_api="blas"):
        alone = evaluate(*words)
    assert alone.code == 0, alone.err
    assert with_threads(2, "-m", "evaluator", *words, "--cluster", "local:1") == alone.out


LATER = """
from evaluator.threads import one_blas_thread
from threadpoolctl import threadpool_info

with one_blas_thread():
    import scipy.linalg
    print([lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"])
"""


def test_a_blas_that_is_asked_for_within_a_block_has_one_thread() -> None:
    assert set(json.loads(with_threads(2, "-c", LATER))) == {1}


def threads_of_blas() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_blocks_may_overlap() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        for again in range(2):
            with one_blas_thread():
                inside = [one_blas_thread()(threads_of_blas)() for _ in range(2)]
                with ThreadPoolExecutor(1) as pool:
                    inside.append(pool.submit(one_blas_thread()(threads_of_blas)).result())
                assert inside == [{1}] * 3, again
                assert threads_of_blas() == {1}
            assert threads_of_blas() == before


def test_who_is_left_in_a_block_keeps_one_thread() -> None:
    entered, leave, seen = Event(), Event(), []

    def longer() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait(60)
            seen.append(threads_of_blas())
        with one_blas_thread():
            seen.append(threads_of_blas())

    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            other = Thread(target=longer)
            other.start()
            assert entered.wait(60)
        leave.set()
        other.join()
        with one_blas_thread():
            seen.append(threads_of_blas())
    assert seen == [{1}] * 3
