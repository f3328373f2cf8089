"""Speed of an audit: ``python -m tests.bench.audit``. 200 twins of a 100,000-display log, three policies, two threads.

Seconds by the clock and of processor time, after a first small audit that compiles, and where the time goes. With
``--power``: how often a difference as large as an audit says it could detect is told from 0, which should be on 80 %.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

from evaluator import audit, load
from evaluator.arguments import as_description
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import claims, replay_twin
from evaluator.replays.planning import read_basis
from evaluator.worlds.truth import fit_truth
from evaluator.worlds.twin_log import draw_twin
from tests.bench.spread import Spread, add_options, spread_by
from tests.statistical.power import Promised, promised

POLICIES = ["otflinucb", "linucb", "random"]
WINDOW, TARGET = 2000, 60.0
# For the power: rate, what one action earns more, displays, other actions; and logs.
WORLDS = ((0.3, 0.06, 4000, 1), (0.3, 0.0, 4000, 1), (0.01, 0.0005, 20_000, 1), (0.01, 0.01, 20_000, 1),
          (0.3, 0.1, 6000, 5), (0.3, 0.0, 6000, 5), (0.01, 0.0, 40_000, 5))  # fmt: skip
RUNS = 2000


def timed(job: Callable[[], object]) -> tuple[float, float]:
    wall, own = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - own


def planned(base: float, gap: float, displays: int, others: int, twins: int, runs: int) -> Promised:
    return promised(base, gap, displays=displays, others=others, twins=twins, runs=runs)


def print_power(by: Spread, twins: int) -> None:
    error = (0.16 / RUNS) ** 0.5
    print(f"{twins} twins, {RUNS:,} logs each, standard error of a power {error:.1%} or less\n")
    print("| rates | displays | pairs | detects alone | power | in the ranking | power | alone's, in the ranking "
          "| spread of the fitted truth |")  # fmt: skip
    print("|---" * 9 + "|")
    rows = by.rows(planned, [((*world, twins), (RUNS,)) for world in WORLDS], classes=[Promised])
    for (base, gap, displays, others), (of,) in zip(WORLDS, rows, strict=True):
        cells = [f"{base:g}, one {base + gap:g}", f"{displays:,}", f"{others * (others + 1) // 2}",
                 f"{of.difference:.2g}", f"{of.alone:.1%}", f"{of.ranked_difference:.2g}", f"{of.ranked:.1%}",
                 f"{of.alone_in_ranking:.1%}", f"{of.at_the_fitted_truth:.1%}"]  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twins", type=int, default=200)
    parser.add_argument("--power", action="store_true")
    add_options(parser)
    asked = parser.parse_args()
    if asked.power:
        with spread_by(asked) as by:
            print_power(by, min(asked.twins, 100))
        return
    if asked.cluster or asked.keep:
        parser.error("--cluster and --keep are for --power: what is timed are threads of one process")
    log = load("synthetic")
    audit(log, POLICIES, window=WINDOW, twins=10, displays=2000)
    print(f"{platform.machine()}, {asked.jobs} threads, {len(log):,} displays, {', '.join(POLICIES)}")
    wall, own = timed(lambda: audit(log, POLICIES, window=WINDOW, twins=asked.twins, jobs=asked.jobs))
    print(
        f"audit, {asked.twins} twins   {wall:6.1f} s, {own:6.1f} s of processor time (target {TARGET:g} s by the clock)"
    )
    options = AuditOptions(window=WINDOW, twins=asked.twins)
    policies = [as_description(spec) for spec in POLICIES]
    replaying = options.of_replays(seed=0)
    truth = fit_truth(read_basis(log, replaying), policies[0], replaying, displays=None)
    claimed = claims(truth, policies, options)
    rows = {
        "fit the truth": lambda: fit_truth(read_basis(log, replaying), policies[0], replaying, displays=None),
        "draw a twin": lambda: draw_twin(truth, seed=0, twin=1),
        "draw and replay a twin": lambda: replay_twin(truth, policies, options, claimed, 1, horizon=9000),
    }
    for name, job in rows.items():
        wall, own = timed(job)
        print(f"{name:<24}{wall:6.3f} s, {own:6.3f} s of processor time")


if __name__ == "__main__":
    main()
