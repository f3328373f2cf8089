"""What the page of a comparison says of its verdict: head line, tiles, what it rests on, candidates, and next steps.

All is said of the verdict in a `VerdictBlock`, so that what checks and audits add to the verdict is in every sentence.
Variants have their policies for names, and their windows where these differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evaluator.comparisons.expected import LiveTest
from evaluator.comparisons.variants import Line
from evaluator.comparisons.verdict import EARNS, Candidate, Decision, Verdict, level_text, percent
from evaluator.escape import escape, shortened
from evaluator.estimates.confidence import Interval
from evaluator.reports.document import VerdictBlock
from evaluator.reports.numbers import interval_parts, interval_text

if TYPE_CHECKING:
    from evaluator.comparisons.result import Comparison
    from evaluator.comparisons.segment_differences import SegmentDifferences

_START = {"ship": "Ship", "wait": "Wait", "don't": "Don't ship"}
_FEW = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# So many variants that tie with another are named.
_NAMED = 2
# Rows of a chart at most; more are in the tables.
MOST_ROWS = 5
# Rows of the table of candidates at most, without the baseline: all are in the numbers below it.
_MOST = 6
# Letters of a policy's name at least.
_LEAST = 5
# Letters of a name that a table has room for, on two lines.
_WHOLE = 36
# Days of a year.
_YEAR = 365.25
_FIXED = re.compile(r"fixed:action=(?:\d+ \((?P<of_index>.*)\)|\"?(?P<label>.*?)\"?)", re.DOTALL)
# What stands in the way of a candidate beside its difference, in a word or two.
_IN_THE_WAY = {
    "guardrails": "guardrails", "checks": "checks of the log", "propensities": "propensities", "audit": "audit",
    "users": "returning users",
}  # fmt: skip


class Tile(NamedTuple):
    """A number in large print, and what it is."""

    number: str
    what: str


class CandidateRow(NamedTuple):
    """A row of the table of candidates; an empty decision is that of the baseline.

    `earned` is the reward of a display, `against` what stands in the way beside the difference; empty where nothing
    does.
    """

    name: str
    earned: str
    difference: str
    decision: Decision | str
    against: str = ""


def short_name(line: Line, verdict: Verdict, most: int) -> str:
    """Return the name of a variant in so many letters, told from the names of all candidates where that can be.

    Of a fixed action that is the label alone, where its name is longer; of another policy its name is cut, and not the
    window, schedule or teacher that tells it from others.
    """

    def label(of: Line) -> str:
        name = verdict.name_of(of)
        if len(name) > most:
            fixed = _FIXED.fullmatch(name)
            name = verdict.name_of(of, short=True) if fixed is None else fixed["of_index"] or fixed["label"] or name
        return escape(name)

    def cut_policy(name: str) -> str:
        policy, comma, rest = name.partition(", ")
        room = most - len(comma + rest)
        return shortened(name, most) if room < _LEAST else shortened(policy, room) + comma + rest

    names = {label(of.line) for of in verdict.candidates}
    cuts: tuple[Callable[[str], str], ...] = (
        cut_policy,
        lambda name: name if len(name) <= most else f"{name[: most - 1]}…",
        lambda name: name if len(name) <= most else f"…{name[1 - most :]}",
    )
    cut = next((cut for cut in cuts if len(set(map(cut, names))) == len(names)), cuts[0])
    return cut(label(line))


def ranked(verdict: Verdict) -> list[Candidate]:
    """Return the candidates: the one of the headline, then the others, the largest difference first."""

    def size(of: Candidate) -> float:
        known = of.difference is not None and not math.isnan(of.difference.estimate)
        return of.difference.estimate if known and of.difference is not None else -math.inf

    return sorted(verdict.candidates, key=lambda of: (of.line.variant != verdict.variant, -size(of)))


def first_of(names: Sequence[str]) -> str:
    """Return names as a list of three, with the number of the others."""
    return ", ".join([*names[:3], *([f"{len(names) - 3} more"] if len(names) > 3 else [])])


def baseline_of(verdict: Verdict) -> str:
    """Return the name of the baseline within a sentence."""
    name = verdict.name_of(verdict.baseline)
    return "the logging policy" if name == "logging" else name


def groups_of(comparison: Comparison) -> SegmentDifferences | None:
    """Return the differences of the headline's variant in the groups of the first column; None without groups."""
    if comparison.verdict is None:
        return None
    found = (one for one in comparison.segments if one.variant == comparison.verdict.variant and one.groups)
    return next(found, None)


