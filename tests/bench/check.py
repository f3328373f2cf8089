"""How often `evaluate check` cries wolf, and what it finds: ``python -m tests.bench.check --logs 200 --defects 10``."""

from __future__ import annotations

import argparse
from collections import Counter

from evaluator.checks.options import CheckOptions
from evaluator.checks.run import CheckReport, check_log
from tests.checks.awkward import AWKWARD, NIGHTS
from tests.checks.clean import CLEAN
from tests.checks.defects import DEFECTS
from tests.checks.makers import MAKERS

ALL_CLEAN = CLEAN | AWKWARD | NIGHTS


def alarms(report: CheckReport) -> set[str]:
    """Names of the checks that warn or fail."""
    return {f.name for f in report.findings if f.verdict in ("warn", "fail")}


def false_alarms(logs: int) -> None:
    level = CheckOptions().false_alarms
    print(f"{logs} clean logs of each kind, level {level:.0%} for the whole command\n")
    print("| clean log | warned about or failed | by |\n|---|---|---|")
    total = 0
    for name, make in ALL_CLEAN.items():
        raised, flagged = Counter[str](), 0
        for seed in range(logs):
            found = alarms(check_log(make(1000 + seed), CheckOptions(seed=seed)))
            flagged += bool(found)
            raised.update(found)
        total += flagged
        what = ", ".join(f"{check}: {count}" for check, count in raised.items())
        print(f"| {name} | {flagged / logs:.1%} | {what} |", flush=True)
    print(f"| all | {total / logs / len(ALL_CLEAN):.1%} |  |\n")


def found_defects(logs: int) -> None:
    print(f"{logs} logs of each defect\n\n| defect | found | others quiet | by |\n|---|---|---|---|")
    for name, (make, must, may) in (DEFECTS | MAKERS).items():
        reports = [alarms(check_log(make(seed), CheckOptions(seed=seed))) for seed in range(logs)]
        found, quiet = sum(must <= r for r in reports), sum(r <= must | may for r in reports)
        print(f"| {name} | {found} | {quiet} | {', '.join(sorted(must))} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.check", description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--defects", type=int, default=10)
    given = parser.parse_args()
    if given.logs:
        false_alarms(given.logs)
    if given.defects:
        found_defects(given.defects)
