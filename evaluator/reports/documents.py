"""The document and the charts of any result: functions for each kind of result build them; text and HTML render them.

Charts are Vega-Lite specifications with their data.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Console

from evaluator.errors import UnknownNameError, nearest
from evaluator.findings.catalogue import COMMANDS, Entry
from evaluator.reports import document as doc
from evaluator.reports.command_words import use_command_words
from evaluator.reports.terminal import fit_lines, layout_of, print_document

if TYPE_CHECKING:
    import altair as alt

    from evaluator.comparisons.verdict import Candidate, Verdict

FULL = doc.Layout()
# The module and the function that build the document of each kind of result; modules are imported when needed.
_BUILDERS = {
    "Audit": "audit.document", "CheckReport": "check.document", "Comparison": "comparison.document",
    "dict": "dataset.document", "DelayStudy": "delays.document", "Log": "dataset.document",
    "ReplayPlan": "replay.plan_document", "ReplayResult": "replay.document", "Simulation": "simulation.document",
}  # fmt: skip
# Small pictures of pages, which no file holds.
SMALL = frozenset({"arrival", "change"})
# Parts that only a whole chart has: Altair refuses to join charts that have them.
_OF_A_WHOLE = frozenset({"$schema", "config", "datasets"})
# The names of the charts of each kind of result, the most telling one first, with the module and the function that draw
# each. A function without a name draws several charts, each with its own.
_CHARTS: dict[str, list[tuple[str, str]]] = {
    "ReplayResult": [
        ("replay", "curve_charts.replay_chart"), ("guardrails", "interval_charts.guardrail_chart"),
        ("actions", "curve_charts.action_chart"), ("window", "curve_charts.window_chart"),
        ("", "interval_charts.group_charts"), ("acceptance", "interval_charts.acceptance_chart"),
        ("earned", "answer_charts.earned_chart"), ("seen", "answer_charts.learned_chart"),
        ("gainers", "answer_charts.uplifts_chart"),
    ],
    "Comparison": [
        ("comparison", "curve_charts.comparison_chart"), ("differences", "interval_charts.difference_chart"),
        ("windows", "curve_charts.window_chart"), ("acceptance", "interval_charts.acceptance_chart"),
        ("guardrails", "interval_charts.guardrail_chart"), ("", "interval_charts.segment_charts"),
        ("", "curve_charts.action_charts"), ("decision", "answer_charts.decision_chart"),
        ("gainers", "answer_charts.gainers_chart"), ("gain", "answer_charts.gain_chart"),
        ("seen", "answer_charts.seen_chart"),
    ],
    "Audit": [
        ("audit", "interval_charts.audit_chart"), ("detectable", "interval_charts.detectable_chart"),
        ("bias", "answer_charts.bias_chart"), ("told", "answer_charts.told_chart"),
    ],
    "CheckReport": [("left", "answer_charts.left_chart"), ("tests", "answer_charts.tests_chart")],
    "Simulation": [("simulation", "curve_charts.simulation_chart"), ("observed", "curve_charts.observed_chart")],
    "DelayStudy": [
        ("cdf", "delay_charts.cdf_chart"), ("density", "delay_charts.density_chart"),
        ("groups", "delay_charts.groups_chart"), ("arrival", "answer_charts.arrival_chart"),
        ("rates", "delay_charts.rates_chart"), ("calibration", "delay_charts.calibration_chart"),
        ("change", "answer_charts.change_chart"),
    ],
    "Log": [("log", "curve_charts.log_chart")],
    "dict": [("shown", "answer_charts.shown_chart")],
}  # fmt: skip
# Charts of all replays of a result; and charts that there are not if all delays are 0.
_OF_REPLAYS = ("guardrails", "window", "windows", "acceptance")
_OF_DELAYS = ("cdf", "density", "groups", "arrival")


def document_of(result: object, layout: doc.Layout = FULL) -> doc.Document:
    """Return the document of a result, a plan or a log, with options named as in Python; TypeError for others."""
    kind = _kind(result, _BUILDERS)
    if not kind:
        raise TypeError(f"A {type(result).__name__} has no report.")
    document: doc.Document = _function(_BUILDERS[kind])(result, layout)
    return document


def _kind(result: object, known: Container[str]) -> str:
    """Return the name of the first class of a result that is known; empty for none."""
    return next((kind.__name__ for kind in type(result).__mro__ if kind.__name__ in known), "")


def _function(where: str) -> Callable[..., Any]:
    module, _, name = where.partition(".")
    function: Callable[..., Any] = getattr(import_module(f"evaluator.reports.{module}"), name)
    return function


def chapter_of(result: object, reproduce: Mapping[str, str] | None = None, *, dates: str = "") -> doc.Chapter:
    """Return a result as a chapter of a page: its document, its charts, and the facts that reproduce it.

    The facts are given by name; the dates are those of its log in words, empty where they are not known.
    """
    document = document_of(result, doc.Layout(page=True, dates=dates))
    return doc.Chapter(document.kind, document.title, document.sections, charts_of(result), reproduce or {})


def name_command_options(document: doc.Document) -> doc.Document:
    """Return a document in which options have their names of the command line."""
    return replace(document, sections=name_command_options_in_sections(document.sections))


def name_command_options_in_sections(sections: Iterable[doc.Section]) -> tuple[doc.Section, ...]:
    """Return sections in which options have their names of the command line; words from the log stay unchanged."""
    translate = use_command_words

    def of_words(text: doc.Words) -> doc.Words:
        return tuple(part if part.verbatim else replace(part, text=translate(part.text)) for part in text)

    def of_verdict(verdict: Verdict) -> Verdict:
        def of_conditions(one: Candidate) -> Candidate:
            said = (replace(c, what=translate(c.what), remedy=translate(c.remedy)) for c in one.conditions)
            return replace(one, conditions=tuple(said))

        return replace(
            verdict, headline=translate(verdict.headline), sentence=translate(verdict.sentence),
            settle=tuple(map(translate, verdict.settle)), candidates=tuple(map(of_conditions, verdict.candidates)),
        )  # fmt: skip

    def of_block(block: doc.Block) -> doc.Block:
        match block:
            case doc.Paragraph():
                return doc.Paragraph(of_words(block.words))
            case doc.Bullets():
                return doc.Bullets(tuple(map(of_words, block.items)))
            case doc.Grid():
                columns = tuple(replace(column, name=of_words(column.name)) for column in block.columns)
                rows = tuple(tuple(map(of_words, row)) for row in block.rows)
                return replace(block, columns=columns, rows=rows, caption=of_words(block.caption))
            case doc.VerdictBlock():
                notes = tuple(map(translate, block.notes))
                return replace(block, verdict=of_verdict(block.verdict), notes=notes)
            case doc.Lights():
                lights = (
                    replace(one, number=translate(one.number), what=translate(one.what), remedy=translate(one.remedy))
                    for one in block.lights
                )
                return replace(block, lights=tuple(lights))

    return tuple(
        replace(part, title=of_words(part.title), fold=of_words(part.fold), blocks=tuple(map(of_block, part.blocks)))
        for part in sections
    )


def show(console: Console, result: object, *, full: bool = True) -> None:
    """Print the report of a result with options named as on the command line: the full report, or one screen."""
    document = name_command_options(document_of(result, layout_of(console, full=full)))
    print_document(console, document if full else fit_lines(document, console))


def entry_document(entry: Entry) -> doc.Document:
    """Return the document that explains a code."""
    examples = {"An example that has it": entry.example, "An example that has it no more": entry.mended}
    sections = (
        doc.section("", doc.paragraph(doc.run(entry.code, "bold"), f": {entry.title}")),
        doc.section("What it means", doc.paragraph(entry.means.strip())),
        doc.section("How it is found", doc.paragraph(entry.how.strip())),
        doc.section("What it does to the numbers", doc.paragraph(entry.effect.strip())),
        doc.section("What to do", doc.paragraph(entry.remedy.strip())),
        *(
            # In Python code options keep their names.
            doc.section(
                title, doc.paragraph(*(replace(part, verbatim=True) for part in doc.lines(*code.strip().splitlines())))
            )
            for title, code in examples.items()
            if code
        ),
    )
    return doc.Document("explain", entry.code, sections)


def list_document(entries: Sequence[Entry]) -> doc.Document:
    """Return a document that lists every code with its title, by the command whose results have it."""
    sections = (
        doc.section(
            command,
            doc.grid(
                [doc.column("", "whole"), doc.column("")],
                [(entry.code, entry.title) for entry in entries if entry.command == command],
                headed=False,
            ),
        )
        for command in COMMANDS
    )
    return doc.Document("explain", "Codes of findings", tuple(sections))


def charts_of(result: object) -> dict[str, doc.Spec]:
    """Return the charts of a result or a log, the most telling one first; an empty dict for a result without charts."""
    return dict(_drawn(result))


def first_chart(result: object) -> dict[str, doc.Spec]:
    """Return the most telling chart alone, by its name, where there is one."""
    return dict(islice(_drawn(result), 1))


def _drawn(result: Any) -> Iterator[tuple[str, doc.Spec]]:
    """Yield each chart of a result that has something to draw, with its name."""
    kind = _kind(result, _CHARTS)
    for name, where in _CHARTS.get(kind, ()):
        if kind == "DelayStudy" and name in _OF_DELAYS and not result.drawable:
            continue
        draw = _function(where)
        with _unvalidated():
            found = draw(getattr(result, "results", [result]) if name in _OF_REPLAYS else result)
        if not name:
            yield from found.items()
        elif found is not None:
            yield name, found


def _unvalidated() -> AbstractContextManager[None]:
    """Keep Altair from holding every part of a chart against the schema of all charts: tests do that with the whole."""
    from altair.utils.schemapi import debug_mode

    return debug_mode(False)


def chart_of(result: object, name: str | None) -> alt.Chart:
    """Return a chart of a result by its name, the most telling one for None; UnknownNameError if there is none."""
    import altair as alt

    charts = charts_of(result)
    wanted = next(iter(charts), "") if name is None else name
    if wanted not in charts:
        subject = f"This {type(result).__name__}"
        if not charts:
            raise UnknownNameError(f"{subject} has no chart.", remedy="its tables say all that it holds.")
        raise UnknownNameError(f"{subject} has no chart {wanted!r}.", remedy=nearest(wanted, charts))
    spec = charts[wanted]
    parts = {
        part: _inline_data(value, spec.get("datasets", {})) for part, value in spec.items() if part not in _OF_A_WHOLE
    }
    chart: alt.Chart = alt.Chart.from_dict(parts)
    return chart


def _inline_data(part: Any, data: Mapping[str, Any]) -> Any:
    """Return a part of a chart with its data inline instead of named, without the invisible marks for tooltips."""
    if isinstance(part, list):
        return [_inline_data(one, data) for one in part if not _is_unseen(one)]
    if not isinstance(part, dict):
        return part
    if set(part) == {"name"} and part["name"] in data:
        return {"values": data[part["name"]]}
    return {name: _inline_data(value, data) for name, value in part.items()}


def _is_unseen(part: Any) -> bool:
    """Whether a part of a chart holds invisible marks."""
    mark = part.get("mark") if isinstance(part, dict) else None
    return isinstance(mark, dict) and mark.get("opacity") == 0