def reward_of(comparison: Comparison) -> str:
    """Return the name of what is earned: conversions, where each of them is worth 1."""
    objective = str(comparison.results[0].plan["objective"] or "reward")
    if objective != "revenue":
        return objective
    rewards = (result.trajectory["reward"].to_numpy() for result in comparison.results)
    return "conversions" if all(bool(((of == 0.0) | (of == 1.0)).all()) for of in rewards) else objective


def head(verdict: Verdict) -> tuple[str, str]:
    """Return the decision, and the variant that it is about."""
    none = verdict.decision == "don't" and len(verdict.candidates) > 1
    if none and all(one.decision == "don't" for one in verdict.candidates):
        return "Don't ship", "any candidate"
    name = verdict.name_of(verdict.candidate.line)
    return _START[verdict.decision], f"with {name}" if verdict.decision == "wait" else name


def sentences(verdict: Verdict) -> tuple[str, str, str]:
    """Return the number that decides, with the words before it and after it."""
    of, base = verdict.candidate, baseline_of(verdict)
    who = verdict.name_of(of.line) if head(verdict)[1] == "any candidate" else "It"
    if of.difference is None or math.isnan(of.difference.estimate):
        return f"{who} has no difference to {base} to judge by.", "", _against(of)
    found = of.difference
    number, low, high = interval_parts(found)
    if found.low > 0.0:
        low, high = low.lstrip("+"), high.lstrip("+")
    more = f"{number.lstrip('+-')} {'less' if found.estimate < 0 else 'more'} a display"
    several = len(verdict.candidates)
    together = f", {counted_word(several)} candidates together" if several > 1 else ""
    after = (
        f" than {base} ({level_text(verdict.interval_level)} interval {low} to {high}{together}, {_looks(verdict)}). "
        f"The rule asks for more than {rule_words(verdict)}.{_ties(verdict)}"
        f"{' ' * bool(of.harm_text)}{of.harm_text}{_against(of)}"
    )
    return f"{who} {EARNS[of.target]} ", more, after


def _looks(verdict: Verdict) -> str:
    if verdict.candidate.target == "realised":
        return "good for any number of looks"
    if verdict.look is None:
        return "good for one look"
    return f"{verdict.look}: {level_text(verdict.level)} over all looks"


def planned_looks(verdicts: Sequence[Verdict]) -> str:
    """Return how often several verdicts on one question asked it, and what that costs; empty where it costs nothing."""
    asked = [verdict for verdict in verdicts if verdict.candidate.target != "realised"]
    alone = sum(verdict.look is None for verdict in asked)
    if len(asked) < 2:
        return ""
    if alone:
        one = (
            "Each verdict"
            if alone == len(asked)
            else f"{alone} of the verdicts"
            if alone > 1
            else "One of the verdicts"
        )
        good = f"{one} {'is' if alone in (1, len(asked)) else 'are'} good for one look"
        return (
            f"These are {len(asked)} looks at one question. {good}: that any of them ships what earns no more is up to "
            f"{len(asked)} times as likely as that one does. `look` shares one verdict's error among planned looks."
        )
    looks = dict.fromkeys(str(verdict.look) for verdict in asked)
    return f"These are {', '.join(looks)}: all planned looks together are wrong no more often than one verdict."


def counted_word(number: int) -> str:
    """Return a number in words where it is small."""
    return _FEW[number] if number < len(_FEW) else f"{number:,}"


def rule_words(verdict: Verdict) -> str:
    """Return the limit of the rule in words."""
    rule = verdict.rule
    return f"{100 * rule.limit:g} %" if rule.relative else f"{rule.limit:g}"


def _ties(verdict: Verdict) -> str:
    names = [verdict.name_of(one.line) for one in verdict.candidates if one.line.variant in verdict.ties]
    if not names:
        return ""
    if len(names) > _NAMED:
        return f" It ties with {counted_word(len(names))} others."
    return f" It ties with {' and '.join(names)}."


def _against(of: Candidate) -> str:
    against = [one.what for one in of.limits if of.decision != "don't" or one.met is False]
    return "".join(f" {what[:1].upper()}{what[1:]}." for what in against)


