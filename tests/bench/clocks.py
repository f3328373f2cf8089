"""The picture of the two clocks: regret of one policy live, and replayed on either clock, on the same problem.

``python -m tests.bench.clocks`` prints the table; ``--svg docs/pictures/clocks.svg`` draws the README's picture too.
Ten actions whose rates are evenly apart, conversions 500 rounds late on average, a window of 500: most of what the
policy does in its first thousand rounds it does before it has seen what that brings. A log of ten times as many
displays gives as many rounds. Some minutes; fewer ``--runs`` and ``--replays`` say the same less surely.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator import load, replay, simulate
from tests.bench.pictures import draw_clocks
from tests.bench.spread import Spread, add_options, spread_by
from tests.bench.tables import print_table

POLICY, WINDOW, HORIZON = "delayed-ucb", 500, 3_000
RUNS, REPLAYS = 4_000, 2_000
BEST, WORST, K, MEAN_DELAY = 0.6, 0.1, 10, 500
MEANS = np.linspace(BEST, WORST, K)
# A replay accepts each display with probability 1/K: the slack is 6 standard deviations of their number.
DISPLAYS = K * (HORIZON + int(6 * math.sqrt(HORIZON)))
SCENARIO = f"""
name = "clocks"
title = "Ten actions, evenly apart, and late conversions"
licence = "Apache-2.0"
[scenario]
kind = "bernoulli"
means = {MEANS.tolist()}
delay = {{ family = "geometric", mean = {MEAN_DELAY}, support = 0 }}
displays = {DISPLAYS}
seed = SEED
"""
LIVE, TRAFFIC, WALL = "live", "replayed, traffic clock (the default)", "replayed, the log's own clock"
Curve = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float]  # rounds, mean regret, standard error at the end


def scenario(folder: Path, seed: int) -> str:
    """Write the problem, whose log is drawn with this seed, and return its path."""
    file = folder / f"clocks-{seed}.toml"
    file.write_text(SCENARIO.replace("SEED", str(seed)), encoding="utf-8")
    return str(file)


def live(runs: int) -> Curve:
    with tempfile.TemporaryDirectory() as folder:
        problem = scenario(Path(folder), 0)
        found = simulate(problem, [POLICY], runs=runs, horizon=HORIZON, window=WINDOW, jobs=2)
    (curve,) = found.curves
    return found.rounds, curve.regret, float(curve.regret_se[-1])


def replayed(clock: str, seed: int) -> npt.NDArray[np.float64]:
    """Return the regret on one log, round by round."""
    options: dict[str, Any] = {"window": WINDOW, "horizon": HORIZON, "delays": f"geometric:{MEAN_DELAY}"}
    with tempfile.TemporaryDirectory() as folder:
        log = load(scenario(Path(folder), seed))
    result = replay(log, POLICY, clock=clock, seed=seed, **options)
    assert result.rounds == HORIZON, result.rounds
    return np.cumsum(BEST - MEANS[result.trajectory["action"].to_numpy()])


def measured(runs: int, replays: int, by: Spread | None = None) -> dict[str, Curve]:
    by = by or Spread()
    (lived,) = by.over(live, (runs,))
    clocks = by.rows(replayed, [((clock,), range(1, replays + 1)) for clock in ("traffic", "wall")])
    return {LIVE: lived, **dict(zip((TRAFFIC, WALL), map(_mean, clocks), strict=True))}


def _mean(regrets: Sequence[npt.NDArray[np.float64]]) -> Curve:
    curves = np.array(regrets)
    error = float(curves[:, -1].std(ddof=1)) / math.sqrt(len(curves))
    return np.arange(1, HORIZON + 1), curves.mean(axis=0), error


def print_curves(curves: dict[str, Curve]) -> None:
    truth = curves[LIVE][1][-1]
    rows = [
        (name, f"{regret[-1]:.1f} ± {error:.1f}", "" if name == LIVE else _off(regret[-1] / truth - 1))
        for name, (_, regret, error) in curves.items()
    ]
    print(f"{POLICY}, K={K}, rates {WORST} to {BEST}, mean delay {MEAN_DELAY} rounds, window {WINDOW}")
    print_table((f"regret after {HORIZON:,} rounds", "mean ± standard error", "against live"), rows)


def _off(share: float) -> str:
    return f"{abs(share):.1%} {'too good' if share < 0 else 'too bad'}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.clocks", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="live runs")
    parser.add_argument(
        "--replays", type=int, default=REPLAYS, help="replays on either clock, each of a log of its own"
    )
    parser.add_argument("--svg", type=Path, help="file to draw the picture into")
    add_options(parser)
    given = parser.parse_args(arguments)
    with spread_by(given) as by:
        curves = measured(given.runs, given.replays, by)
    print_curves(curves)
    if given.svg is not None:
        points = {name: (rounds, regret) for name, (rounds, regret, _) in curves.items()}
        title = f"{POLICY}, K = {K}, conversions {MEAN_DELAY} rounds late on average, window {WINDOW}"
        draw_clocks(points, title, given.svg)


if __name__ == "__main__":
    main()
