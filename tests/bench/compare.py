"""`evaluate compare`: how long many variants take, and how often its differences hold and its ranking errs.

``python -m tests.bench compare`` prints seconds of one scan, estimates, differences of all pairs, ranking;
``python -m tests.bench.compare`` prints coverage and family-wise error on logs where every action earns the same, tidy
and untidy: by one sum along the log, by two as before, and of the ranking of expected values (bootstrap).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from evaluator.arguments import as_description
from evaluator.comparisons.differences import RealisedEvidence, weigh
from evaluator.comparisons.run import compare_results, plan_comparison
from evaluator.replays.options import ReplayOptions
from evaluator.replays.run import execute_all
from evaluator.threads import in_threads
from tests.bench.scenarios import linear
from tests.bench.spread import add_options, spread_by
from tests.bench.tables import Row, print_table
from tests.statistical.differences import FEW, KINDS, Held, expected_errs, held
from tests.statistical.differences import POLICIES as COMPARED

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
    print(f"\nDifference of a pair: ms, and with {JOBS} threads at work how many times as fast")
    for rounds in (1_000, 5_000, 20_000, 100_000):
        one, many = difference_seconds(rounds)
        print(f"{rounds:>9,} rounds {one * 1e3:7.2f} ms {one / many:5.2f}")


def difference_seconds(rounds: int) -> tuple[float, float]:
    """Return the seconds of a difference in one thread and in several, whatever `differences` decides."""
    rng = np.random.default_rng(0)
    lived = [np.sort(rng.choice(3 * rounds, rounds, replace=False)) for _ in range(8)]
    rewards = [(rng.random(rounds) < 0.1).astype(float) for _ in lived]
    pairs = [(i, j) for i in range(len(lived)) for j in range(i)] * max(100_000 // rounds, 1)

    def weighed(pair: tuple[int, int]) -> RealisedEvidence:
        i, j = pair
        return weigh(
            [lived[i]], [rewards[i]], [lived[j]], [rewards[j]],
            rounds=rounds, lower=0.0, upper=1.0, ordered=True, shared=True,
        )  # fmt: skip

    def once(jobs: int) -> float:
        start = time.perf_counter()
        for _ in in_threads(weighed, pairs, jobs):
            pass
        return (time.perf_counter() - start) / len(pairs)

    weighed(pairs[0])
    one, many = (min(once(jobs) for _ in range(3)) for jobs in (1, JOBS))
    return one, many


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.compare", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"some only: {', '.join(KINDS)}")
    parser.add_argument("--logs", type=int, default=100, help="of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--bootstrap", type=int, default=0, help="resampled logs: the ranking of expected values instead"
    )
    add_options(parser)
    asked = parser.parse_args()
    if unknown := set(asked.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    kinds, seeds = asked.kinds or list(KINDS), range(asked.first, asked.first + asked.logs)
    if asked.bootstrap:
        print(
            f"{len(FEW)} policies, {asked.bootstrap} resampled logs: expected values told apart, all being the same\n"
        )
        print("| logs of kind | logs | family-wise error |\n|---|---|---|")
        with spread_by(asked) as by:
            rows = by.rows(errs_on, [((kind, asked.bootstrap), seeds) for kind in kinds])
            for kind, logs in zip(kinds, rows, strict=True):
                erred = list(chain.from_iterable(logs))
                print(f"| {kind} | {len(erred)} | {_rate(erred)} |", flush=True)
        return
    print(f"{len(COMPARED)} policies, 15 pairs, {asked.repeats} repeats; in brackets by two sums\n")
    print("| logs of kind | logs | intervals that hold | logs on which all 15 do | family-wise error | width |")
    print("|---" * 6 + "|")
    every: list[Held] = []
    with spread_by(asked) as by:
        rows = by.rows(held_on, [((kind, asked.repeats), seeds) for kind in kinds], classes=[Held])
        for kind, logs in zip(kinds, rows, strict=True):
            found = list(chain.from_iterable(logs))
            every += found
            print(_line(kind, found), flush=True)
    print(_line("all", every))


def held_on(kind: str, repeats: int, seed: int) -> tuple[Held, ...]:
    """Return what became of the comparison on one log; nothing where it has no common horizon."""
    return tuple(held(kind, range(seed, seed + 1), repeats=repeats))


def errs_on(kind: str, bootstrap: int, seed: int) -> tuple[bool, ...]:
    """Return whether the ranking of expected values errs on one log; nothing where there is none."""
    return tuple(expected_errs(kind, range(seed, seed + 1), bootstrap=bootstrap))


def _line(kind: str, found: Sequence[Held]) -> str:
    cells = [
        kind,
        str(len(found)),
        f"{_rate([np.mean(one.covered) for one in found])} ({_rate([np.mean(one.before) for one in found])})",
        f"{_rate([all(one.covered) for one in found])} ({_rate([all(one.before) for one in found])})",
        f"{_rate([one.erred for one in found])} ({_rate([one.erred_before for one in found])})",
        f"{np.mean([one.width / one.width_before for one in found]):.2f} of two sums'",
    ]
    return f"| {' | '.join(cells)} |"


def _rate(of: Sequence[float | bool]) -> str:
    """Return the mean over logs with its standard error; where all are alike, what it is at most or least, at 95 %."""
    mean, n = float(np.mean(of)), len(of)
    if mean in (0.0, 1.0):
        bound = 1.0 - 0.05 ** (1.0 / n)
        return f"{mean:.0%} (at {'most' if mean == 0 else 'least'} {abs(mean - bound):.1%})"
    return f"{mean:.2%} ± {np.std(of, ddof=1) / n**0.5:.2%}"


if __name__ == "__main__":
    main()
