"""The page of a comparison, for the person who decides: the decision first, all that explains it folded below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluator.comparisons.result import Comparison
from evaluator.comparisons.segment_differences import SegmentDifferences
from evaluator.comparisons.verdict import Harm, Verdict, level_text
from evaluator.findings.codes import LARGEST_REWARD_SEEN, SMALLEST_REWARD_SEEN, YOUNG_DISPLAYS
from evaluator.findings.finding import warnings_of
from evaluator.replays.result import ReplayResult
from evaluator.reports.decision_words import (
    MOST_ROWS,
    baseline_of,
    first_of,
    groups_of,
    left_out,
    name_of,
    next_title,
    reward_of,
)
from evaluator.reports.document import Layout, Section, VerdictBlock, paragraph, section
from evaluator.reports.numbers import interval_parts, percent_text
from evaluator.reports.replay import share_within
from evaluator.reports.shared_sections import counted, fold, picture, which_log

# Sections that say what the numbers rest on; all others are numbers.
_RESTS_ON = ("checks", "warnings", "assumptions")
_MOST_ACTIONS = 4
_SHORT = {
    LARGEST_REWARD_SEEN.name: "what a display can earn at most is not known",
    SMALLEST_REWARD_SEEN.name: "what a display can lose at most is not known",
}


def page_sections(comparison: Comparison, layout: Layout, report: Sequence[Section]) -> Iterator[Section]:
    """Yield the sections of the page: the log, the decision, pictures, candidates, next steps; all else folded."""
    yield _log(comparison, layout)
    block = decision_block(comparison)
    if block is None:
        yield from report
        return
    yield section("", block)
    yield from _pictures(comparison, block.verdict)
    more = left_out(block.verdict)
    below = [paragraph(more, style="dim")] if more else []
    yield section("All candidates", *below, replace(block, part="candidates"), half=True)
    yield section(next_title(block.verdict), replace(block, part="next"), half=True)
    yield from _folds(comparison, report, block)


def _pictures(comparison: Comparison, verdict: Verdict) -> Iterator[Section]:
    """Yield the four charts, each with a question for a title and a line on what it shows."""
    of, base = verdict.candidate, baseline_of(verdict)
    together = ", all together" if len(verdict.candidates) > 1 else ""
    name = name_of(of.line, verdict)
    shown = f"; the first {MOST_ROWS} of {len(verdict.candidates)}" if len(verdict.candidates) > MOST_ROWS else ""
    yield picture(
        "How much more a display?",
        f"difference to {base}; bar: {level_text(verdict.interval_level)}{together}; green: the rule is met{shown}",
        "decision",
    )
    if groups := groups_of(comparison):
        yield picture("Who gains?", f"{name} by {groups.column}; {_gainers(groups, of.harmed)}", "gainers")
    yield picture("When does it pay?", f"extra {reward_of(comparison)} of this run against {base}, so far", "gain")
    yield picture("What will customers see?", "share of displays; each action has its own colour", "seen")


def _gainers(groups: SegmentDifferences, harmed: Sequence[Harm]) -> str:
    """Return which groups are shown to lose, or that none is, and which are not told from 0."""
    lose = [one.group for one in harmed if one.column == groups.column]
    open_ = [one.label for one in groups.groups if one.of_values.low <= 0.0 <= one.of_values.high]
    of_run = "" if any(one.weighted for one in groups.groups) else " (of this run)"
    losing = f"shown to lose: {first_of(lose)}" if lose else "none is shown to lose"
    if not open_:
        return losing
    if len(open_) == len(groups.groups):
        return f"{losing}, none alone is told from 0{of_run}"
    return f"{losing}, {first_of(open_)} alone not told from 0{of_run}"


def _log(comparison: Comparison, layout: Layout) -> Section:
    plan, verdict = comparison.results[0].plan, comparison.verdict
    size = f"{plan['displays']:,} displays, {plan['conversions']:,} conversions"
    base = comparison.results[comparison.baseline].plan["policy"] if verdict is None else baseline_of(verdict)
    return which_log(str(plan["dataset"]), size, layout=layout, baseline=base)


def decision_block(comparison: Comparison) -> VerdictBlock | None:
    """Return the verdict with what each line earns and what else to know; None for a comparison without a verdict."""
    verdict = comparison.verdict
    if verdict is None:
        return None
    return VerdictBlock(
        verdict,
        reward=reward_of(comparison),
        earned=tuple(_earned(comparison)),
        notes=tuple(_notes(comparison)),
    )


def _earned(comparison: Comparison) -> Iterator[str]:
    """Yield what a display earns with each line: with the difference that decides, it adds up."""
    verdict = comparison.verdict
    known = {} if verdict is None else {one.line.variant: one.difference for one in verdict.candidates}
    base = _value_of_baseline(comparison)
    digits = {len(interval_parts(of)[0].partition(".")[2]) for of in known.values() if of is not None}
    for i, result in enumerate(comparison.results):
        difference, value = known.get(i), (result.expected_value or result.value).estimate
        if base is not None and i == comparison.baseline:
            value = base
        elif base is not None and difference is not None:
            value = base + difference.estimate
        yield f"{value:,.{max(digits, default=2)}f}" if math.isfinite(value) else ""


def _value_of_baseline(comparison: Comparison) -> float | None:
    """Return what a display earns with the baseline, of which the uplift of the headline is a share."""
    of = None if comparison.verdict is None else comparison.verdict.candidate
    if of is None or of.uplift is None or of.uplift.share is None or of.difference is None:
        return None
    share = of.uplift.share.estimate
    return of.difference.estimate / share if share else None


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield groups that lose, warnings in a few words, and the number of those that are too long for that."""
    groups = groups_of(comparison)
    harmed = () if comparison.verdict is None else comparison.verdict.candidate.harmed
    if groups is not None and (lose := [one.group for one in harmed if one.column == groups.column]):
        yield f"{groups.column}: {first_of(lose)} shown to lose"
    results = comparison.results
    plan = results[0].plan
    found = {finding.code: finding for result in results for finding in warnings_of(result.findings)}
    found |= {finding.code: finding for finding in warnings_of(comparison.findings)}
    if YOUNG_DISPLAYS.name in found and plan["displays"]:
        share = plan["displays_immature"] / plan["displays"]
        yield f"{percent_text(share)} of the log is too young to judge: left out"
    yield from (short for code, short in _SHORT.items() if code in found)
    more = len(found.keys() - {YOUNG_DISPLAYS.name, *_SHORT})
    if groups is None:
        yield "groups of displays were not compared (`by`)"
    if more:
        yield f"{counted(more, 'warning')} more: below, in what it rests on"


