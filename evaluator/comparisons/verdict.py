"""Ship, wait or don't: the rule that was stated before the run, and the decision that a comparison comes to by it.

A variant ships where every condition of the rule is met. Where one that the numbers rest on is not (a check failed,
propensities were estimated, its replay is biased, rewards fall with what a user saw before), no number decides, and the
verdict is *wait*. Else it is *don't* where the difference is told to lie below the limit or a guardrail is broken, and
*wait* where neither is told.

Verdicts are monotone. What a stricter rule ships, every weaker rule ships. Evidence that agrees takes no ship away: an
audit that shows no bias, or is not about a variant, changes nothing, and what one check or audit found to be wrong no
other one makes right. The headline is about the best variant (`_standing`), whatever the order of the variants.

A variant that is no better than the limit ships only if the interval of its difference, at the level adjusted for the
number of variants (Bonferroni), misses the truth on the side above it: for half of 1 - level of all logs at most, for
all variants together. Where looks were planned, that holds for all of them: only the interval of what two runs earned,
which holds at any number of looks, keeps its level. Further conditions make that rarer. How often it is:
``tests/bench/README.md``.

*Looks.* Whoever asks again on a log that grew, and ships where any answer says so, is wrong more often than one answer
is. So a study of K planned looks spends its error over them: alpha (k / K)³ up to look k, which is like the plan of
O'Brien and Fleming. Look k has the increment for its own: its interval holds at the level

    1 - alpha (k³ - (k - 1)³) / K³.

As the increments add up (Bonferroni), all looks together hold with 1 - alpha, however they hang together and however
much the log grew between them. Boundaries from a joint normal law are shorter, and need both to be known: by how much
is in ``tests/bench/README.md``.

*The ranking* says which of several replays are ahead of which, all pairs tested together: in these runs, or as expected
values.

References
----------
Lan, DeMets. Discrete sequential boundaries for clinical trials. Biometrika 70(3), 1983.
Kim, DeMets. Design and analysis of group sequential tests based on the type I error spending rate function. Biometrika
74(1), 1987.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.expected import Uplift
from evaluator.comparisons.rule import Look, ShipRule
from evaluator.comparisons.variants import Line
from evaluator.estimates.confidence import Interval
from evaluator.estimates.simultaneous import holm
from evaluator.replays.findings.run import outside_seen
from evaluator.results.json_documents import (
    Count,
    Level,
    Share,
    Text,
    in_document,
    in_place_of,
    omitted,
    several,
)

Decision = Literal["ship", "wait", "don't"]
Target = Literal["expected", "realised", "weighted"]
ConditionName = Literal["difference", "guardrails", "checks", "propensities", "audit", "users"]
# Without these, no number decides.
_RESTS_ON: tuple[ConditionName, ...] = ("checks", "propensities", "audit", "users")
# So many variants that tie with another are named.
_NAMED = 2
EARNS = {"expected": "is expected to earn", "weighted": "would earn", "realised": "earned, in these runs,"}
_START = {"ship": "Ship", "wait": "Wait with", "don't": "Don't ship"}
# Above so many variants (780 pairs) only their differences to the baseline are tested.
ALL_PAIRS_UP_TO = 40
OF_THESE_RUNS = (
    "This is of what these runs happened to show, not of the policies: one that locks in early may win here and lose "
    "on average. `bootstrap=200` ranks expected values; `repeats` or other seeds show how far a policy's luck goes."
)
# What makes each bound known.
_TO_KNOW = {"largest": "name it (`reward_max`) or cap rewards (`cap`)", "smallest": "name it (`reward_min`)"}


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

    def joined(self, new: Condition) -> Condition:
        """Return the worse of two findings on one condition: what one found to be wrong, another does not mend."""
        if self.met is False is new.met and self.what != new.what:
            remedies = dict.fromkeys(one for one in (self.remedy, new.remedy) if one)
            return Condition(self.name, False, f"{self.what}; {new.what}", "; ".join(remedies))
        rank = {False: 0, True: 1, None: 2}
        return self if rank[self.met] < rank[new.met] else new


@dataclass(frozen=True)
class Harm:
    """A group of displays for which a variant is worse than the baseline: its interval lies below 0.

    Parameters
    ----------
    column, group
        Column that splits the displays, and name of the group.
    difference
        Difference to the baseline on displays of the group; all groups, columns and variants hold at once.
    target
        Quantity that it is of: what the two would earn there, or what these runs earned.
    """

    column: Text
    group: str
    difference: Interval
    target: Target


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
        Quantity that the difference is of: what the two policies are expected to earn, over logs and seeds; of two that
        do not learn what they would earn, weighted over all displays; or what these two runs earned.
    conditions
        Conditions of the rule.
    uplift
        Difference in the words of who decides: per cent, a month, the chance of a loss, a live test; None where no
        difference says what to expect.
    not_told_from
        Numbers of other variants that it may earn no more or less than: the interval of the difference of the two, of
        the same kind and level, holds 0.
    harmed
        Groups of the columns that ``by`` named for which it is worse than the baseline. They stand beside the decision,
        and do not change it.
    """

    line: Line
    decision: Decision
    difference: Interval | None
    target: Target
    conditions: tuple[Condition, ...]
    uplift: Uplift | None = None
    not_told_from: tuple[Count, ...] = ()
    harmed: tuple[Harm, ...] = ()

    @property
    def harm_text(self) -> str:
        """Sentence on the groups for which it is worse than the baseline, the worst first; empty without any."""
        worst = sorted(self.harmed, key=lambda one: one.difference.estimate)
        named = [
            f"{one.column} {one.group} ({one.difference.estimate:+.3g} [{one.difference.low:+.3g}, "
            f"{one.difference.high:+.3g}]{', in these runs' * (one.target == 'realised')})"
            for one in worst[:_NAMED]
        ]
        more = len(worst) - _NAMED
        listed = ", ".join([*named, *([f"{more} more" if more > 1 else "one more"] if more > 0 else [])])
        return f"Worse for {listed}, all groups together." if named else ""

    @property
    def limits(self) -> tuple[Condition, ...]:
        """Conditions that stand in the way of shipping it."""
        return tuple(of for of in self.conditions if of.met is not True)

    @property
    def sound(self) -> bool:
        """Whether nothing that the numbers rest on was found to be wrong."""
        return not any(of.met is False for of in self.conditions if of.name in _RESTS_ON)

    def ties_with(self, other: Candidate) -> bool:
        """Whether both have one decision and the same numbers; or both ship, and nothing tells which earns more."""
        if other is self or other.decision != self.decision:
            return False
        mine, others = self.difference, other.difference
        same = mine is not None and others is not None and _ends(mine) == _ends(others)
        return same or (self.decision == "ship" and other.line.variant in self.not_told_from)


