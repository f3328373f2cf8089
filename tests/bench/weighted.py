"""Bias and coverage of the frozen policy's value over many logs of known truth: ``python -m tests.bench.weighted``."""

from __future__ import annotations

import argparse
import math

import numpy as np

from tests.bench.tables import Row, print_table
from tests.statistical.few_rewards import nothing_withheld
from tests.statistical.frozen_runs import CASES, runs_of


def rows(name: str, runs: int) -> list[Row]:
    with nothing_withheld():
        found, truth = zip(*runs_of(name, runs), strict=True)
    out: list[Row] = []
    for estimator in ("ips", "snips", "dr"):
        values = [getattr(f, estimator) for f in found]
        error = np.array([v.value.estimate for v in values]) - np.array(truth)
        spread = float(error.std(ddof=1))
        covered = np.mean([v.value.low <= t <= v.value.high for v, t in zip(values, truth, strict=True)])
        said = math.sqrt(np.mean([v.standard_error**2 for v in values]))
        bias = float(error.mean()) / (spread / math.sqrt(runs))
        out.append((f"{name}: {estimator}", f"{bias:+.1f}", f"{spread:.4f}", f"{said:.4f}", f"{covered:.1%}"))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.weighted", description=__doc__)
    parser.add_argument("--logs", type=int, default=600)
    runs = parser.parse_args().logs
    reach = 1.96 * math.sqrt(0.95 * 0.05 / runs)
    print(f"{runs} logs a case; a right 95 % interval covers within {0.95 - reach:.1%} and {0.95 + reach:.1%}, mostly")
    headers = ("case", "bias in its standard errors", "spread", "standard error said", "covered")
    print_table(headers, [row for name in CASES for row in rows(name, runs)])


if __name__ == "__main__":
    main()
