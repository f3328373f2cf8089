"""The document of a comparison: one line a variant, their differences, then what to read before trusting them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.variants import VariantInputs, learns_text, names_of, taught_by, window_text
from evaluator.estimates.confidence import Interval
from evaluator.estimates.weighted import WeightedValue
from evaluator.findings.codes import PUSHES
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.replays.findings.run import ends_seen, outside_seen
from evaluator.replays.options import told_events_words
from evaluator.replays.result import ReplayResult
from evaluator.reports import document as doc
from evaluator.reports.check import checks_of_log
from evaluator.reports.decision_page import (
    SAME_DISPLAYS,
    SAME_POLICY,
    SEEN_BOUNDS,
    answer_sections,
    closing_section,
    page_sections,
    said_of_weighted,
    value_table,
)
from evaluator.reports.numbers import Measured, measured, measured_below
from evaluator.reports.outcome_tables import guardrails, outcomes, segments
from evaluator.reports.replay import action_shares, delivered_each, resting

_ACTIONS_SHOWN = 4
# So many variants that a sentence is about are named.
_NAMED = 3
HOW_TO_READ = (
    "told: {events} delivered to the policy within its rounds. {which} holds for its own number. Whether two "
    "of them overlap says little about the difference of the two: that is below."
)
REALISED = (
    "n: displays that only one of the two runs showed; those that both did cancel. A difference is realised: it is of "
    "what these two runs showed, and another log or seed would give others, of either sign. "
)
HOLDS = "Each interval (Howard et al. 2021) holds for its own difference."
MAY_NOT_HOLD = "Each interval holds for its own difference only if no display can earn {}, which nobody knows."
OF_CLUSTERS = (
    "Displays hang together by {by}: realised differences, and the ranking below, are for the clusters of this log; "
    "expected differences are for new ones."
)
Number = tuple[str, Callable[[int], "Interval | doc.Cell"]]

APART = "Policies whose rewards are cut by different windows stand apart: their values cannot be compared."


def document(comparison: Comparison, layout: doc.Layout) -> doc.Document:
    """Return the document of a comparison: all sections, or a short form for one screen."""
    title = f"{len(comparison.results)} replays of {comparison.results[0].plan['dataset']}"
    if layout.page:
        report = tuple(_all_sections(comparison, layout))
        return doc.Document("compare", title, tuple(page_sections(comparison, layout, report)))
    verdict = comparison.verdict
    first = [] if verdict is None else list(answer_sections(comparison, verdict, layout))
    if not layout.full:
        return doc.Document("compare", title, (*first, *_short_sections(comparison, layout)))
    why = [] if verdict is None else [doc.section("", doc.VerdictBlock(verdict))]
    return doc.Document("compare", title, (*first, *why, *_all_sections(comparison, layout)))


def first_numbers(results: Sequence[ReplayResult], *, most: int) -> doc.Document:
    """Return what is known of some replays while logs are resampled, with a line for each of at most so many."""
    rows = [
        (name, *measured(result.value), measured(result.uplift, sign=True)[0], f"{result.rounds:,}")
        for name, result in zip(names_of(results), results[:most], strict=False)
    ]
    names = ("realised value", f"{results[0].value.level:.0%} interval", "over logging", "rounds")
    table = doc.grid([doc.column("", "whole"), *(doc.column(name, "number") for name in names)], rows)
    left = [doc.paragraph(f"{len(results) - most:,} more")] if len(results) > most else []
    said = doc.paragraph("Of these replays alone; intervals of expected values follow.")
    return doc.Document("compare", "First numbers", (doc.section("First numbers", said, table, *left),))


def _short_sections(comparison: Comparison, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the ranked lines, the sections that options asked for, and what to read before trusting the numbers."""
    results, verdict = comparison.results, comparison.verdict
    if verdict is None:
        yield doc.section(
            "",
            _heading(results),
            *(doc.paragraph(_dim(doc.words(line))) for line in results[0].meaning[:1]),
            value_table(results[0], layout),
            *(
                [doc.paragraph(SEEN_BOUNDS.format(outside_seen(ends)), style="dim")]
                if (ends := ends_seen(results))
                else []
            ),
        )
    if results[0].guardrails:
        yield guardrails(results, layout)
    yield from _weighted(results)
    yield from segments(results, comparison.segments, full=False)
    if comparison.check is not None:
        yield checks_of_log(comparison.check)
    yield from doc.warnings_section(_warnings(comparison), full=False)
    yield from resting(_together(results, [doc.interval_assumptions(result.findings) for result in results]))
    if verdict is not None:
        yield closing_section(verdict, len(_assumptions(comparison)), layout)
    yield doc.name_omitted(
        "regret and difference to the logging policy",
        "ranking" if len(results) > 1 else "",
        "cost of the window" if comparison.window_costs else "",
        "cost of the schedule" if comparison.schedule_costs else "",
        "other outcomes" if any(result.outcomes for result in results) else "",
        "actions",
        doc.counted(len(_assumptions(comparison)), "assumption"),
    )


