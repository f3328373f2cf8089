"""The document of a check of a log: whether it is fit, what is wrong first and its remedy, and all checks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from evaluator.checks.dependence import WEAR_OUT
from evaluator.checks.propensities import OVERLAP
from evaluator.checks.result import FOUND, POWER, CheckResult, Verdict
from evaluator.checks.run import CheckReport, InReplay
from evaluator.estimates.standard_errors import missing
from evaluator.reports import document as doc
from evaluator.reports.numbers import percent_text
from evaluator.reports.terminal import CHECK_STYLES, DO

# Findings that a page explains in full beside the first one; more are folded.
_EXPLAINED = 2
_PLACES = {"fail": "red", "warn": "yellow"}
_COUNTED: dict[Verdict, str] = {
    "fail": "failed",
    "warn": "warned",
    "pass": "passed",
    "not applicable": "not applicable",
}


def document(report: CheckReport, layout: doc.Layout) -> doc.Document:
    """Return the document on whether a log is fit for replay: the answer first, and every check or those that alarm."""
    build = _page if layout.page else _whole if layout.full else _brief
    return doc.Document("check", f"Checks of {report.dataset}", tuple(build(report, layout)))


def _page(report: CheckReport, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the answer, what a replay would have of the log, the tests, what is wrong beside the first, and folds."""
    yield _log(report, layout)
    yield _answer(report, layout)
    yield doc.picture("What is left for a replay?", "of a policy that tries all actions alike", "left")
    tests = "a dot a test: the further right, the less likely by chance; beyond the line it counts"
    yield doc.picture("How sure are the checks?", tests, "tests")
    more = _alarms(report)[1:]
    if more:
        yield doc.section("What else is wrong, the worst first", doc.lights(more[:_EXPLAINED]))
    if more[_EXPLAINED:]:
        rest = more[_EXPLAINED:]
        yield from doc.fold(f"{len(rest)} more", "what they mean and what to do", [doc.section("", doc.lights(rest))])
    passed, untested = report.having("pass"), report.having("not applicable")
    if passed:
        yield from doc.fold("What passed", doc.counted(len(passed), "check"), [doc.section("", doc.lights(passed))])
    if untested:
        reasons = doc.grid(
            [doc.column("", bold=True), doc.column("")], [(one.name, one.what) for one in untested], headed=False
        )
        yield from doc.fold("Not tested", f"{doc.counted(len(untested), 'check')}, and why", [doc.section("", reasons)])
    found = doc.section("", doc.paragraph(_tests(report)), *_detectable(report))
    yield from doc.fold("What would have been found", "the smallest defects that such a log shows", [found])


def _whole(report: CheckReport, layout: doc.Layout) -> Iterator[doc.Section]:
    yield _answer(report, layout)
    yield _log(report, layout)
    yield doc.section("", doc.lights(report.checks))
    untested = [check.name for check in report.having("not applicable") if not check.follows_from]
    reasons = [doc.paragraph(f"Not tested, for the reasons above: {', '.join(untested)}.")] if untested else []
    assumed = doc.paragraph(f"propensities: {report.propensity} ({report.assumption})")
    yield doc.section("", *reasons, assumed, *_detectable(report))


