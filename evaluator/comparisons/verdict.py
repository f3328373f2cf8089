"""Ship, wait or don't: the decision that a comparison's numbers and what is known of its log come to, and why.

A variant ships where every condition of the rule is met. Where one that the numbers rest on is not (a check failed,
propensities were estimated, its replay is biased, rewards fall with what a user saw before), no number decides, and the
verdict is *wait*. Else it is *don't* where the difference is told to lie below the limit or a guardrail is broken, and
*wait* where neither is told.

A variant that is no better than the limit ships only if the interval of its difference, at the level adjusted for the
number of variants (Bonferroni), misses the truth on the side above it: for half of 1 - level of all logs at most, for
all variants together. Further conditions make that rarer. How often it is: ``tests/bench/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from evaluator.comparisons.lines import Line
from evaluator.comparisons.ship_rule import ShipRule
from evaluator.estimates.confidence import Interval
from evaluator.results.json_documents import Count, Level, Text, several

Decision = Literal["ship", "wait", "don't"]
Target = Literal["expected", "realised"]
ConditionName = Literal["difference", "guardrails", "checks", "propensities", "audit", "users"]
# Without these, no number decides.
_RESTS_ON: tuple[ConditionName, ...] = ("checks", "propensities", "audit", "users")


@dataclass(frozen=True)
class Condition:
    """One condition of the rule, and whether it is met.

    Parameters
    ----------
    name
        Name of the condition.
    met
        Whether it is met; None where that is not told.
    what
        Clause on what was found.
    remedy
        Clause on what would settle it; empty where nothing is to be done.
    """

    name: ConditionName
    met: bool | None
    what: Text
    remedy: str = ""


@dataclass(frozen=True)
class Candidate:
    """The verdict on one variant.

    Parameters
    ----------
    line
        Variant that it is on.
    decision
        Verdict on it.
    difference
        Difference to the baseline with the interval that decides, at the adjusted level; None where there is none.
    target
        Quantity that the difference is of: what the two policies are expected to earn, over logs and seeds, or what
        these two runs earned.
    conditions
        Conditions of the rule.
    """

    line: Line
    decision: Decision
    difference: Interval | None
    target: Target
    conditions: tuple[Condition, ...]

    @property
    def limits(self) -> tuple[Condition, ...]:
        """Conditions that stand in the way of shipping it."""
        return tuple(of for of in self.conditions if of.met is not True)


@dataclass(frozen=True)
class Verdict:
    """Ship, wait or don't.

    Parameters
    ----------
    decision
        Verdict on the variant that it is about.
    variant
        Number of that variant, from 0: of those that ship the one with the largest difference, else of those that
        wait, else of all.
    headline, sentence
        The decision with its number and the interval; and the same with what stands in its way.
    settle
        Clauses that say what would settle it; empty where nothing is open.
    rule
        Rule that was stated before the run.
    level
        Probability with which no variant ships in error, all together.
    baseline
        Variant that the others are compared with.
    candidates
        Verdict on every variant but the baseline.
    """

    decision: Decision
    variant: Count
    headline: Text
    sentence: Text
    settle: tuple[Text, ...]
    rule: ShipRule
    level: Level
    baseline: Line
    candidates: Annotated[tuple[Candidate, ...], several]

    def __post_init__(self) -> None:
        """Refuse a verdict on a variant that it says nothing of."""
        if all(of.line.variant != self.variant for of in self.candidates):
            raise ValueError("The verdict is on none of its candidates.")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of the variant that the verdict is about."""
        return next(of.conditions for of in self.candidates if of.line.variant == self.variant)

    def with_condition(self, conditions: Iterable[Condition]) -> Verdict:
        """Return the verdict with a condition known for each candidate, in the place of the one of its name, if any."""
        known = tuple(
            replace(of, conditions=(*(own for own in of.conditions if own.name != new.name), new))
            for of, new in zip(self.candidates, conditions, strict=True)
        )
        return decide(known, rule=self.rule, level=self.level, baseline=self.baseline)


def decide(candidates: Iterable[Candidate], *, rule: ShipRule, level: float, baseline: Line) -> Verdict:
    """Return the verdict on candidates, of which each gets its decision by its conditions; one at least."""
    known = tuple(replace(of, decision=_decision(of.conditions)) for of in candidates)
    of = max(known, key=lambda of: (_RANK[of.decision], -1e300 if of.difference is None else of.difference.estimate))
    headline = f"{_headline(of, baseline, len(known))}."
    against = [one for one in of.limits if of.decision != "don't" or one.met is False]
    return Verdict(
        decision=of.decision,
        variant=of.line.variant,
        headline=headline,
        sentence=" ".join((headline, *(f"{_capital(one.what)}." for one in against))),
        settle=() if of.decision == "don't" else tuple(one.remedy for one in of.limits if one.remedy),
        rule=rule,
        level=level,
        baseline=baseline,
        candidates=known,
    )


_RANK = {"ship": 2, "wait": 1, "don't": 0}


def _decision(conditions: Iterable[Condition]) -> Decision:
    met = {of.name: of.met for of in conditions}
    if any(met.get(name) is False for name in _RESTS_ON):
        return "wait"
    if met["difference"] is False or met.get("guardrails") is False:
        return "don't"
    return "ship" if all(met.values()) else "wait"


def _headline(of: Candidate, baseline: Line, lines: int) -> str:
    """Return the decision, and the number that it is about."""
    if of.decision == "don't":
        start = f"Don't ship {of.line}" if lines == 1 else f"Don't ship any line, {of.line} least far off"
    else:
        start = f"Ship {of.line}" if of.decision == "ship" else f"Wait with {of.line}"
    found = of.difference
    if found is None:
        return f"{start}: it has no difference to {baseline} to judge by"
    earns = "is expected to earn" if of.target == "expected" else "earned, in these runs,"
    number = f"{found.estimate:+.3g} [{found.low:+.3g}, {found.high:+.3g}]"
    return f"{start}: it {earns} {number} per round beyond {baseline}"


def _capital(clause: str) -> str:
    return clause[:1].upper() + clause[1:]