def _heading(results: Sequence[ReplayResult]) -> doc.Paragraph:
    return doc.paragraph(f"{len(results)} replays of ", doc.run(results[0].plan["dataset"], "bold"))


def _dim(sentence: doc.Words) -> doc.Words:
    return tuple(replace(part, dim=True) for part in sentence)


def _warnings(comparison: Comparison) -> list[doc.Words]:
    each = _together(comparison.results, [doc.coded(warnings_of(result.findings)) for result in comparison.results])
    return [*doc.coded(warnings_of(comparison.findings)), *each]


def _assumptions(comparison: Comparison) -> list[doc.Words]:
    said: list[list[doc.Wordable]] = []
    told = set()
    for one, inputs in zip(comparison.results, comparison.assumed, strict=True):
        lived = one.schedule and (one.schedule.learn_every, one.schedule.learn_lag)
        # Pushes of one schedule are alike but for the number of rounds: the first line speaks for all.
        own = [found for found in assumptions_of(one.findings) if found.code != PUSHES.name or lived not in told]
        told.add(lived)
        said.append([*doc.coded(own), *_given_to_policy(inputs)])
    return _together(comparison.results, said)


def _all_sections(comparison: Comparison, layout: doc.Layout) -> Iterator[doc.Section]:
    results = comparison.results
    level, ends = f"{results[0].value.level:.0%}", ends_seen(results)
    which = f"If no display can earn {outside_seen(ends)}, each interval" if ends else "Each interval"
    yield doc.section(
        "",
        _heading(results),
        *(doc.paragraph(_dim(line)) for line in _together(results, [result.meaning[:1] for result in results])),
        *_line_tables(results, level, layout),
        doc.paragraph(HOW_TO_READ.format(events=_told_events(results), which=which)),
    )
    if results[0].guardrails:
        yield guardrails(results, layout)
    if any(result.outcomes for result in results):
        yield outcomes(results, layout)
    yield from _weighted(results)
    if len(results) > 1:
        yield from _difference_sections(comparison, level)
        yield _ranking(comparison)
    yield from segments(results, comparison.segments)
    if any(len(curve.rounds) for curve in comparison.curves):
        yield _regret(comparison, level, wide=layout.wide)
    shares = [
        (name, action_shares(result, _ACTIONS_SHOWN)) for name, result in zip(names_of(results), results, strict=True)
    ]
    yield doc.named("Actions (share of rounds)", shares)
    if comparison.check is not None:
        yield checks_of_log(comparison.check)
    yield from doc.warnings_section(_warnings(comparison), full=True)
    yield doc.listed("Assumptions", _assumptions(comparison), id="assumptions", folded=True)


def _line_tables(results: Sequence[ReplayResult], level: str, layout: doc.Layout) -> list[doc.Grid]:
    """Return value, regret and difference to the logging policy of each line: one table, or two in little room."""
    numbers: list[Number] = [
        ("window", lambda i: window_text(results[i])),
        *([("learns", lambda i: learns_text(results[i]))] if any(one.schedule for one in results) else []),
        ("rounds", lambda i: f"{results[i].rounds:,}"),
        ("told", lambda i: f"{delivered_each(results[i]):,}"),
        ("value", lambda i: results[i].value),
    ]
    expected = [result.expected_value for result in results]
    if any(expected):
        numbers.append((f"expected value, {level}", lambda i: _ends(expected[i])))
    if any(", told " in name for name in names_of(results)):
        taught = {result.plan["policy"] for result in results if taught_by(result.plan)}
        numbers.insert(1, ("learns from", lambda i: _teacher(results[i], taught)))
    against: list[Number] = [("regret", lambda i: results[i].regret), ("over logging", lambda i: results[i].uplift)]
    policies = [result.title for result in results]
    if layout.wide:
        return [_line_table(policies, [*numbers, *against], level)]
    return [_line_table(policies, numbers, level, stacked=True), _line_table(policies, against, level, stacked=True)]


def _told_events(results: Sequence[ReplayResult]) -> str:
    """Return of what the policies are told, as the note on that column names it."""
    events = {told_events_words(result.plan["options"]["learn_from"]) for result in results if result.plan["learns"]}
    return "the events that each learns from," if len(events) > 1 else "".join(events) or "conversions"


def _teacher(result: ReplayResult, taught: Collection[str]) -> str:
    """Return what a policy learns from, of which others are `taught` by what is not the objective; else a dash."""
    return taught_by(result.plan) or ("rewards" if result.plan["policy"] in taught else "-")


