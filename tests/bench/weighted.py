"""Bias and coverage of the frozen policy's value over many logs of known truth: ``python -m tests.bench.weighted``."""

from __future__ import annotations

import argparse
import math

import numpy as np

from tests.bench.spread import add_options, spread_by
from tests.bench.tables import Row, print_table
from tests.statistical.few_rewards import nothing_withheld
from tests.statistical.frozen_runs import CASES, one_run

ESTIMATORS = ("ips", "snips", "dr")


def on_log(name: str, run: int) -> tuple[tuple[float, float, bool], ...]:
    """Return of each of `ESTIMATORS` its error on one log, the standard error that it says, and whether it covers."""
    with nothing_withheld():
        found, truth = one_run(CASES[name], run)
    values = [getattr(found, estimator) for estimator in ESTIMATORS]
    return tuple(
        (v.value.estimate - truth, v.standard_error, v.value.low <= truth <= v.value.high) for v in values
    )  # fmt: skip


def rows(name: str, found: list[tuple[tuple[float, float, bool], ...]]) -> list[Row]:
    out: list[Row] = []
    for estimator, of in zip(ESTIMATORS, zip(*found, strict=True), strict=True):
        error, standard_errors, covers = (np.array(column) for column in zip(*of, strict=True))
        runs, spread = len(error), float(error.std(ddof=1))
        covered = np.mean(covers)
        said = math.sqrt(np.mean([v**2 for v in standard_errors.tolist()]))
        bias = float(error.mean()) / (spread / math.sqrt(runs))
        out.append((f"{name}: {estimator}", f"{bias:+.1f}", f"{spread:.4f}", f"{said:.4f}", f"{covered:.1%}"))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.weighted", description=__doc__)
    parser.add_argument("--logs", type=int, default=600)
    add_options(parser)
    asked = parser.parse_args()
    runs = asked.logs
    reach = 1.96 * math.sqrt(0.95 * 0.05 / runs)
    print(f"{runs} logs a case; a right 95 % interval covers within {0.95 - reach:.1%} and {0.95 + reach:.1%}, mostly")
    headers = ("case", "bias in its standard errors", "spread", "standard error said", "covered")
    with spread_by(asked) as by:
        found = by.rows(on_log, [((name,), range(runs)) for name in CASES])
        print_table(headers, [row for name, of in zip(CASES, found, strict=True) for row in rows(name, of)])


if __name__ == "__main__":
    main()
