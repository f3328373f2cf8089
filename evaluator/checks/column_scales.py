"""Columns of a context in units so different that a linear policy learns from one of them at most."""

from __future__ import annotations

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.log.vectors_of_displays import DWARFING, display_vectors, dwarfing_column

NAME = "scales of columns"


def column_scales(t: Tables) -> CheckResult:
    """Say whether a column's numbers are `DWARFING` times as large as another's or more."""
    log = t.logged.survey.log
    if display_vectors(log) is None:
        return not_applicable(NAME, "the log has no vectors")
    found = dwarfing_column(log)
    if found is None:
        return CheckResult(
            name=NAME, verdict="pass", number=f"below {DWARFING:g} times", numbers={"times": None},
            what="No column's numbers dwarf those of another.",
        )  # fmt: skip
    return CheckResult(
        name=NAME, verdict="warn", number=f"{found.largest} {found.times:,.3g} times {found.smallest}",
        effect=found.times, numbers={"times": found.times},
        what=f"Numbers of {found.largest} are {found.times:,.3g} times as large as those of {found.smallest}. Linear "
        "policies regularise and explore in one unit for all, so they learn little from the smaller ones, or from what "
        "changes within the larger.",
        remedy=found.remedy,
    )  # fmt: skip


COLUMN_SCALES = Check(
    name=NAME,
    finds="dates, incomes, ids in units that hide the other columns from a linear policy",
    run=column_scales,
    tested=False,
)