def _brief(report: CheckReport, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the answer, the checks that failed or warned in a line each, and how many others there are."""
    yield _answer(report, layout)
    yield _log(report, layout)
    rows = [(doc.run(one.verdict, CHECK_STYLES[one.verdict]), f"{one.name}: {one.number}") for one in _alarms(report)]
    causes = Counter(check.follows_from for check in report.checks if check.follows_from)
    rows += [
        (doc.run("follows", CHECK_STYLES["not applicable"]), f"{number} from {cause}, which says what to do")
        for cause, number in causes.items()
    ]
    untested = len(report.having("not applicable")) - causes.total()
    rows.append((doc.run("pass", CHECK_STYLES["pass"]), f"{len(report.having('pass'))} checks; {untested} not tested"))
    yield doc.section("", doc.grid([doc.column("verdict", "whole"), doc.column("checks")], rows, headed=False))
    yield doc.name_omitted(
        "what the others mean and what to do" if len(_alarms(report)) > 1 else "",
        "numbers of all checks",
        "why some are not tested",
        "what would have been found",
    )


def _alarms(report: CheckReport) -> tuple[CheckResult, ...]:
    return (*report.having("fail"), *report.having("warn"))


def _log(report: CheckReport, layout: doc.Layout) -> doc.Section:
    size = f"{report.displays:,} displays, {report.conversions:,} conversions, {report.actions:,} actions"
    return doc.which_log(report.dataset, size, f"propensities: {report.propensity}", layout=layout)


def _answer(report: CheckReport, layout: doc.Layout) -> doc.Section:
    """Return the answer: whether the log is fit, what is wrong first with its remedy, and what a replay tells."""
    alarms = _alarms(report)
    counts = f"{len(report.having('fail'))} failed, {len(report.having('warn'))} warned"
    colour: doc.Colour = "green"
    if report.having("fail"):
        word, rest, colour = "Not fit", f" for replay: {counts}", "red"
    elif not report.replay.enough:
        word, rest, colour = "Too small", f" to be called fit for replay: {counts}", "yellow"
    elif alarms:
        word, rest, colour = "Fit with reservations", f" for replay: {counts}", "yellow"
    else:
        word, rest = "Fit", " for replay, as far as this log can tell"
    tiles = _tiles(report) if layout.page and report.replay.enough else []
    sentences: list[doc.Wordable] = [*_first(alarms[0], several=len(alarms) > 1, number=layout.page)] if alarms else []
    if not tiles:
        sentences.append(_describe_replay(report.replay, report[OVERLAP.name].numbers.get("rounds_without_rarest")))
    if not (tiles and alarms):
        sentences.append(_tests(report))
    passed = doc.counted(len(report.having("pass")), "check")
    rests = [
        doc.mark(True, f"{passed or 'no check'} passed"),
        doc.mark(report.propensity == "logged" or None, f"propensities: {report.propensity}; {report.assumption}"),
        *([doc.mark(None, report.left_out)] if report.left_out else []),
    ]
    return doc.answer(word, rest, *sentences, colour=colour, tiles=tiles, rests=rests if layout.page else rests[2:])


def _first(check: CheckResult, *, several: bool, number: bool) -> Iterator[doc.Words]:
    """Yield what a check found, with its number if wanted, and what to do about it."""
    found = f" ({check.number}): " if number else ": "
    name = doc.run(check.name, f"bold {_PLACES[check.verdict]}")
    yield doc.words("First, " if several else "", name, f"{found}{check.what}")
    if check.remedy:
        yield doc.words(doc.run(DO, "bold"), check.remedy)


def _tiles(report: CheckReport) -> list[tuple[str, str]]:
    replay = report.replay
    tiles = [
        (f"{replay.rounds:,.0f} rounds", f"in a replay, of {report.displays:,} displays"),
        (f"{replay.conversions:,.0f}", "conversions in these rounds"),
    ]
    if not math.isnan(replay.smallest_uplift):
        tiles.append((percent_text(replay.smallest_uplift), "uplift or more is told on 80 % of such logs"))
    about = f"warn of {percent_text(report.options.false_alarms)} of clean logs together, at most"
    return [*tiles, (f"{len(report.tested)} tests", about)]


def _tests(report: CheckReport) -> str:
    """Return the tests that the answer rests on, and how often they raise a false alarm."""
    tests = f"{len(report.tested)} tests of {report.displays:,} displays and {report.conversions:,} conversions"
    start = f"This rests on {tests}." if _alarms(report) else f"{tests} found nothing."
    return f"{start} Together they warn about {report.options.false_alarms:.0%} of clean logs at most."


def checks_of_log(report: CheckReport) -> doc.Section:
    """Return the results of a log's checks in brief, as a section beside the results of replays."""
    said = ", ".join(f"{len(report.having(verdict))} {word}" for verdict, word in _COUNTED.items())
    worst = _alarms(report)
    title = doc.words(doc.run("Checks of the log ", "bold"), f"{said}: `evaluate check` says more")
    return doc.section(title, *([doc.lights(worst, brief=True)] if worst else []), id="checks")


def _describe_replay(replay: InReplay, without_rarest: float | None) -> str:
    """Return the number of rounds and conversions that a replay of the log would have, and what they could tell.

    Without the rarest hundredth of the propensities it would have `without_rarest` rounds; None where these take few.
    """
    conversions = f"{replay.conversions:,.3g}" if replay.conversions < 1_000 else f"{replay.conversions:,.0f}"
    size = (
        f"A replay of a policy that tries all actions alike has about {replay.rounds:,.0f} rounds with {conversions} "
        "conversions"
    )
    if not replay.enough and without_rarest is not None:
        rest = f"about {without_rarest:,.0f} without them ({OVERLAP.name})"
        return f"{size}: a few small propensities leave no more, and {rest}."
    if not replay.enough:
        return f"{size}: {missing(replay.rewards)}."
    if math.isnan(replay.smallest_uplift):
        return f"{size}."
    return f"{size}: it tells an uplift of {replay.smallest_uplift:.0%} or more on 80 % of such logs."


def _detectable(report: CheckReport) -> list[doc.Block]:
    """Return the defects that the checks of such a log could find, and those that no check can."""
    blocks: list[doc.Block] = []
    sizes = [check.shows for check in report.checks if check.shows]
    if sizes:
        chances = f"with a chance of {FOUND:.0%} to {POWER:.0%}"
        blocks.append(doc.paragraph(f"Had it been in the log, each of these would have been found {chances}:"))
        blocks.append(doc.Bullets(tuple(map(doc.words, sizes))))
    known = "users" in report[WEAR_OUT.name].numbers
    users = "" if known else ", or, without a column of users, effects of their earlier displays"
    wrong = "or conversions on a wrong display" if known else "conversions on a wrong display"
    blocks.append(doc.paragraph(f"What no log shows, no check finds: an unmeasured cause, {wrong}{users}."))
    return blocks