@dataclass(frozen=True)
class Verdict:
    """Ship, wait or don't.

    Parameters
    ----------
    decision
        Verdict on the variant that it is about.
    variant
        Number of that variant, from 0: the one with the largest difference, of those that ship; else of those whose
        difference is told to exceed the limit; else of all whose guardrails are not broken; else of all.
    headline, sentence
        The decision with its number, the interval and the variants that tie; and the same with what stands in its way.
    settle
        Clauses that say what would settle it; empty where nothing is open.
    rule
        Rule that was stated before the run.
    level
        Probability with which no variant ships in error, all together; where looks were planned, at none of them.
    baseline
        Variant that the others are compared with.
    candidates
        Verdict on every variant but the baseline.
    ties
        Numbers of the variants that tie with it: of the same decision and numbers; or both ship, and nothing tells
        which of the two earns more.
    look
        Look that it is, of several that were planned; None for a verdict that is good for one look.
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
    ties: tuple[Count, ...] = ()
    look: Look | None = None

    def __post_init__(self) -> None:
        """Refuse a verdict on a variant that it says nothing of."""
        if all(of.line.variant != self.variant for of in self.candidates):
            raise ValueError("The verdict is on none of its candidates.")

    @property
    def candidate(self) -> Candidate:
        """Verdict on the variant that the headline is about."""
        return next(of for of in self.candidates if of.line.variant == self.variant)

    def name_of(self, line: Line, *, short: bool = False) -> str:
        """Return the name of a variant among those of the comparison."""
        return line.named_among((self.baseline, *(of.line for of in self.candidates)), short=short)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of the variant that the headline is about."""
        return self.candidate.conditions

    @in_document
    @property
    def interval_level(self) -> Level:
        """Level of the headline's interval, all variants together: at a planned look above that of all looks."""
        return level_at(self.look, self.candidate.target, self.level)

    def with_condition(self, conditions: Iterable[Condition | None]) -> Verdict:
        """Return the verdict with one more finding on a condition of each candidate; None where there is none."""
        known = tuple(
            of if new is None else _with_finding(of, new) for of, new in zip(self.candidates, conditions, strict=True)
        )
        return decide(known, rule=self.rule, level=self.level, baseline=self.baseline, look=self.look)


