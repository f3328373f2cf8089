"""What runs of one comparison on logs of different dates say together: the latest verdict first, then all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from evaluator.comparisons.verdict import Candidate, Decision, Verdict
from evaluator.reports.chapter import Chapter, Spec
from evaluator.reports.dated_runs import Run, Study
from evaluator.reports.decision_charts import limit_of
from evaluator.reports.decision_words import (
    baseline_of,
    counted_word,
    name_of,
    planned_looks,
    ranked,
    rule_words,
    short_name,
)
from evaluator.reports.document import Section, VerdictBlock, listed, paragraph, run, section
from evaluator.reports.manifest import LogDates
from evaluator.reports.small_charts import intervals_chart

# Candidates with a chart of their own, and runs in it: the latest ones.
_MOST_CHARTS, MOST_RUNS = 4, 6
_LETTERS = 40
_DOES: dict[Decision, str] = {"ship": "ships", "wait": "waits", "don't": "is not to be shipped"}


def verdict_of(chapter: Chapter) -> VerdictBlock | None:
    """Return the verdict of a chapter with what the page says of it; None without one."""
    blocks = (block for part in chapter.sections for block in part.blocks if isinstance(block, VerdictBlock))
    return next((block for block in blocks if block.part == "decision"), None)


def verdicts_of(study: Study) -> list[VerdictBlock]:
    """Return the verdict of each run of a study; none unless all runs have one."""
    blocks = [block for one in study.runs if (block := verdict_of(one.chapter)) is not None]
    return blocks if study.kind == "compare" and len(blocks) == len(study.runs) else []


def joint_sections(study: Study, blocks: Sequence[VerdictBlock]) -> Iterator[tuple[Section, dict[str, Spec]]]:
    """Yield the latest verdict, what all runs say, a small chart a candidate, and what changed, each with its charts.

    Runs and their verdicts stand in one order, the oldest log first.
    """
    runs, latest = study.runs, blocks[-1]
    first, last = min(one.when.first for one in runs), max(one.when.last for one in runs)
    which = (str(runs[0].source["dataset"]), LogDates(first, last).spoken, f"{len(runs)} runs")
    base = run(baseline_of(latest.verdict), "bold")
    yield section("", paragraph(run(" · ".join(which), "dim"), run(" · compared with ", "dim"), base)), {}
    yield section("", latest), {}
    yield section("", paragraph(f"This is the latest run ({runs[-1].when.spoken}). {_together(blocks)}")), {}
    verdicts = [block.verdict for block in blocks]
    shown = ranked(latest.verdict)[:_MOST_CHARTS]
    for number, of in enumerate(shown, start=1):
        name, chart = f"runs {number}", _chart(study, verdicts, of)
        if chart is not None:
            about = "more a display in each run, the latest last; green: the rule is met"
            if number == 1 and len(runs) > MOST_RUNS:
                about += f"; the last {MOST_RUNS} of {len(runs)} runs"
            title = name_of(of.line, latest.verdict)
            part = section(title, paragraph(about, style="dim"), half=True)
            yield replace(part, charts=(name,)), {name: chart}
    changes = [*_changes(study, verdicts)] or ["No verdict changed from run to run."]
    left = len(latest.verdict.candidates) - len(shown)
    if left:
        changes.append(f"{counted_word(left).capitalize()} more candidates are in the table of all runs, below.")
    yield replace(listed("What changed from run to run", changes), half=True), {}


def _of_variant(verdict: Verdict, variant: int) -> Candidate | None:
    return next((of for of in verdict.candidates if of.line.variant == variant), None)


def _together(blocks: Sequence[VerdictBlock]) -> str:
    """Return what all runs say of the latest headline's candidate, and what that promises."""
    latest = blocks[-1].verdict
    found = [of for block in blocks if (of := _of_variant(block.verdict, latest.variant)) is not None]
    counts = Counter[str](of.decision for of in found)
    decisions = " and ".join(f"{does} in {counts[decision]}" for decision, does in _DOES.items() if counts[decision])
    known = [of.difference for of in found if of.difference is not None]
    above, below = sum(of.low > 0.0 for of in known), sum(of.high < 0.0 for of in known)
    open_ = len(known) - above - below
    sides = ((above, "lies above 0"), (below, "lies below 0"), (open_, "is not told from 0"))
    said = " and ".join(f"{does} in {number}" for number, does in sides if number)
    name = name_of(latest.candidate.line, latest)
    runs = counted_word(len(found))
    any_number = "Each interval holds for its own run at any number of looks."
    looks = planned_looks([block.verdict for block in blocks]) or any_number
    lies = f"; its difference to {baseline_of(latest)} {said}" if said else ""
    return f"Of all {runs} runs, {name} {decisions}{lies}. {looks}"


def _changes(study: Study, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the changes of each candidate's verdict from a run to the next, with why where the newer one waits."""
    for later, (before, after) in zip(study.runs[1:], pairwise(verdicts), strict=True):
        for of in ranked(after):
            was = _of_variant(before, of.line.variant)
            if was is None or was.decision == of.decision:
                continue
            why = next((f": {limit.what}" for limit in of.limits), "") if of.decision != "ship" else ""
            yield f"{_short(later)}: {name_of(of.line, after)} was {was.decision}, now {of.decision}{why}."


def _chart(study: Study, verdicts: Sequence[Verdict], of: Candidate) -> Spec | None:
    """Return the differences of a candidate in the latest runs, on one scale with those of the other candidates."""
    pairs = list(zip(study.runs, verdicts, strict=True))[-MOST_RUNS:]
    ends = [
        end
        for _, verdict in pairs
        for one in verdict.candidates
        if one.difference is not None
        for end in (one.difference.low, one.difference.high)
    ]
    found = [(one, _of_variant(verdict, of.line.variant)) for one, verdict in pairs]
    rows = [(_short(one), own.difference) for one, own in found if own is not None and own.difference is not None]
    latest = verdicts[-1]
    # A rule in per cent has another limit in each run.
    limit = None if latest.rule.relative else limit_of(latest)
    name = short_name(of.line, latest, _LETTERS)
    return intervals_chart(
        rows, f"Difference of {name} to the baseline in each run", zone=limit,
        said="" if limit is None else f"rule: more than {rule_words(latest)}", ends=ends, most=MOST_RUNS,
        headline=len(rows) - 1,
    )  # fmt: skip


def _short(one: Run) -> str:
    """Return the dates of a run's log in little room, ``1 to 7 Mar 2026``."""
    first, last = (datetime.fromtimestamp(end, UTC) for end in one.when)
    if first.date() == last.date():
        return f"{last.day} {last:%b %Y}"
    start = str(first.day) if (first.year, first.month) == (last.year, last.month) else f"{first.day} {first:%b}"
    return f"{start} to {last.day} {last:%b %Y}"
