"""How often `evaluate check` cries wolf, and what it finds: ``python -m tests.bench.check --logs 200 --defects 10``."""

from __future__ import annotations

import argparse
from collections import Counter

from evaluator.checks.options import CheckOptions
from evaluator.checks.run import CheckReport, check_log
from tests.bench.spread import Spread, add_options, spread_by
from tests.checks.awkward import AWKWARD, NIGHTS
from tests.checks.clean import CLEAN
from tests.checks.defects import DEFECTS
from tests.checks.makers import MAKERS

ALL_CLEAN, ALL_DEFECTS = CLEAN | AWKWARD | NIGHTS, DEFECTS | MAKERS


def alarms(report: CheckReport) -> set[str]:
    """Names of the checks that warn or fail."""
    return {f.name for f in report.checks if f.verdict in ("warn", "fail")}


def clean(name: str, seed: int) -> tuple[str, ...]:
    """Return the checks that warn about a clean log."""
    return tuple(sorted(alarms(check_log(ALL_CLEAN[name](1000 + seed), CheckOptions(seed=seed)))))


def damaged(name: str, seed: int) -> tuple[str, ...]:
    """Return the checks that warn about a log with a defect."""
    return tuple(sorted(alarms(check_log(ALL_DEFECTS[name][0](seed), CheckOptions(seed=seed)))))


def false_alarms(by: Spread, logs: int) -> None:
    level = CheckOptions().false_alarms
    print(f"{logs} clean logs of each kind, level {level:.0%} for the whole command\n")
    print("| clean log | warned about or failed | by |\n|---|---|---|")
    total = 0
    rows = by.rows(clean, [((name,), range(logs)) for name in ALL_CLEAN])
    for name, of_logs in zip(ALL_CLEAN, rows, strict=True):
        raised, flagged = Counter[str](), 0
        for found in of_logs:
            flagged += bool(found)
            raised.update(found)
        total += flagged
        what = ", ".join(f"{check}: {count}" for check, count in raised.items())
        print(f"| {name} | {flagged / logs:.1%} | {what} |", flush=True)
    print(f"| all | {total / logs / len(ALL_CLEAN):.1%} |  |\n")


def found_defects(by: Spread, logs: int) -> None:
    print(f"{logs} logs of each defect\n\n| defect | found | others quiet | by |\n|---|---|---|---|")
    rows = by.rows(damaged, [((name,), range(logs)) for name in ALL_DEFECTS], at_once=5)
    for (name, (_, must, may)), found_by in zip(ALL_DEFECTS.items(), rows, strict=True):
        reports = [set(names) for names in found_by]
        found, quiet = sum(must <= r for r in reports), sum(r <= must | may for r in reports)
        print(f"| {name} | {found} | {quiet} | {', '.join(sorted(must))} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.check", description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--defects", type=int, default=10)
    add_options(parser)
    given = parser.parse_args()
    with spread_by(given) as by:
        if given.logs:
            false_alarms(by, given.logs)
        if given.defects:
            found_defects(by, given.defects)