def level_at(look: Look | None, target: Target, level: float) -> float:
    """Return the level, all variants together, of intervals of some kind, where all looks together hold at a level."""
    return level if look is None or target == "realised" else look.level(level)


def _ends(of: Interval) -> tuple[float, float, float]:
    return of.estimate, of.low, of.high


def _with_finding(of: Candidate, new: Condition) -> Candidate:
    earlier = next((own for own in of.conditions if own.name == new.name), None)
    rest = tuple(own for own in of.conditions if own is not earlier)
    return replace(of, conditions=(*rest, new if earlier is None else earlier.joined(new)))


def decide(
    candidates: Iterable[Candidate], *, rule: ShipRule, level: float, baseline: Line, look: Look | None = None
) -> Verdict:
    """Return the verdict on candidates, of which each gets its decision by its conditions; one at least."""
    known = tuple(replace(of, decision=_decision(of.conditions)) for of in candidates)
    of = max(known, key=_standing)
    ties = [other.line for other in known if of.ties_with(other)]
    lines = (baseline, *(one.line for one in known))
    tied = _tied([line.named_among(lines) for line in ties])
    names = of.line.named_among(lines), baseline.named_among(lines)
    at = "" if look is None or of.target == "realised" else f" ({level_text(look.level(level))}, {look})"
    headline = f"{_headline(of, known, *names, at)}{tied}."
    against = [one for one in of.limits if of.decision != "don't" or one.met is False]
    return Verdict(
        decision=of.decision,
        variant=of.line.variant,
        headline=headline,
        sentence=" ".join(
            (headline, *filter(None, [of.harm_text]), *(f"{one.what[:1].upper()}{one.what[1:]}." for one in against))
        ),
        settle=() if of.decision == "don't" else tuple(one.remedy for one in of.limits if one.remedy),
        rule=rule,
        level=level,
        baseline=baseline,
        candidates=known,
        ties=tuple(line.variant for line in ties),
        look=look,
    )


def _standing(of: Candidate) -> tuple[bool, bool, bool, float, float, bool]:
    """Return by what the headline's candidate is chosen: the largest first.

    A stricter rule takes candidates down from the first two alone, so that it never makes a headline say "ship".
    """
    met = {one.name: one.met for one in of.conditions}
    sound = met.get("guardrails") is not False
    found = of.difference
    known = found is not None and not math.isnan(found.estimate)
    number = (found.estimate, found.low) if found is not None and known else (-math.inf, -math.inf)
    return of.decision == "ship", sound and met["difference"] is True, sound, *number, of.decision == "wait"


