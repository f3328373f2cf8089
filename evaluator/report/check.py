"""A check of a log on the terminal: verdicts first, then a paragraph on each that is not a pass."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.checks.overlap import NAME as OVERLAP
from evaluator.checks.result import FOUND, POWER
from evaluator.checks.run import CheckReport, InReplay
from evaluator.checks.wear_out import NAME as WEAR_OUT
from evaluator.estimates.enough import missing
from evaluator.report.console import ReportConsole
from evaluator.report.short import left_out
from evaluator.report.shown_lights import STYLES, ShownLights, paragraph
from evaluator.visible import visible

# Findings that a screen says in full.
_PARAGRAPHS = 3


def print_check(console: ReportConsole, report: CheckReport, *, full: bool = True) -> None:
    """Print whether a log is fit for replay: every check, or what a screen holds."""
    console.print(Text.assemble(
        (visible(report.dataset), "bold"),
        f": {report.displays:,} displays, {report.conversions:,} conversions, {report.actions:,} actions",
    ))  # fmt: skip
    console.print(f"propensities: {report.propensity} ({report.assumption})", style="dim")
    if report.left_out:
        console.print(visible(report.left_out))
    if not full:
        _print_short(console, report)
        return
    console.print()
    console.print(ShownLights(report.checks))
    console.print()
    console.print(_summary(report))


def _print_short(console: ReportConsole, report: CheckReport) -> None:
    """Print the verdict, what failed and warned with what it means, and the names of the others."""
    lines = _verdict_lines(report)
    console.print(Group(*lines))
    found = (*report.having("fail"), *report.having("warn"))
    for f in found[:_PARAGRAPHS]:
        console.print(paragraph(f, number=True))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("checks")
    for f in found[_PARAGRAPHS:]:
        table.add_row(Text(f.verdict, STYLES[f.verdict]), f"{f.name}: {f.number}")
    follows = [f"{f.name} from {f.follows_from}" for f in report.checks if f.follows_from]
    if follows:
        table.add_row(Text("follows", STYLES["not applicable"]), f"{len(follows)}: {', '.join(follows)}")
    for verdict, word in (("pass", "pass"), ("not applicable", "not tested")):
        names = [f.name for f in report.checks if f.verdict == verdict and not f.follows_from]
        if names:
            table.add_row(Text(word, STYLES[verdict]), f"{len(names)}: {', '.join(names)}")
    console.print()
    console.print(table)
    more = "what the others mean and what to do" if len(found) > _PARAGRAPHS else ""
    # Of a log without a defect, the sizes that would have been found are the answer.
    if not found:
        console.print(Group(*_shown(report)))
    console.print(
        left_out(
            more, "numbers of all checks", "why some are not tested", "what would have been found" if found else ""
        )
    )


def checks_of_log(report: CheckReport) -> RenderableType:
    """Return what a check found, in brief, beside numbers of the log."""
    counts = {verdict: len(report.having(verdict)) for verdict in ("fail", "warn", "pass", "not applicable")}
    said = ", ".join(f"{number} {word}" for (_, number), word in zip(counts.items(), _COUNTED, strict=True))
    worst = (*report.having("fail"), *report.having("warn"))
    below = [ShownLights(worst, brief=True)] if worst else []
    title = Text.assemble(("\nChecks of the log ", "bold"), f"{said}: `evaluate check` says more")
    return Group(title, *(Padding(one, (0, 0, 0, 2), expand=False) for one in below))


_COUNTED = ("failed", "warned", "passed", "not applicable")


def _summary(report: CheckReport) -> RenderableType:
    """Return the verdict, what it rests on, what was not tested, and what such a log could have shown."""
    lines = _verdict_lines(report)
    untested = [f.name for f in report.having("not applicable") if not f.follows_from]
    if untested:
        lines.append(f"Not tested, for the reasons above: {', '.join(untested)}.")
    return Group(*lines, *_shown(report))


def _verdict_lines(report: CheckReport) -> list[RenderableType]:
    """Return the verdict, and what it rests on."""
    failed, warned = len(report.having("fail")), len(report.having("warn"))
    checks = f"{failed} failed, {warned} warned"
    lines: list[RenderableType] = []
    if failed:
        lines.append(f"Not fit for replay: {checks}. Repair what failed before believing any replay.")
    elif not report.replay.enough:
        lines.append(f"Too small to be called fit for replay: {checks}, but a replay tells next to nothing.")
    elif warned:
        lines.append(f"Fit for replay, with care: {checks}.")
    tests = f"{len(report.tested)} tests of {report.displays:,} displays and {report.conversions:,} conversions"
    kept = f"Together they warn about {report.options.false_alarms:.0%} of clean logs at most."
    if failed or warned or not report.replay.enough:
        lines.append(f"This rests on {tests}. {kept}")
    else:
        lines.append(f"Fit for replay as far as this log can tell: {tests} found nothing. {kept}")
    lines.append(_in_replay(report.replay, report[OVERLAP].numbers.get("rounds_without_rarest")))
    return lines


def _in_replay(of: InReplay, without_rarest: float | None) -> str:
    """Return what a replay of the log has to tell from, and what it would tell.

    Parameters
    ----------
    of
        What it has to tell from.
    without_rarest
        Number of rounds that the rarest hundredth of the propensities takes from it; None where it takes few.
    """
    conversions = f"{of.conversions:,.3g}" if of.conversions < 1_000 else f"{of.conversions:,.0f}"
    size = (
        f"A replay of a policy that tries all actions alike has about {of.rounds:,.0f} rounds with {conversions} "
        "conversions"
    )
    if not of.enough and without_rarest is not None:
        return (
            f"{size}: a few small propensities leave no more, and about {without_rarest:,.0f} without them ({OVERLAP})."
        )
    if not of.enough:
        return f"{size}: {missing(of.rewards)}."
    if math.isnan(of.smallest_uplift):
        return f"{size}."
    return f"{size}: it tells an uplift of {of.smallest_uplift:.0%} or more on 80 % of such logs."


def _shown(report: CheckReport) -> list[RenderableType]:
    """Return what such a log could have shown, and what no log can."""
    lines: list[RenderableType] = []
    shown = [f for f in report.checks if f.shows]
    if shown:
        lines.append(
            f"Had it been in the log, each of these would have been found with a chance of {FOUND:.0%} to {POWER:.0%}:"
        )
        lines += [Padding(f"- {f.shows}", (0, 0, 0, 2), expand=False) for f in shown]
    known = "users" in report[WEAR_OUT].numbers
    users = "" if known else ", or, without a column of users, effects of their earlier displays"
    wrong = "or conversions on a wrong display" if known else "conversions on a wrong display"
    lines.append(f"What no log shows, no check finds: an unmeasured cause, {wrong}{users}.")
    return lines
