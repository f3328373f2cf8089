"""What a check is: its name, the defect it is for, and the function that looks for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from evaluator.checks.result import CheckResult
from evaluator.checks.tables import Tables
from evaluator.log.column import Column
from evaluator.log.set_kinds import has_eligibility


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check of a log.

    Parameters
    ----------
    name
        Name of the check in reports and options.
    finds
        Defect that the check finds: a cell of the table of checks.
    run
        Function that takes the tables of a log and, by name, what else it needs: ``level``, its share of the false
        alarms; ``seed``, of its draws; ``clusters``, which displays hang together, None where the user named none;
        ``users``, which displays are of one user, None where no column is known to say so.
    tested
        Whether its verdict rests on a test that takes a share of the false alarms; else it compares numbers with stated
        thresholds.
    instead_of
        Name of a check of which this one takes the place: of the two at most one applies, so they need one share.
    of_all
        Whether it takes every action for eligible at every display: elsewhere it does not apply.
    twins_have_it
        Whether the twins that an audit draws have the defect too, because they take it over from the log.
    """

    name: str
    finds: str
    run: Callable[..., CheckResult]
    tested: bool = True
    instead_of: str = ""
    of_all: bool = False
    twins_have_it: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of what `run` takes beside the tables."""
        return tuple(inspect.signature(self.run).parameters)[1:]

    def find(
        self, tables: Tables, *, level: float, seed: int, clusters: Column | None, users: Column | None
    ) -> CheckResult:
        """Return what it finds in a log."""
        if self.of_all and has_eligibility(tables.logged.survey.log):
            why = "displays have their own eligible actions, and this takes every action for eligible at all of them"
            return CheckResult(name=self.name, verdict="not applicable", number="", what=why)
        given = {"level": level, "seed": seed, "clusters": clusters, "users": users}
        return self.run(tables, **{name: given[name] for name in self.needs})