def _tied(ties: Sequence[str]) -> str:
    if not ties:
        return ""
    more = len(ties) - _NAMED
    names = [*ties[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"; it ties with {', '.join(names[:-1])}{' and ' if len(names) > 1 else ''}{names[-1]}"


def _decision(conditions: Iterable[Condition]) -> Decision:
    met = {of.name: of.met for of in conditions}
    if any(met.get(name) is False for name in _RESTS_ON):
        return "wait"
    if met["difference"] is False or met.get("guardrails") is False:
        return "don't"
    return "ship" if all(met.values()) else "wait"


def level_text(level: float) -> str:
    """Return a level in as many digits as tell its error.

    >>> level_text(0.95), level_text(0.9924), level_text(0.9999937)
    ('95 %', '99.24 %', '99.99937 %')
    """
    decimals = max(1 - math.floor(math.log10(100.0 * (1.0 - level))), 2)
    return f"{round(100.0 * level, decimals):.12g} %"


def _headline(of: Candidate, candidates: Sequence[Candidate], name: str, baseline: str, at: str) -> str:
    """Return the decision, and the number that it is about, with the words on its level."""
    start = f"{_START[of.decision]} {name}"
    if of.decision == "don't" and len(candidates) > 1:
        none = all(one.decision == "don't" for one in candidates)
        start = f"Don't ship any candidate, {name} least far off" if none else f"{start}, the best of {len(candidates)}"
    found = of.difference
    if found is None:
        return f"{start}: it has no difference to {baseline} to judge by"
    earns = EARNS[of.target]
    number = f"{found.estimate:+.3g} [{found.low:+.3g}, {found.high:+.3g}]{at}"
    return f"{start}: it {earns} {number} per {'display' if of.target == 'weighted' else 'round'} beyond {baseline}"


@dataclass(frozen=True)
class TestedDifference:
    """A difference among several tested together: told from 0 if `adjusted` (Holm) is at most 1 - level."""

    difference: Difference
    adjusted: float
    apart: bool


@dataclass(frozen=True, kw_only=True)
class ListedTest(Difference):
    """A difference among several tested together, as a document has it.

    Parameters
    ----------
    p_adjusted
        P-value adjusted by Holm's method for all tests, of the ranking's target.
    apart
        Whether it is told from 0, all tests at once.
    """

    p_adjusted: Share
    apart: bool


@dataclass(frozen=True)
class Ranking:
    """Variants by their value at the common horizon, and which of them are ahead of which.

    Parameters
    ----------
    target
        Quantity that the tests are about. ``realised``: the mean expected reward of what these runs showed, which
        differs from seed to seed. ``expected``: the mean over logs and seeds of what the policies earn, where a
        bootstrap was run. ``weighted``: what policies that do not learn would earn, where all are such.
    groups
        Variants, from 0, the highest value first: those whose rewards are cut alike stand in one group, and no two
        groups are compared. Variants without rounds are in none.
    values
        Value of each variant at the common horizon, in their own order; nan where it has none.
    ahead_of
        Numbers of the variants that each variant, in their own order, is ahead of by a difference told from 0.
    tests
        All the differences that were tested.
    all_pairs
        Whether all pairs were tested; False where, to bound the cost, only differences to the baseline were.
    level
        Probability with which, of all the tests at once, no difference is told from 0 that is 0 or has the other sign.
    rests_on
        Which bounds of a display's reward, ``largest`` and ``smallest``, are only what was seen, so that the tests rest
        on nothing beyond them being possible; none where both are known.
    """

    target: Target
    groups: tuple[tuple[Count, ...], ...]
    values: tuple[float, ...]
    ahead_of: tuple[tuple[Count, ...], ...]
    tests: tuple[TestedDifference, ...]
    all_pairs: Annotated[bool, *omitted]
    level: Level
    rests_on: Annotated[tuple[str, ...], *omitted] = ()

    @in_place_of("tests")
    def _listed(self, tests: tuple[TestedDifference, ...]) -> tuple[ListedTest, ...]:
        return tuple(ListedTest(**vars(of.difference), p_adjusted=of.adjusted, apart=of.apart) for of in tests)

    @in_document
    @property
    def tested(self) -> Literal["all pairs", "differences to the baseline"]:
        """Which differences were tested."""
        return "all pairs" if self.all_pairs else "differences to the baseline"

    @in_document
    @property
    def conclusion(self) -> str:
        """What the ranking says, and of what."""
        if not self.tests:
            return "No two variants can be compared."
        apart = sum(test.apart for test in self.tests)
        what = "differences" if self.all_pairs else "differences to the baseline"
        count = f"{apart:,} of {len(self.tests):,} {what}" if apart else f"none of {len(self.tests):,} {what}"
        at_once = f"told from 0 at {percent(self.level)}, all tests at once"
        if self.target == "weighted":
            return f"Of the values weighted over all displays, {count} {'is' if apart < 2 else 'are'} {at_once}."
        if self.target == "expected":
            return f"Of the expected values, {count} {'is' if apart < 2 else 'are'} {at_once} (bootstrap)."
        if self.rests_on:
            return (
                f"In these runs, {count} would be {at_once}, if no display could earn {outside_seen(self.rests_on)}: "
                f"{' and '.join(_TO_KNOW[end] for end in self.rests_on)} to know. {OF_THESE_RUNS}"
            )
        return f"In these runs, {count} {'is' if apart < 2 else 'are'} {at_once}. {OF_THESE_RUNS}"


def percent(level: float) -> str:
    """Return a level as people write it.

    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:.6g} %"


def ranked_pairs(variants: int, baseline: int) -> list[tuple[int, int]]:
    """Return the pairs that a ranking tests: all, or each variant with the baseline where they are too many."""
    if variants <= ALL_PAIRS_UP_TO:
        return [(i, j) for j in range(variants) for i in range(j)]
    return [(min(i, baseline), max(i, baseline)) for i in range(variants) if i != baseline]


def rank(
    values: Sequence[float],
    cuts: Sequence[object],
    differences: Mapping[tuple[int, int], Difference],
    baseline: int,
    *,
    level: float,
    rests_on: tuple[str, ...] = (),
) -> Ranking:
    """Return the ranking of variants, from the differences of all `ranked_pairs`.

    Of the weighted values where no policy learns; else of the expected values where any two have a difference of these.
    A pair without one is then not told apart. Values are those at the common horizon, nan where there is none; `cuts`
    are equal where rewards are cut alike, so that values can be compared. Realised
    values rest on the bounds of rewards `rests_on`, which are only what was seen.
    """
    pairs = ranked_pairs(len(values), baseline)
    known = [differences[pair] for pair in pairs]
    weighted = bool(known) and all(of.weighted is not None for of in known)
    tested = [of for of in known if weighted or of.realised is not None]
    target: Target = "weighted" if weighted else "realised"
    if not weighted and any(of.expected is not None for of in tested):
        target = "expected"
    found = [_found(of, target) for of in tested]
    adjusted = holm([p for _, p in found])
    tests = tuple(
        TestedDifference(of, float(p), bool(p <= 1.0 - level)) for of, p in zip(tested, adjusted, strict=True)
    )
    ahead: list[list[int]] = [[] for _ in values]
    for test, (interval, _) in zip(tests, found, strict=True):
        if test.apart and interval is not None:
            of = test.difference
            winner, loser = (of.variant, of.reference) if interval.estimate > 0 else (of.reference, of.variant)
            ahead[winner].append(loser)
    return Ranking(
        target,
        _groups(values, cuts),
        tuple(values),
        tuple(tuple(sorted(losers)) for losers in ahead),
        tests,
        len(values) <= ALL_PAIRS_UP_TO,
        level,
        rests_on if target == "realised" else (),
    )


def _found(of: Difference, target: Target) -> tuple[Interval | None, float]:
    if target == "weighted" and of.weighted is not None:
        return (of.weighted.value, of.weighted.p) if of.weighted.given else (None, 1.0)
    if target == "realised":
        return of.realised, of.p
    return of.expected, 1.0 if of.expected is None else of.expected_p


def _groups(values: Sequence[float], cuts: Sequence[object]) -> tuple[tuple[int, ...], ...]:
    groups: dict[object, list[int]] = {}
    for i, (value, cut) in enumerate(zip(values, cuts, strict=True)):
        if not math.isnan(value):
            groups.setdefault(cut, []).append(i)
    return tuple(tuple(sorted(group, key=lambda i: -values[i])) for group in groups.values())