def tiles(block: VerdictBlock) -> list[Tile]:
    """Return per cent, money, chance of a loss and cost of waiting; none of numbers that rest on what is wrong."""
    verdict = block.verdict
    of, uplift, base = verdict.candidate, verdict.candidate.uplift, baseline_of(verdict)
    if uplift is None or of.difference is None or not of.sound:
        return []
    earned = [block.earned[i] if i < len(block.earned) else "" for i in (of.line.variant, verdict.baseline.variant)]
    values = f" ({earned[0]} instead of {earned[1]})" if all(earned) else ""
    found = []
    if uplift.share is None:
        number, low, high = interval_parts(of.difference)
        found.append(Tile(number, f"{block.reward} a display, {low} to {high}{values}"))
    else:
        number, low, high = interval_parts(uplift.share, percent=True)
        found.append(Tile(f"{number} %", f"{block.reward} a display, {low} to {high} %{values}"))
    number, low, high = interval_parts(_rounded(uplift.amount))
    if uplift.unit == "month":
        displays = float(f"{uplift.displays:.3g}")
        found.append(Tile(f"{number} a month", f"{low} to {high}, at {displays:,.0f} displays a month"))
    else:
        found.append(Tile(number, f"per 1,000 displays, {low} to {high}"))
    if uplift.chance_of_loss is not None:
        number = chance_text(uplift.chance_of_loss).replace("%", " %")
        found.append(Tile(number, f"chance that it earns less than {base}"))
    if uplift.cost_of_waiting is None:
        found.append(Tile("not known", "cost of waiting a month: the log has no dates"))
    elif uplift.cost_of_waiting > 0.0:
        waiting = interval_parts(_rounded(uplift.amount))[0].lstrip("+")
        found.append(Tile(waiting, f"what one more month with {base} costs, if the estimate is true"))
    else:
        found.append(Tile("0", "what waiting another month costs"))
    return found


def candidate_rows(block: VerdictBlock) -> list[CandidateRow]:
    """Return all candidates, the largest difference first, and the baseline as the last one."""
    verdict = block.verdict

    def earned(line: Line) -> str:
        return block.earned[line.variant] if line.variant < len(block.earned) else ""

    rows = []
    # What stands in the way of the headline's candidate is said with the decision.
    of_headline = {one.name for one in verdict.candidate.limits}
    for of in ranked(verdict)[:_MOST]:
        number = "none" if of.difference is None else interval_parts(of.difference)[0]
        words = (_IN_THE_WAY.get(one.name) for one in of.limits if one.name not in of_headline)
        against = ", ".join(filter(None, words))
        rows.append(CandidateRow(short_name(of.line, verdict, _WHOLE), earned(of.line), number, of.decision, against))
    base = verdict.baseline
    return [*rows, CandidateRow(verdict.name_of(base), earned(base), "baseline", "")]


def left_out(verdict: Verdict) -> str:
    """Return a sentence on the candidates that the table has no room for; empty where it has all."""
    more = ranked(verdict)[_MOST:]
    if not more:
        return ""
    decisions = [of.decision for of in more]
    counts = [f"{decisions.count(of)} {of}" for of in dict.fromkeys(decisions)]
    return f"{counted_word(len(more)).capitalize()} more ({', '.join(counts)}): below, in all numbers."


def next_title(verdict: Verdict) -> str:
    """Return the title of what to do next: where the verdict is to wait, what would settle it."""
    return "What would settle it" if verdict.decision == "wait" else "What to do next"


def steps(verdict: Verdict) -> list[str]:
    """Return what to do next: a plan of a live test, what would settle the question, or that nothing is to be done."""
    of, test = verdict.candidate, None if verdict.candidate.uplift is None else verdict.candidate.uplift.live_test
    base = baseline_of(verdict)
    if verdict.decision == "don't":
        return [f"Keep {base}. A candidate of another kind, or other limits, need a comparison of their own."]
    plan = [] if test is None or of.difference is None or not of.sound else _plan(test, of.difference)
    if verdict.decision == "ship":
        waits = test is not None and test.days_after
        after = f"Wait {days_text(waits)} for the last conversions, then" if waits else "Then"
        return [*plan, f"{after} all traffic. Ask again on the next log: `evaluate report runs/*`"]
    settle = [f"{line[:1].upper()}{line[1:]}" for line in dict.fromkeys(verdict.settle)]
    settle = [line if line.endswith(("`", ".")) or line.startswith("--") else f"{line}." for line in settle]
    live = [f"A live test. {' '.join(plan)}"] if plan else []
    return [*settle, *live] or [f"Keep {base} until more is known."]


def _plan(test: LiveTest, difference: Interval) -> list[str]:
    number, low, _ = interval_parts(difference)
    of = "Half" if test.share == 0.5 else f"{100 * test.share:.3g} %"
    served = "" if test.days is None else f" ({test.displays:,} displays)"
    at_low = ""
    if test.displays_at_low is not None and test.displays_at_low > test.displays:
        at_low = f"; {_lasts(test.displays_at_low, test.days_at_low)} if only {low} is true"
    lasts = f"{of} of the traffic for {_lasts(test.displays, test.days)}{served}"
    return [f"{lasts} shows {number} live with 80 % power{at_low}.", f"Stop {test.stop}."]