def _folds(comparison: Comparison, report: Sequence[Section], block: VerdictBlock) -> Iterator[Section]:
    """Yield the sections of the full report in three folds."""
    rests = [part for part in report if part.id in _RESTS_ON]
    passed = 0 if comparison.check is None else len(comparison.check.checks)
    assumptions = sum(len(getattr(of, "items", ())) for part in rests if part.id == "assumptions" for of in part.blocks)
    about = ", ".join(filter(None, (counted(assumptions, "assumption"), counted(passed, "check"))))
    conditions = section("Conditions of the rule", replace(block, part="conditions"))
    yield from fold("What it rests on", about, [conditions, *rests])
    first = comparison.results[0]
    log = section("", paragraph(_used(first)))
    yield from fold("The log and its delays", share_within(first), [log], charts=("windows", "acceptance"))
    numbers = [part for part in report if part.id not in _RESTS_ON]
    about = "regret, ranking, realised values, groups"
    groups = [f"differences by {column}" for column in dict.fromkeys(one.column for one in comparison.segments)]
    actions = [f"actions {i + 1}" for i in range(_MOST_ACTIONS)]
    charts = ("comparison", "differences", "guardrails", *groups, *actions)
    yield from fold("All numbers", about, numbers, charts=charts)


def _used(result: ReplayResult) -> str:
    plan = result.plan
    return (
        f"{plan['displays_used']:,} of {plan['displays']:,} displays were used; {plan['displays_immature']:,} were "
        f"followed too briefly to be judged. Window: {plan['window']}."
    )
