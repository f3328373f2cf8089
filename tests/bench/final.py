"""How often the intervals of final policies hold, greedy and exploring: ``python -m tests.bench.final``.

Prints a Markdown table: the mean true value of both, and the share of the logs whose interval holds the truth, by
estimator, with standard errors; and how often the exploring policy's interval holds the value of the greedy one.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from tests.statistical.final_runs import ARMS, CONTEXTUAL, coverage, logs_of


def _share(p: float, n: int) -> str:
    return f"{p:.1%} ± {math.sqrt(max(p * (1 - p), 0.25 / n) / n):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.final", description=__doc__)
    parser.add_argument("policies", nargs="*", default=[*ARMS, *CONTEXTUAL], help="all by default")
    parser.add_argument("--logs", type=int, default=400, help="of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    asked = parser.parse_args()
    print(
        "| policy | logs | final policy | true value | DR covers | SNIPS covers | IPS covers | holds greedy's value |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for policy in asked.policies:
        for tidy in (True, False):
            logs = list(logs_of(policy, tidy=tidy, runs=asked.logs, first=asked.first))
            learned = [log["greedy"].truth for log in logs]
            for final in ("greedy", "exploring"):
                found = [log[final] for log in logs]
                truth = np.array([one.truth for one in found])
                error = truth.std(ddof=1) / math.sqrt(len(truth))
                covers = [_share(coverage(found, name), len(found)) for name in ("dr", "snips", "ips")]
                other = "" if final == "greedy" else _share(coverage(found, "dr", learned), len(found))
                kind = f"{len(found)} {'tidy' if tidy else 'untidy'}"
                value = f"{truth.mean():.4g} ± {error:.2g}"
                print(f"| {' | '.join([policy, kind, found[0].found.policy, value, *covers, other])} |", flush=True)


if __name__ == "__main__":
    main()
