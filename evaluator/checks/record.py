"""What a check is: its name, the defect it is for, and the function that looks for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evaluator.checks.result import ALARMS, CheckResult, Verdict
from evaluator.checks.tables import Tables
from evaluator.log.column import Column
from evaluator.log.set_kinds import has_eligibility

_BY_WEIGHT: tuple[Verdict, ...] = (*ALARMS, "pass", "not applicable")


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
    by_kind
        Whether it is of events, and so looks at those of each kind that counts as a reward, each with an equal part of
        its share of the false alarms; else it looks at displays, at all rewards together, or at conversions.
    """

    name: str
    finds: str
    run: Callable[..., CheckResult]
    tested: bool = True
    instead_of: str = ""
    of_all: bool = False
    twins_have_it: bool = False
    by_kind: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of what `run` takes beside the tables."""
        return tuple(inspect.signature(self.run).parameters)[1:]

    def find(
        self, tables: Sequence[Tables], *, level: float, seed: int, clusters: Column | None, users: Column | None
    ) -> CheckResult:
        """Return what it finds in a log, of which there are tables of conversions, then of each kind that counts."""
        if self.of_all and has_eligibility(tables[0].logged.survey.log):
            why = "displays have their own eligible actions, and this takes every action for eligible at all of them"
            return CheckResult(name=self.name, verdict="not applicable", number="", what=why)
        kinds = tables if self.by_kind else tables[:1]
        given = {"level": level / len(kinds), "seed": seed, "clusters": clusters, "users": users}
        return _worst(
            [self.run(of, **{name: given[name] for name in self.needs}) for of in kinds],
            [of.logged.kind for of in kinds],
        )


def _worst(found: Sequence[CheckResult], kinds: Sequence[str]) -> CheckResult:
    """Return what was found of several kinds of events as one result: the worst, and in words all that alarms.

    P-values are those of the worst of all kinds (Bonferroni).
    """
    if len(found) == 1:
        return found[0]

    def rank(i: int) -> tuple[int, float]:
        p = found[i].p_value
        return _BY_WEIGHT.index(found[i].verdict), 1.0 if p is None else p

    worst = min(range(len(found)), key=rank)
    said = [i for i, one in enumerate(found) if one.verdict in ALARMS] or [worst]
    about = [f"Of {kind}, whose events are called conversions here: " if kind else "" for kind in kinds]
    names = [f"{kind}: " if kind else "" for kind in kinds]
    one = found[worst]
    return replace(
        one,
        number="; ".join(names[i] + found[i].number for i in said) if one.number else "",
        p_value=None if one.p_value is None else min(one.p_value * len(found), 1.0),
        numbers={**one.numbers, "kind": kinds[worst] or "conversions"},
        what=" ".join(about[i] + found[i].what for i in said),
        remedy=" ".join(dict.fromkeys(found[i].remedy for i in said if found[i].remedy)),
    )
