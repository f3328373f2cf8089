"""Product limit of a million delays beside lifelines: ``python -m tests.bench.delays_nonparametric``."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from evaluator.delays.nonparametric import fit_nonparametric

ROWS = 1_000_000
RUNS = 5


def seconds(job: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        job()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def main() -> None:
    rng = np.random.default_rng(0)
    limits = rng.uniform(0, 30 * 86_400, 2 * ROWS)
    delays = rng.lognormal(11, 2, 2 * ROWS)
    seen = np.flatnonzero(delays <= limits)[:ROWS]
    rows = {"continuous": (delays[seen], limits[seen])}
    rows["integer ticks (s)"] = tuple(v.astype(np.int64) for v in rows["continuous"])
    rows["integer ticks (min)"] = tuple((v // 60).astype(np.int64) for v in rows["continuous"])
    for name, (delay, limit) in rows.items():
        sort = seconds(lambda delay=delay: np.sort(delay))
        ours = seconds(lambda delay=delay, limit=limit: fit_nonparametric(delay, limit))
        print(f"{name:<22}{delay.size:>10,} rows   sort {sort:.3f} s   ours with bands {ours:.3f} s", end="")
        try:
            from lifelines import KaplanMeierFitter
        except ImportError:
            print("   lifelines is not installed")
            continue
        plain = seconds(lambda delay=delay: fit_nonparametric(delay))
        theirs = seconds(lambda delay=delay: KaplanMeierFitter().fit(delay))
        top = limit.max()
        entered = seconds(lambda d=delay, v=limit, t=top: KaplanMeierFitter().fit(t - d, entry=t - v - 0.5))
        print(f"   lifelines {entered:.2f} s ({entered / ours:.1f}x)", end="")
        print(f"   untruncated: ours {plain:.3f} s, lifelines {theirs:.2f} s ({theirs / plain:.1f}x)")


if __name__ == "__main__":
    main()
