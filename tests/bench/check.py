"""How often `evaluate check` cries wolf, and what it finds: ``python -m tests.bench.check --logs 200 --defects 10``."""

from __future__ import annotations

import argparse
import time
from collections import Counter

from evaluator.checking.run import CheckOptions, CheckReport, check_log
from tests.check.clean import CLEAN
from tests.check.defects import DEFECTS


def alarms(report: CheckReport) -> set[str]:
    """Names of the checks that warn or fail."""
    return {f.name for f in report.findings if f.verdict in ("warn", "fail")}


def false_alarms(logs: int) -> None:
    level = CheckOptions().false_alarms
    print(f"false alarms on {logs} clean logs of each kind (level {level:.0%} for the whole command)")
    total = 0
    for name, make in CLEAN.items():
        began, raised, flagged = time.perf_counter(), Counter[str](), 0
        for seed in range(logs):
            found = alarms(check_log(make(1000 + seed), CheckOptions(seed=seed)))
            flagged += bool(found)
            raised.update(found)
        total += flagged
        took = (time.perf_counter() - began) / logs
        print(f"  {name:<38}{flagged / logs:>7.1%}   {took:.2f} s a log   {dict(raised) or ''}", flush=True)
    print(f"  {'all':<38}{total / logs / len(CLEAN):>7.1%}")


def found_defects(logs: int) -> None:
    print(f"{logs} logs of each defect: found by the right check, others quiet")
    for name, (make, must, may) in DEFECTS.items():
        reports = [alarms(check_log(make(seed), CheckOptions(seed=seed))) for seed in range(logs)]
        found, quiet = sum(must <= r for r in reports), sum(r <= must | may for r in reports)
        print(f"  {name:<58}{found:>4}{quiet:>4}   {', '.join(sorted(must))}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.check", description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--defects", type=int, default=10)
    given = parser.parse_args()
    if given.logs:
        false_alarms(given.logs)
    if given.defects:
        found_defects(given.defects)