def _rounded(of: Interval) -> Interval:
    """Return an interval whose numbers have two digits of half its length: more say nothing."""
    half = (of.high - of.low) / 2.0
    if not (math.isfinite(half) and half > 0.0):
        return of
    digits = 1 - math.floor(math.log10(half))
    estimate, low, high = (round(end, digits) for end in (of.estimate, of.low, of.high))
    return replace(of, estimate=estimate, low=low, high=high)


def limit_of(verdict: Verdict) -> float | None:
    """Return the limit of the rule in reward per display; None for a share of what is not known."""
    if not verdict.rule.relative:
        return verdict.rule.limit
    of = verdict.candidate
    if of.uplift is None or of.uplift.share is None or of.difference is None or not of.uplift.share.estimate:
        return None
    return verdict.rule.limit * of.difference.estimate / of.uplift.share.estimate


def stakes(verdict: Verdict) -> list[str]:
    """Return what the variant of a headline would change, a live test of it, and who loses; no unsound numbers."""
    candidate, uplift = verdict.candidate, verdict.candidate.uplift
    harm = [candidate.harm_text] if candidate.harm_text else []
    if uplift is None or not candidate.sound:
        return harm
    a_month = uplift.unit == "month"
    amount = _interval(uplift.amount)
    per = f"{amount} a month of {uplift.displays:,.0f} displays" if a_month else f"{amount} per 1,000 displays"
    share = "" if uplift.share is None else f"{_interval(uplift.share, percent=True)} of what it earns; "
    lines = [f"Beyond {verdict.name_of(verdict.baseline)}: {share}{per}."]
    if uplift.chance_of_loss is not None:
        costs = ""
        if verdict.decision == "ship" and uplift.cost_of_waiting is not None:
            costs = f" Waiting another month costs about {amount.partition(' ')[0].lstrip('+')}."
        lines.append(f"Chance that it earns less: {chance_text(uplift.chance_of_loss)}.{costs}")
    if uplift.live_test is not None and verdict.decision != "don't":
        lines.append(_live_test(uplift.live_test))
    return [*lines, *harm]


def _interval(of: Interval, *, percent: bool = False) -> str:
    return interval_text(of.estimate, of.low, of.high, percent=percent)


def _live_test(test: LiveTest) -> str:
    """Return a live test in words: how much traffic for how long, and when to stop it."""
    long = _lasts(test.displays, test.days) + ("" if test.days is None else f" ({test.displays:,} displays)")
    low, at_low = test.displays_at_low, ""
    if low is not None and low > test.displays:
        at_low = f", {_lasts(low, test.days_at_low)} if only the lower end is true"
    after = f" The last conversions are in {days_text(test.days_after)} later." if test.days_after else ""
    return (
        f"Live test: {test.share:.0%} of the traffic for {long} shows the difference with a power of 80 %{at_low}."
        f"{after} Stop it {test.stop}."
    )


def _lasts(displays: int, days: float | None) -> str:
    """Return how long a live test takes: in days, where these are known."""
    return f"{displays:,} displays" if days is None else days_text(days)


def days_text(days: float) -> str:
    """Return a number of days in words, rounded up; of years from ten on.

    >>> days_text(0.2), days_text(1), days_text(23.1), days_text(29_723)
    ('less than a day', '1 day', '24 days', '82 years')
    """
    if days >= 10 * _YEAR:
        return f"{math.ceil(days / _YEAR):,} years"
    return "less than a day" if days < 1.0 else f"{math.ceil(days):,} day{'s' * (days > 1.0)}"


def chance_text(chance: float) -> str:
    """Return a chance in per cent, with bounds for one that is close to 0 or 1."""
    if chance < 0.001:
        return "under 0.1%"
    return "over 99.9%" if chance > 0.999 else f"{chance:.{1 if min(chance, 1.0 - chance) < 0.1 else 0}%}"


def rule_text(verdict: Verdict) -> str:
    """Return the rule in words, and its result for the other lines."""
    together = f", {len(verdict.candidates)} candidates together" if len(verdict.candidates) > 1 else ""
    rest = [
        f"{verdict.name_of(one.line)}: {one.decision}"
        for one in verdict.candidates
        if one.line.variant != verdict.variant
    ]
    looks, level = "", percent(verdict.level)
    if verdict.candidate.target == "realised":
        looks = ", at any number of looks" if verdict.candidate.uplift is not None else ""
    elif verdict.look is not None:
        looks, level = f": {level} over all {verdict.look.planned:,} looks", level_text(verdict.interval_level)
        level += f", {verdict.look}"
    elif verdict.candidate.uplift is not None:
        looks = ", good for one look"
    return f"Rule: {verdict.rule.text} at {level}{together}{looks}." + (f" {', '.join(rest)}." if rest else "")
