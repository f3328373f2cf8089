"""`evaluate compare` of many variants: one scan, estimates, differences of all pairs, ranking. Seconds by the clock."""

from __future__ import annotations

import time
from itertools import pairwise

from evaluator.api import as_description
from evaluator.evaluation.comparison import compare_results, plan_comparison
from evaluator.evaluation.execute import execute_all
from evaluator.evaluation.options import ReplayOptions
from tests.bench.scenarios import linear
from tests.bench.tables import Row, print_table

ALPHAS = (0.1, 0.2, 0.5, 2.0)
POLICIES = (
    *(f"{name}:alpha={alpha}" for name in ("otflinucb", "linucb", "waitlinucb") for alpha in ALPHAS),
    "lints", "otflints", "delayed-ucb", "delayed-klucb", "ucb1", "klucb", "thompson", "random",
)  # fmt: skip
WINDOW, JOBS = 500, 2


def rows(displays: int) -> list[Row]:
    policies = [as_description(spec) for spec in POLICIES]
    options = ReplayOptions(jobs=JOBS)
    small = linear(2_000)
    execute_all(plan_comparison(small, policies, [WINDOW], options))  # compiles
    log = linear(displays)
    ticks = [_now()]
    plans = plan_comparison(log, policies, [WINDOW], options)
    ticks.append(_now())
    results = execute_all(plans, jobs=JOBS)
    ticks.append(_now())
    found = compare_results(plans, results)
    ticks.append(_now())
    steps = ("plan", "replay and estimates", f"differences of {len(found.ranking.tests)} pairs, ranking, curves", "all")
    spans = [*pairwise(ticks), (ticks[0], ticks[-1])]
    return [
        (step, after[0] - before[0], after[1] - before[1]) for step, (before, after) in zip(steps, spans, strict=True)
    ]


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def print_section(displays: int) -> None:
    print(f"{len(POLICIES)} variants, K=10, d=5, window {WINDOW}: {displays:,} logged displays, {JOBS} threads")
    print_table(("step", "seconds by the clock", "processor seconds"), rows(displays))
