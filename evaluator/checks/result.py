"""What a check is, and what it says: a verdict, numbers, what they mean for a replay, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from evaluator.checks.tables import Tables
from evaluator.findings.finding import Finding
from evaluator.log.column import Column
from evaluator.log.contract import has_eligibility
from evaluator.results.json_documents import JsonPart, Numbers, Share, Text, in_document

if TYPE_CHECKING:
    from evaluator.replays.kept_units import Units

Verdict = Literal["pass", "warn", "fail", "not applicable"]
# Verdicts that a reader must know, the worst first.
ALARMS: tuple[Literal["fail", "warn"], ...] = ("fail", "warn")
# A relative error of the propensities below the first changes no decision, one from the second on does: the bias of a
# value is at most the root mean square relative error times the standard deviation of the rewards (Cauchy, Schwarz).
TRIVIAL, SERIOUS = 0.02, 0.1
# Probability with which what a check `shows` is found, and the normal quantile of it.
POWER, POWER_Z = 0.8, 0.8416
# How often defects of the sizes so computed were found, on logs of the least sure check (test_check_power).
FOUND = 0.5
# Half times that change a rate by more than this either way are not worth saying, nor known so well.
MOST_SHOWN = 0.8
_BY_WEIGHT: tuple[Verdict, ...] = (*ALARMS, "pass", "not applicable")


@dataclass(frozen=True, kw_only=True)
class CheckResult(JsonPart):
    """What one check found.

    Parameters
    ----------
    name
        Name of the check.
    verdict
        ``pass``, ``warn``, ``fail`` (no replay should be believed before it is repaired), or not applicable.
    number
        The number that decides, in words, for a table.
    statistic, p_value
        Statistic of the test behind the verdict, and its p-value, adjusted for all tests of the check; None where
        nothing is tested.
    effect
        Size of the defect, in the unit that `number` names; None where there is none.
    numbers
        All numbers that the check computed, by name.
    what
        Sentence on what the finding means for a replay; of a check that does not apply, why it does not.
    remedy
        Sentence on what the user should do; empty where nothing is to be done.
    shows
        The smallest defect that this check finds in such a log with a probability of about `POWER`, at least `FOUND`,
        in words; empty where that was not computed.
    explains
        Names of checks whose alarm would follow from what this one found, and needs no repair of its own.
    follows_from
        Name of the check whose finding explains this one's alarm, which then does not apply; empty elsewhere.
    """

    # `Check.find` fills it in.
    name: str = ""
    verdict: Verdict
    number: str
    statistic: float | None = None
    p_value: Share | None = None
    effect: float | None = None
    numbers: Numbers = field(default_factory=dict)
    what: Text = ""
    remedy: str = ""
    shows: str = ""
    explains: tuple[str, ...] = ()
    follows_from: str = ""

    @in_document
    @property
    def code(self) -> str:
        """Name of the check as a code of the catalogue of findings."""
        return self.name.replace(" ", "-")

    def finding(self) -> Finding:
        """Return what it warns of.

        Raises
        ------
        ValueError
            It does not warn.
        """
        if self.verdict not in ("warn", "fail"):
            raise ValueError(f"The check {self.name} does not warn.")
        about = {"number": self.number, "p_value": self.p_value, "effect": self.effect}
        return Finding(
            code=self.code, severity=self.verdict, what=self.what, remedy=self.remedy, about=self.name, numbers=about
        )  # fmt: skip


def not_applicable(reason: str) -> CheckResult:
    """Return the finding of a check that does not apply."""
    return CheckResult(verdict="not applicable", number="", what=reason)


def with_causes(findings: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """Return findings of which an alarm that another one explains follows from that one: one cause, one repair.

    >>> cause = CheckResult(name="overlap", verdict="fail", number="", explains=("calibration",))
    >>> [f.verdict for f in with_causes([cause, CheckResult(name="calibration", verdict="fail", number="off by 30%")])]
    ['fail', 'not applicable']
    """
    findings = tuple(findings)
    alarms = {f.name: f for f in findings if f.verdict in ("warn", "fail")}

    def explains(f: CheckResult) -> list[str]:
        # What only warns does not explain a failure.
        known = [name for name in f.explains if name in alarms]
        return [name for name in known if f.verdict == "fail" or alarms[name].verdict == "warn"]

    explained = {name for f in alarms.values() for name in explains(f)}
    # What follows from something itself explains nothing: the first cause does.
    cause = {name: f.name for f in reversed(alarms.values()) if f.name not in explained for name in explains(f)}
    return tuple(
        replace(f, verdict="not applicable", remedy="", follows_from=cause[f.name],
                what=f"follows from {cause[f.name]}, which says what to do: {f.number}")
        if f.name in cause else f
        for f in findings
    )  # fmt: skip


def judged(p_value: float, effect: float, level: float) -> Verdict:
    """Return the verdict on a relative error of propensities, at `level` false alarms.

    The p-value is adjusted for all tests of the check. An effect below `TRIVIAL` passes however sure it is, and the
    check fails only from an effect of `SERIOUS` on.
    """
    if p_value > level or effect < TRIVIAL:
        return "pass"
    return "fail" if effect >= SERIOUS else "warn"


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
        ``users``, which displays are of one user, None where no column is known to say so; ``units``, those that may
        keep their action, None likewise.
    tested
        Whether its verdict rests on a test that takes a share of the false alarms; else it compares numbers with stated
        thresholds.
    instead_of
        Name of a check of which this one takes the place: of the two at most one applies, so they need one share.
    of_all
        Whether it takes every action for eligible at every display: elsewhere it does not apply.
    twins_have_it
        Whether the twins that an audit draws have the defect too, because they take it over from the log.
    of_choices
        Whether it is of what the logger chose, and so of first displays alone where it kept the action of its users.
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
    of_choices: bool = False
    by_kind: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of what `run` takes beside the tables."""
        return tuple(inspect.signature(self.run).parameters)[1:]

    def find(
        self,
        tables: Sequence[Tables],
        *,
        level: float,
        seed: int,
        clusters: Column | None,
        users: Column | None,
        units: Units | None = None,
    ) -> CheckResult:
        """Return what it finds in a log, of which there are tables of conversions, then of each kind that counts."""
        if self.of_all and has_eligibility(tables[0].logged.survey.log):
            why = "displays have their own eligible actions, and this takes every action for eligible at all of them"
            return replace(not_applicable(why), name=self.name)
        kinds = tables if self.by_kind else tables[:1]
        given = {"level": level / len(kinds), "seed": seed, "clusters": clusters, "users": users, "units": units}
        found = [self.run(of, **{name: given[name] for name in self.needs}) for of in kinds]
        return replace(_worst(found, [of.logged.kind for of in kinds]), name=self.name)


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
