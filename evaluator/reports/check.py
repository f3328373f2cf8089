"""The document of a check of a log: verdicts first, then a paragraph on each check that did not pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evaluator.checks.overlap import NAME as OVERLAP
from evaluator.checks.result import FOUND, POWER, CheckResult
from evaluator.checks.run import CheckReport, InReplay
from evaluator.checks.wear_out import NAME as WEAR_OUT
from evaluator.estimates.enough import missing
from evaluator.reports.document import (
    Block,
    Bullets,
    Document,
    Layout,
    Section,
    column,
    grid,
    lights,
    paragraph,
    run,
    section,
    words,
)
from evaluator.reports.shared_sections import name_omitted
from evaluator.reports.terminal import CHECK_STYLES, DO

# Findings that the short form explains in full.
_PARAGRAPHS = 3


def document(report: CheckReport, layout: Layout) -> Document:
    """Return the document on whether a log is fit for replay: every check, or a short form for one screen."""
    size = f": {report.displays:,} displays, {report.conversions:,} conversions, {report.actions:,} actions"
    head = [
        paragraph(run(report.dataset, "bold"), size),
        paragraph(f"propensities: {report.propensity} ({report.assumption})", style="dim"),
        *([paragraph(report.left_out)] if report.left_out else []),
    ]
    title = f"Checks of {report.dataset}"
    if not layout.full:
        return Document("check", title, tuple(_short_sections(report, head)))
    return Document("check", title, (section("", *head), section("", lights(report.checks)), _summary(report)))


def _short_sections(report: CheckReport, head: Sequence[Block]) -> Iterator[Section]:
    """Yield the verdict, the checks that failed or warned with their meaning, and the names of the other checks."""
    yield section("", *head, *map(paragraph, _verdict_lines(report)))
    alarms = (*report.having("fail"), *report.having("warn"))
    for check in alarms[:_PARAGRAPHS]:
        yield _check_section(check)
    rows = [(run(check.verdict, CHECK_STYLES[check.verdict]), f"{check.name}: {check.number}")
            for check in alarms[_PARAGRAPHS:]]  # fmt: skip
    follows = [f"{check.name} from {check.follows_from}" for check in report.checks if check.follows_from]
    if follows:
        rows.append((run("follows", CHECK_STYLES["not applicable"]), f"{len(follows)}: {', '.join(follows)}"))
    for verdict, word in (("pass", "pass"), ("not applicable", "not tested")):
        names = [check.name for check in report.checks if check.verdict == verdict and not check.follows_from]
        if names:
            rows.append((run(word, CHECK_STYLES[verdict]), f"{len(names)}: {', '.join(names)}"))
    table = grid([column("verdict", "whole"), column("checks")], rows, headed=False)
    # For a log without a defect, the answer is the sizes of defects that the checks would have found.
    yield section("", table, *([] if alarms else _detectable(report)))
    yield name_omitted(
        "what the others mean and what to do" if len(alarms) > _PARAGRAPHS else "",
        "numbers of all checks",
        "why some are not tested",
        "what would have been found" if alarms else "",
    )


def _check_section(check: CheckResult) -> Section:
    """Return the section of a check: its result, what it means and what to do."""
    title = words(run(check.verdict, CHECK_STYLES[check.verdict]), "  ", run(check.name, "bold"), f": {check.number}")
    return section(title, paragraph(check.what), *([paragraph(f"{DO}{check.remedy}")] if check.remedy else []))


def checks_of_log(report: CheckReport) -> Section:
    """Return the results of a log's checks in brief, as a section beside the results of replays."""
    counts = [len(report.having(verdict)) for verdict in ("fail", "warn", "pass", "not applicable")]
    counted = ", ".join(f"{number} {word}" for number, word in zip(counts, _COUNTED, strict=True))
    worst = (*report.having("fail"), *report.having("warn"))
    title = words(run("Checks of the log ", "bold"), f"{counted}: `evaluate check` says more")
    return section(title, *([lights(worst, brief=True)] if worst else []), id="checks")


_COUNTED = ("failed", "warned", "passed", "not applicable")


def _summary(report: CheckReport) -> Section:
    """Return the verdict, the tests behind it, the checks that were not tested, and the defects they could find."""
    untested = [check.name for check in report.having("not applicable") if not check.follows_from]
    reasons = [f"Not tested, for the reasons above: {', '.join(untested)}."] if untested else []
    return section("", *map(paragraph, [*_verdict_lines(report), *reasons]), *_detectable(report))


def _verdict_lines(report: CheckReport) -> list[str]:
    """Return the verdict, and the tests that it rests on."""
    failed, warned = len(report.having("fail")), len(report.having("warn"))
    checks = f"{failed} failed, {warned} warned"
    lines: list[str] = []
    if failed:
        lines.append(f"Not fit for replay: {checks}. Repair what failed before believing any replay.")
    elif not report.replay.enough:
        lines.append(f"Too small to be called fit for replay: {checks}, but a replay tells next to nothing.")
    elif warned:
        lines.append(f"Fit for replay, with care: {checks}.")
    tests = f"{len(report.tested)} tests of {report.displays:,} displays and {report.conversions:,} conversions"
    false_alarms = f"Together they warn about {report.options.false_alarms:.0%} of clean logs at most."
    if failed or warned or not report.replay.enough:
        lines.append(f"This rests on {tests}. {false_alarms}")
    else:
        lines.append(f"Fit for replay as far as this log can tell: {tests} found nothing. {false_alarms}")
    lines.append(_describe_replay(report.replay, report[OVERLAP].numbers.get("rounds_without_rarest")))
    return lines


def _describe_replay(replay: InReplay, without_rarest: float | None) -> str:
    """Return the number of rounds and conversions that a replay of the log would have, and what they could tell.

    Parameters
    ----------
    replay
        Size of such a replay.
    without_rarest
        Number of rounds that the rarest hundredth of the propensities takes from it; None where it takes few.
    """
    conversions = f"{replay.conversions:,.3g}" if replay.conversions < 1_000 else f"{replay.conversions:,.0f}"
    size = (
        f"A replay of a policy that tries all actions alike has about {replay.rounds:,.0f} rounds with {conversions} "
        "conversions"
    )
    if not replay.enough and without_rarest is not None:
        return (
            f"{size}: a few small propensities leave no more, and about {without_rarest:,.0f} without them ({OVERLAP})."
        )
    if not replay.enough:
        return f"{size}: {missing(replay.rewards)}."
    if math.isnan(replay.smallest_uplift):
        return f"{size}."
    return f"{size}: it tells an uplift of {replay.smallest_uplift:.0%} or more on 80 % of such logs."


def _detectable(report: CheckReport) -> list[Block]:
    """Return the defects that the checks of such a log could find, and those that no check can."""
    blocks: list[Block] = []
    sizes = [check.shows for check in report.checks if check.shows]
    if sizes:
        chances = f"with a chance of {FOUND:.0%} to {POWER:.0%}"
        blocks.append(paragraph(f"Had it been in the log, each of these would have been found {chances}:"))
        blocks.append(Bullets(tuple(map(words, sizes))))
    known = "users" in report[WEAR_OUT].numbers
    users = "" if known else ", or, without a column of users, effects of their earlier displays"
    wrong = "or conversions on a wrong display" if known else "conversions on a wrong display"
    blocks.append(paragraph(f"What no log shows, no check finds: an unmeasured cause, {wrong}{users}."))
    return blocks
