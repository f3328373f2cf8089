"""What it costs to be told one m for a window in time, where the traffic varies.

A UCB1 that learns from a display once its window has closed, live, on traffic with a daily rhythm or a jump. Three
rules for when that is: `exact` (the window's time has passed), `longest` (as many rounds later as the window spans at
the most: what `evaluator.replays.rounds.clock` tells policies) and `mean` (as many as it spans on average). A
conversion that comes after the rule's closing counts as none.

    python -m tests.bench.closing [--runs 400]
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

MEANS = np.array([0.1, 0.13, 0.16, 0.2])
HOUR, DAY = 3600.0, 86_400.0


def arrivals(kind: str, displays: int, days: float, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return sorted times in seconds."""
    at = rng.uniform(0, days * DAY, 4 * displays)
    rate = {
        "steady": np.ones_like(at),
        "rhythm": 1 + 0.5 * np.sin(2 * np.pi * at / DAY),
        "jump": np.where(at < days / 2 * DAY, 1.0, 5.0),
    }[kind]
    kept = at[rng.uniform(0, rate.max(), len(at)) < rate]
    return np.sort(kept[:displays])


def regret(
    time: npt.NDArray[np.float64], window: float, rule: str, *, runs: int, seed: int
) -> tuple[npt.NDArray[np.float64], float]:
    """Return the regret of each run, shape (runs,), and the share of conversions in time that the rule calls none."""
    rng = np.random.default_rng(seed)
    n, k = len(time), len(MEANS)
    exact = np.searchsorted(time, time + window, side="right")
    span = exact - 1 - np.arange(n)
    inside = time + window <= time[-1]
    closing = {
        "exact": exact,
        "longest": np.arange(n) + 1 + span[inside].max(),
        "mean": np.arange(n) + 1 + round(window * (n - 1) / (time[-1] - time[0])),
    }[rule]
    pulls, sums = np.zeros((2, runs, k))
    shown = np.zeros((n, runs), np.int64)
    told = np.zeros((n, runs), np.bool_)
    lost = in_time = closed = 0
    total, each = np.zeros(runs), np.arange(runs)
    for t in range(n):
        while closed < t and closing[closed] <= t:
            pulls[each, shown[closed]] += 1
            sums[each, shown[closed]] += told[closed]
            closed += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            index = sums / pulls + np.sqrt(2 * np.log(t + 1) / pulls)
        index = np.where(pulls == 0, np.inf, index) + 1e-9 * rng.random((runs, k))
        arm = index.argmax(axis=1)
        converts = rng.random(runs) < MEANS[arm]
        late = rng.exponential(window / 3, runs)
        before_closing = np.searchsorted(time, time[t] + late, side="right") <= closing[t]
        shown[t], told[t] = arm, converts & (late <= window) & before_closing
        in_time += int((converts & (late <= window)).sum())
        lost += int((converts & (late <= window) & ~before_closing).sum())
        total += MEANS.max() - MEANS[arm]
    return total, lost / max(in_time, 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print("| traffic | window | rule | regret of 20,000 rounds | conversions in time taken for none |")
    print("|---|---|---|---|---|")
    for kind in ("steady", "rhythm", "jump"):
        time = arrivals(kind, 20_000, 10, np.random.default_rng(1))
        for hours in (1, 12):
            for rule in ("exact", "longest", "mean"):
                found, lost = regret(time, hours * HOUR, rule, runs=runs, seed=2)
                error = found.std(ddof=1) / np.sqrt(runs)
                print(f"| {kind} | {hours} h | {rule} | {found.mean():.0f} ± {error:.0f} | {lost:.1%} |", flush=True)


if __name__ == "__main__":
    main()