def _weighted(results: Sequence[ReplayResult]) -> Iterator[doc.Section]:
    """Yield the weighted values of each line, if there are any: their target differs from that of the rounds."""
    if all(result.final is None and result.doubly_robust is None for result in results):
        return
    level = f"{results[0].value.level:.0%}"
    columns = [
        doc.column(""),
        doc.column("final policy"),
        doc.column("value (DR)", "number", folds=True),
        doc.column(level, "number"),
        doc.column("over all displays read (DR)", "number", folds=True),
        doc.column(level, "number"),
    ]
    rows = [
        (
            name,
            "" if result.final is None else result.final.policy,
            *_weighed(None if result.final is None else result.final.dr),
            *_weighed(result.doubly_robust),
        )
        for name, result in zip(names_of(results), results, strict=True)
    ]
    yield doc.section(
        doc.words(doc.run("Weighted values ", "bold"), "per round: other targets than the rounds above"),
        doc.grid(columns, rows),
        doc.paragraph("Other estimators, and what the weights are worth, are in --json and in replay."),
    )


def _weighed(value: WeightedValue | None) -> tuple[doc.Cell, doc.Cell]:
    if value is None:
        return "", ""
    return measured(value.value) if value.given else ("not given", "too few rewards")


def _difference_sections(comparison: Comparison, level: str) -> Iterator[doc.Section]:
    base, names = comparison.results[comparison.baseline], names_of(comparison.results)
    horizon, differences, costs = comparison.horizon, comparison.differences, comparison.window_costs
    why = f", {horizon.why}" if horizon.fixed else ""
    clusters = base.plan["clusters"]
    ends = ends_seen(comparison.results)
    below: list[doc.Wordable] = [
        *_limit_lines(comparison.results, differences),
        *said_of_weighted(differences, names),
        REALISED + (MAY_NOT_HOLD.format(outside_seen(ends)) if ends else HOLDS),
        *([] if clusters is None else [OF_CLUSTERS.format(by=clusters["by"])]),
    ]
    yield doc.section(
        doc.words(
            doc.run("Difference per round ", "bold"),
            f"to {names[comparison.baseline]}",
            f" over the first {horizon.rounds:,} rounds{why}",
        ),
        _differences(differences, names, level),
        *map(doc.paragraph, below),
        id="difference",
    )
    if costs:
        yield doc.section(
            doc.words(doc.run("Cost of the window ", "bold"), "per round: to the widest one of the same policy"),
            _differences(costs, names, level, to=True),
            *map(doc.paragraph, _limit_lines(comparison.results, costs)),
        )
    if comparison.schedule_costs:
        yield doc.section(
            doc.words(
                doc.run("Cost of the schedule ", "bold"), "per round: to the same policy, learning at each event"
            ),
            _differences(comparison.schedule_costs, names, level, to=True),
            *map(doc.paragraph, _limit_lines(comparison.results, comparison.schedule_costs)),
        )


def _limit_lines(results: Sequence[ReplayResult], differences: Sequence[Difference]) -> list[doc.Words]:
    """Return why variants have no difference, or no expected difference, each reason with its variants."""

    def limits(of: Difference) -> list[str]:
        if of.weighted is not None:
            return [of.weighted.withheld] if of.weighted.withheld else []
        expected = f"No difference of expected values: {of.why_not_expected}" if of.why_not_expected else ""
        return [line for line in (of.why_not, expected) if line]

    sentences = _together(results, list(map(limits, differences)), [of.variant for of in differences])
    return [doc.words(line, ".") for line in sentences]


def _differences(differences: Sequence[Difference], names: Sequence[str], level: str, *, to: bool = False) -> doc.Grid:
    expects = any(difference.expected for difference in differences)
    last = [f"expected difference, {level}"] if expects else []
    rows: list[tuple[doc.Cell, ...]] = []
    for difference in differences:
        found, weighted = difference.of_values, difference.weighted
        if found is None or (weighted is not None and weighted.withheld):
            cells: tuple[doc.Cell, ...] = ("none", "", "")
        elif not found.n:  # an interval of width 0 would look like a measurement
            cells = (measured(found)[0], SAME_DISPLAYS if weighted is None else SAME_POLICY, "0")
        else:
            cells = (*measured(found), f"{found.n:,}")
        rows.append(
            (
                names[difference.variant],
                *([names[difference.reference]] if to else []),
                *cells,
                *([_ends(difference.expected)] if expects else []),
            )
        )
    columns = [doc.column(name) for name in ("", *(["to"] if to else []))]
    return doc.grid(
        [*columns, *(doc.column(name, "number", folds=True) for name in ("difference", level, "n", *last))], rows
    )


def _ends(interval: Interval | None) -> doc.Cell:
    return "none" if interval is None else measured(interval)[1]


