"""Maximum likelihood of a million delays beside lifelines, and bootstraps in two threads beside one.

``python -m tests.bench.delays_fitting``
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from evaluator.delays.families import FAMILIES
from evaluator.delays.study.fitting import fit_family, fit_sample
from evaluator.delays.study.goodness import BootstrapsJob, delays_under_test
from evaluator.threads import in_threads

ROWS = 1_000_000
TRUNCATED_ROWS = 800_000
SPAN = 30 * 86_400.0
BOOTSTRAPS = 40


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main() -> None:
    rng = np.random.default_rng(0)
    delays = rng.lognormal(5, 1.5, ROWS)
    ticks = np.floor(delays).astype(np.int64)
    fit_family(delays[:5000], family="lognormal")
    exact = min(seconds(lambda: fit_family(delays, family="lognormal")) for _ in range(3))
    whole = min(seconds(lambda: fit_family(ticks, family="lognormal")) for _ in range(3))
    print(f"lognormal, {ROWS:,} delays: exact {exact:.3f} s, whole ticks {whole:.3f} s", end="")
    try:
        from lifelines import LogNormalFitter
    except ImportError:
        print("; lifelines is not installed")
    else:
        theirs = seconds(lambda: LogNormalFitter().fit(delays))
        print(f"; lifelines {theirs:.1f} s ({theirs / exact:.0f}x, {theirs / whole:.0f}x)")
    # Three modes near two minutes, a day and two weeks, in seconds, under a limit of its own for every row.
    limits = np.floor(rng.uniform(3600, SPAN, 2 * TRUNCATED_ROWS))
    law = (0.3, 0.3, 0.4, 4.7, 11.3, 14.0, 1.0, 1.0, 0.6)
    drawn = np.floor(FAMILIES["lognormal-mixture-3"].quantile(rng.random(limits.size), law))
    seen = np.flatnonzero(drawn <= limits)[:TRUNCATED_ROWS]
    drawn, limits = drawn[seen].astype(np.int64), limits[seen].astype(np.int64)
    print(f"{seen.size:,} truncated delays, {np.unique(drawn).size:,} distinct, {np.unique(limits).size:,} limits")
    for name in FAMILIES:
        if name in ("pareto", "geometric"):
            continue
        start = time.perf_counter()
        fit = fit_family(drawn, limits, family=name)
        print(f"{name:<22}{time.perf_counter() - start:>8.2f} s   aic {fit.aic:,.0f}   converged {fit.converged}")
    bootstraps(rng)


def bootstraps(rng: np.random.Generator) -> None:
    """Print what a bootstrap of the goodness of fit takes in one thread, and how much sooner two have them done."""
    delays, limits = rng.exponential(3000.0, 4000), rng.uniform(5000.0, 20_000.0, 4000)
    seen = delays <= limits
    tested = delays_under_test(delays[seen], limits[seen])
    print(f"\n{'bootstraps':<22}{'ms':>8}   two threads")
    for name in FAMILIES:
        if name == "geometric":
            continue
        unit = BootstrapsJob(fit_sample(tested.sample(tested.seen.delay), name), 0, BOOTSTRAPS)

        def drawn(jobs: int, unit: BootstrapsJob = unit) -> float:
            return seconds(lambda: list(in_threads(lambda item: unit.one(tested, item), unit.items, jobs)))

        one, two = (min(drawn(jobs) for _ in range(3)) for jobs in (1, 2))
        print(f"{name:<22}{one / BOOTSTRAPS * 1e3:>8.1f}   {one / two:.2f} times as fast, {unit.threads = }")


if __name__ == "__main__":
    main()
