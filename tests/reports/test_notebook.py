"""What a notebook shows: the terminal's words and numbers, a picture, and nothing that runs or asks another host."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import evaluator
from evaluator import CheckReport
from evaluator.comparisons.variants import Band, VariantCurve
from evaluator.reports.command_words import use_command_words
from evaluator.reports.console import ReportConsole
from evaluator.reports.curve_charts import comparison_chart, replay_chart, simulation_chart
from evaluator.reports.documents import show
from evaluator.reports.html import NOTEBOOK_COLOURS, notebook_html, svg_pictures
from evaluator.reports.interval_charts import audit_chart
from tests.logs import build_log
from tests.reports.conftest import ATTACK

PICTURES = {"check", "log", "replay", "compare", "audit", "simulate", "delays"}
# What a report is made of: nothing that loads, runs, or is clicked but for the fold.
HTML = {"style", "div", "p", "span", "br", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure"}
TAGS = HTML | {
    "code",
    "details",
    "summary",
    "svg",
    "g",
    "path",
    "line",
    "text",
    "tspan",
    "rect",
    "defs",
    "clippath",
    "title",
}


KINDS = ("log", "replay", "compare", "audit", "simulate", "delays", "check")
FOLD = "Not applicable to this log"
FOLDED = {"How", "Log", "Assumptions", "How to read this", "Twins", "Assumptions of the replays",
          "What kind of number it is"}  # fmt: skip


class Page(HTMLParser):
    """The words and tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "figure"} & set(self.open):
            self.words.append(f"`{data}`" if "code" in self.open else data)


def letters(text: str) -> list[str]:
    """Without spaces, which are layout, and without the marks of lists, which the page draws: sorted, for the order of
    cells that take several lines is the terminal's own."""
    return sorted(re.sub(r"[\s-]", "", text))


def lights(report: CheckReport) -> tuple[str, str]:
    """What a page says of checks beside the terminal's table and paragraphs, and what these say beside it."""
    passed, alarms = report.having("pass"), (*report.having("fail"), *report.having("warn"))
    more = [f.what for f in passed] + [FOLD, ":", str(len(report.having("not applicable")))]
    return "".join(more), "verdictchecknumber" + "".join(f.verdict + f.name for f in alarms)


@pytest.fixture(scope="session")
def pages(results: dict[str, Any]) -> dict[str, str]:
    return {name: result._repr_html_() for name, result in results.items()}


@pytest.mark.parametrize("name", KINDS)
def test_a_notebook_says_what_the_terminal_says(name: str, results: dict[str, Any], pages: dict[str, str]) -> None:
    out = io.StringIO()
    terminal = ReportConsole(file=out, width=120)
    show(terminal, results[name])
    said = "".join(Page(pages[name]).words)
    # Lights say what a pass means too, and nothing twice.
    more, twice = lights(results[name]) if name == "check" else ("", "")
    # A notebook names options as Python does.
    assert letters(use_command_words(said) + twice) == letters(out.getvalue() + use_command_words(more))
    for number in re.findall(r"\d[\d.,]*\d", out.getvalue().replace("\n", "  ")):
        assert number in said or len(number) < 4


@pytest.mark.parametrize("name", KINDS)
def test_a_page_runs_nothing_and_asks_nobody(name: str, pages: dict[str, str]) -> None:
    page = Page(pages[name])
    assert not page.open
    for tag, attributes in page.tags:
        assert tag in TAGS
        assert not [a for a in attributes if a.startswith("on") or a in ("src", "href", "xlink:href", "action")]
    assert "http" not in pages[name]
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", pages[name])
    assert ATTACK not in pages[name]


@pytest.mark.parametrize("name", KINDS)
def test_there_is_a_picture_where_there_is_one(name: str, pages: dict[str, str]) -> None:
    figures = [attributes["aria-label"] for tag, attributes in Page(pages[name]).tags if tag == "figure"]
    assert len(figures) == (name in PICTURES)
    assert all(label and label != "chart" for label in figures)
    assert len(pages[name]) < 150_000


def test_charts_are_json_whatever_is_not_known(results: dict[str, Any]) -> None:
    unknown = np.full(3, np.nan)
    curve = VariantCurve(np.array([1, 2, 3]), Band(unknown, unknown, unknown), Band(np.arange(3.0), unknown, unknown))
    found = replace(results["compare"], curves=(curve, *results["compare"].curves[1:]))
    for chart in (comparison_chart(found), replay_chart(results["replay"]), audit_chart(results["audit"])):
        json.dumps(chart, allow_nan=False)
    assert simulation_chart(results["simulate"])
    assert svg_pictures({"compare": comparison_chart(found)})["compare"].startswith("<svg")


def test_pictures_of_two_results_share_no_name(pages: dict[str, str]) -> None:
    names = [found for name in PICTURES for found in set(re.findall(r'\bid="([^"]+)"', pages[name]))]
    assert names
    assert len(names) == len(set(names))
    for name in PICTURES:
        inside = set(re.findall(r'\bid="([^"]+)"', pages[name]))
        assert set(re.findall(r"url\(#([^)]+)\)", pages[name])) <= inside


def test_colours_are_read_on_light_and_dark_pages() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in NOTEBOOK_COLOURS.values():
        for page in ("#ffffff", "#111111"):
            low, high = sorted((luminance(colour), luminance(page)))
            assert (high + 0.05) / (low + 0.05) > 3.8, f"{colour} on {page}"


def test_words_take_the_pages_own_colour(pages: dict[str, str]) -> None:
    for name in PICTURES:
        assert 'fill="currentColor"' in pages[name]
        assert not re.search(r'fill="(#000|#000000|black|white|#fff|#ffffff)"', pages[name])


def test_what_is_folded_is_there(pages: dict[str, str]) -> None:
    folded = {found for page in pages.values() for found in re.findall(r"<summary>(.*?)</summary>", page)}
    assert {re.sub("<.*?>|: \\d+$", "", title) for title in folded} == FOLDED | {FOLD}


def test_every_public_result_shows_itself(results: dict[str, Any]) -> None:
    shown = {type(result) for result in results.values()}
    public = {getattr(evaluator, name) for name in evaluator.__all__}
    elsewhere = {evaluator.LearnedPolicy, evaluator.ReplayPlan}
    assert {of for of in public if hasattr(of, "_repr_html_")} == shown | elsewhere


def test_a_learned_policy_shows_what_it_prints() -> None:
    learned = evaluator.replay("synthetic", "delayed-ucb", window=50, horizon=20).learned
    assert learned is not None
    assert "".join(Page(learned._repr_html_()).words).split() == str(learned).split()


def test_a_log_that_breaks_its_contract_says_how() -> None:
    broken = build_log(time=[3, 1], action=[0, 1], n_actions=2)
    assert "displays.time: earlier than the row before (row 1: 1)." in "".join(Page(broken._repr_html_()).words)
    assert "displays=0" in build_log(time=[], action=[], n_actions=2)._repr_html_()


def test_what_has_no_report_is_refused() -> None:
    with pytest.raises(TypeError, match="A int has no report"):
        notebook_html(1)