def _ranking(comparison: Comparison) -> doc.Section:
    ranking = comparison.ranking
    expected = ranking.target == "expected"
    ahead = "expected ahead of" if expected else "ahead in these runs of"
    names = names_of(comparison.results)
    columns = [
        doc.column(""),
        doc.column(f"value after {comparison.horizon.rounds:,}", "number", folds=True),
        doc.column(ahead + (", if so" if ranking.rests_on else "")),
    ]
    rows: list[tuple[doc.Cell, ...]] = []
    for group in ranking.groups:
        if group is not ranking.groups[0]:
            rows.append(("", "", ""))
        for i in group:
            behind = ", ".join(names[j] for j in ranking.ahead_of[i])
            value = comparison.curves[i].value
            last = Measured(value.estimate[-1], value.low[-1], value.high[-1], "estimate")
            rows.append((names[i], last, behind or "-"))
    target = "of expected values" if expected else "of these runs"
    tested = "all pairs tested" if ranking.all_pairs else "differences to the baseline tested"
    below: list[doc.Block] = [doc.paragraph(ranking.conclusion, style="bold")]
    if len(ranking.groups) > 1:
        below.append(doc.paragraph(APART))
    title = doc.words(doc.run("Ranking ", "bold"), f"{target} ({tested}, adjusted for their number by Holm's method)")
    return doc.section(title, doc.grid(columns, rows), *below)


def _regret(comparison: Comparison, level: str, *, wide: bool) -> doc.Section:
    rounds = max((curve.rounds for curve in comparison.curves), key=len)
    total = int(rounds[-1])
    at = np.searchsorted(rounds, [-(-total * share // 100) for share in (10, 25, 50, 100)])
    part: Literal["beside", "estimate"] = "beside" if wide else "estimate"
    rows = []
    for name, curve in zip(names_of(comparison.results), comparison.curves, strict=True):
        band = curve.regret
        cells: list[doc.Cell] = ["none" for _ in at]
        if len(curve.rounds):
            cells = [Measured(band.estimate[k], band.low[k], band.high[k], part, sign=False) for k in at]
        rows.append((name, *cells))
    bands = f"approximate {level} bands" if ends_seen(comparison.results) else f"{level} bands"
    printed = bands if wide else f"{bands} with --json or --out"
    kind = comparison.results[0].best_fixed_action.kind
    columns = [doc.column("after"), *(doc.column(f"{rounds[k]:,}", "number", folds=True) for k in at)]
    title = doc.words(doc.run("Regret ", "bold"), f"against the best fixed {kind} ({printed})")
    return doc.section(title, doc.grid(columns, rows))


def _given_to_policy(assumed: VariantInputs) -> list[str]:
    sentences = []
    if assumed.needs_cdf:
        sentences.append(
            f"the policy was told the delay CDF: {assumed.delay_cdf or 'none, for there are no conversions'}"
        )
    if assumed.horizon is not None:
        sentences.append(f"the policy was told the horizon: at most {assumed.horizon:,} rounds")
    return sentences


def _line_table(policies: Sequence[str], numbers: Sequence[Number], level: str, *, stacked: bool = False) -> doc.Grid:
    columns = [doc.column("policy")]
    for title, cell_of in numbers:
        interval = isinstance(cell_of(0), Interval)
        columns.append(doc.column(doc.lines(title, level) if interval and stacked else title, "number", folds=True))
        if interval and not stacked:
            columns.append(doc.column(level, "number", folds=True))
    rows = []
    for i, policy in enumerate(policies):
        row: list[doc.Cell] = [policy]
        for _, cell_of in numbers:
            cell = cell_of(i)
            if isinstance(cell, Interval):
                row += [measured_below(cell)] if stacked else measured(cell)
            else:
                row.append(cell)
        rows.append(row)
    return doc.grid(columns, rows, gap=1)


def _together(
    results: Sequence[ReplayResult], per_line: Sequence[Sequence[doc.Wordable]], numbers: Sequence[int] = ()
) -> list[doc.Words]:
    """Return each sentence once, with the names of its variants unless it holds for all; its code stays last."""
    about: dict[doc.Words, list[int]] = {}
    for i, sentences in zip(numbers or range(len(per_line)), per_line, strict=True):
        for sentence in sentences:
            about.setdefault(doc.words(sentence), []).append(i)
    together = []
    for sentence, variants in about.items():
        if len(variants) < len(per_line):
            coded_last = len(sentence) > 1 and sentence[-1].text.startswith(" [")
            said, code = (sentence[:-1], sentence[-1:]) if coded_last else (sentence, ())
            names = [names_of(results)[i] for i in variants]
            more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
            sentence = doc.words(said, f" ({'; '.join([*names[:_NAMED], *more])})", code)
        together.append(sentence)
    return together
