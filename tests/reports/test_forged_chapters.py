"""Chapters that somebody else wrote: what is no data of ours is one line, and no address is asked for anything."""

from __future__ import annotations

import copy
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.reports.chart_schema import MOST_MARKS, check_charts
from evaluator.reports.documents import chapter_of
from evaluator.reports.html import figures, pictures
from evaluator.reports.manifest import CHAPTER, write_chapter
from tests.cli.runs import evaluate

Forge = Callable[[dict[str, Any]], Any]
ROWS = [{"round": i, "mean": 0.5, "of": "ucb1"} for i in range(20)]
CHART = {
    "mark": {"type": "line", "color": "#0072B2"},
    "data": {"values": ROWS},
    "encoding": {
        "x": {"field": "round", "type": "quantitative", "axis": {"title": "round"}},
        "y": {"field": "mean", "type": "quantitative"},
        "description": {"field": "of", "type": "nominal"},
    },
    "title": {"text": "Mean reward per round"},
    "width": 640,
    "height": 220,
}


@pytest.fixture
def visited() -> Iterator[tuple[str, list[bytes]]]:
    """Give the address of a server of numbers, and what it was asked."""
    asked: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                other, _ = server.accept()
            except OSError:
                return
            with other:
                asked.append(other.recv(1000))
                other.sendall(b'HTTP/1.0 200 OK\r\nAccess-Control-Allow-Origin: *\r\n\r\n[{"round": 1, "mean": 7}]')

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}/rows.json", asked
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def chapter(chart: Any = CHART, **more: Any) -> dict[str, Any]:
    sections = [{"title": [], "blocks": [], "folded": False}]
    return {"schema": "evaluate.chapter/2", "kind": "replay", "title": "t", "sections": sections,
            "charts": {"replay": chart}, "reproduce": {}, **more}  # fmt: skip


def told(folder: Path, found: Any) -> str:
    """Return what `evaluate report` says of a chapter that it refuses: one line, and no page."""
    (folder / CHAPTER).write_text(found if isinstance(found, str) else json.dumps(found), encoding="utf-8")
    page = folder / "page.html"
    run = evaluate("report", str(folder), "-o", str(page))
    assert (run.code, run.out, page.exists()) == (3, "", False)
    assert run.err.startswith(f"error: {folder / CHAPTER}: ")
    assert run.err.endswith("Hint: run the command again with --out.\n")
    assert run.err.count("\n") == 1
    assert len(run.err) < 500
    return run.err


def put(*path: Any, value: Any) -> Forge:
    def forge(chart: dict[str, Any]) -> dict[str, Any]:
        place = chart
        for name in path[:-1]:
            place = place.setdefault(name, {}) if isinstance(place, dict) else place[name]
        place[path[-1]] = value
        return chart

    return forge


def concat(chart: dict[str, Any]) -> dict[str, Any]:
    return {"vconcat": [{"layer": [{**chart, "data": {"url": "URL"}}]}]}


ATTACKS: dict[str, tuple[Forge, str]] = {
    "address": (put("data", value={"url": "URL"}), "data"),
    "address beside values": (put("data", "url", value="URL"), "data"),
    "address in a concatenation": (concat, "vconcat.0.layer.0.data"),
    "address in a dataset": (put("datasets", value={"d": {"url": "URL"}}), "datasets.d"),
    "lookup": (
        put("transform", value=[{"lookup": "round", "from": {"data": {"url": "URL"}, "key": "a", "fields": ["b"]}}]),
        "transform.0",
    ),
    "sequence": (put("data", value={"sequence": {"start": 0, "stop": 5e7, "as": "round"}}), "data"),
    "graticule": (put("data", value={"graticule": {"step": [1e-6, 1e-6]}}), "data"),
    "expression": (put("transform", value=[{"filter": "test(regexp('(a+)+$'), datum.of)"}]), "transform.0"),
    "calculation": (put("transform", value=[{"calculate": "sequence(5e7)", "as": "b"}]), "transform.0"),
    "quoted calculation": (put("transform", value=[{"calculate": "''+sequence(5e7)+''", "as": "b"}]), "transform.0"),
    "label by expression": (put("encoding", "x", "axis", "labelExpr", value="replace(datum.value, /(a+)+$/, '')"),
                            "encoding.x.axis.labelExpr"),
    "label by expression after ours": (
        put("encoding", "x", "axis", "labelExpr", value="abs(datum.value / 6.0 - 1) < 1e-6 ? '6 s' : sequence(5e7)"),
        "encoding.x.axis.labelExpr",
    ),
    "expression for a number": (put("width", value={"expr": "1e9"}), "width"),
    "signal": (put("mark", "opacity", value={"signal": "sequence(5e7)"}), "mark.opacity"),
    "parameter": (put("params", value=[{"name": "p", "bind": {"input": "range"}}]), "params"),
    "picture": (put("mark", value={"type": "image", "url": "URL"}), "mark.type"),
    "link of a mark": (put("mark", "href", value="URL"), "mark.href"),
    "link of a row": (put("encoding", "href", value={"field": "of"}), "encoding.href"),
    "pictures of rows": (put("encoding", "url", value={"field": "of"}), "encoding.url"),
    "colour that is an address": (put("mark", "color", value="url(URL)"), "mark.color"),
    "colours of rows that are addresses": (put("data", "values", 0, "colour", value="url(URL)"), ""),
    "any column for a colour": (put("encoding", "color", value={"field": "of", "scale": None}), "encoding.color"),
    "shape that is a path": (put("mark", "shape", value="M0,0L1,1"), "mark.shape"),
    "width": (put("width", value=1e9), "width"),
    "ticks": (put("encoding", "x", "axis", "tickCount", value=10**9), "encoding.x.axis.tickCount"),
    "format": (put("encoding", "x", "axis", "format", value="1000000000d"), "encoding.x.axis.format"),
    "no configuration": (put("config", value=None), "config"),
    "configuration of all": (put("config", value={"customFormatTypes": True}), "config"),
    "number beyond all": (put("encoding", "x", "scale", value={"domain": [0, 1e308]}), "encoding.x.scale.domain"),
    "rows that are none": (put("data", "values", value=[[]] * 10), "data"),
    "cells that are none": (put("data", "values", 3, "mean", value={"a": 1}), "data"),
    "long label": (put("data", "values", 0, "of", value="x" * 10_000), "data"),
    "a name of another language": (put("data", "values", 0, "a']['b", value=1), "data"),
    "version": (put("$schema", value="URL"), "$schema"),
    "aggregate": (put("encoding", "x", "aggregate", value="sum"), "encoding.x.aggregate"),
    "layers within layers": (lambda c: {"layer": [{"layer": [c]}]}, "layer.0.layer"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_chart_that_is_none_of_ours_is_refused(
    name: str, tmp_path: Path, visited: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = visited
    forge, where = ATTACKS[name]
    # Where it got to the library that draws, this would be called.
    monkeypatch.setattr("evaluator.reports.html._answers", None)
    found = json.loads(json.dumps(chapter(forge(copy.deepcopy(CHART)))).replace("URL", address))
    assert f"not as a command wrote it, at {'.'.join(filter(None, ('charts.replay', where)))}" in told(tmp_path, found)
    assert asked == []


@pytest.mark.usefixtures("drawn_alone")
def test_a_chart_of_ours_is_drawn_and_no_address_is_asked_even_of_one_that_is_not(
    visited: tuple[str, list[bytes]],
) -> None:
    address, asked = visited
    check_charts({"replay": CHART})
    drawn = figures({"replay": CHART, "forged": {**CHART, "data": {"url": address}}})
    assert set(drawn) == {"replay"}
    assert pictures({"forged": {**CHART, "data": {"url": address}}}) == {}
    assert asked == []


def test_words_of_a_chart_are_never_markup_nor_names_of_it() -> None:
    word = '"><script>alert(1)</script> onload="alert(1)" id="q" href="#q"'
    chart = {**CHART, "title": {"text": word}, "mark": {"type": "point"}, "data": {"values": [{**ROWS[0], "of": word}]}}
    check_charts({"c": chart})
    picture = figures({"c": chart})["c"]
    assert "<script" not in picture
    assert "&lt;script&gt;alert(1)" in picture
    assert 'onload="' not in picture.partition('class="mark-symbol')[2].partition('class="mark-group role-title')[0]


@pytest.mark.usefixtures("drawn_alone")
def test_what_takes_longer_than_any_of_ours_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    long = {**CHART, "data": {"values": [{**ROWS[0], "round": i} for i in range(300_000)]}, "mark": {"type": "point"}}
    monkeypatch.setattr("evaluator.reports.html._SECONDS", 1.0)
    assert set(pictures({"first": CHART, "long": long, "last": CHART}, form="svg")) <= {"first"}


@pytest.mark.parametrize(
    ("charts", "said"),
    [
        ({"c": {**CHART, "layer": [{"mark": CHART["mark"]}] * 50, "data": {"name": "d"},
                "datasets": {"d": [{"round": 0}] * 30_000}}}, f"1,500,000 marks, and {MOST_MARKS:,} are drawn"),
        ({"c": {**CHART, "data": {"values": [{}] * (MOST_MARKS + 1)}}}, r"charts\.c\.data"),
        ({f"c{i}": CHART for i in range(1001)}, "charts"),
    ],
)  # fmt: skip
def test_more_than_is_drawn_is_refused_before_it_is(charts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_charts(charts)


WORDS = [{"text": "a"}]
GRID = {"kind": "grid", "caption": [], "head": [WORDS], "rows": [[WORDS], [WORDS]], "standing": [""]}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (chapter(sections=[{"blocks": [{**GRID, "head": [WORDS, WORDS]}]}]), "at sections.0.blocks.0"),
        (chapter(sections=[{"blocks": [{**GRID, "rows": [[WORDS], []]}]}]), "at sections.0.blocks.0"),
        (chapter(sections=[{"blocks": [{**GRID, "standing": ["", ""]}]}]), "at sections.0.blocks.0"),
        (chapter(sections=[{"blocks": [1] * 2_000_000}]), "at sections.0.blocks.0"),
        (chapter(sections=None), "at sections"),
        (chapter(charts=[CHART]), "at charts"),
        (chapter(charts={"c": None}), "at charts.c"),
        (chapter(reproduce={"a": 1}), "at reproduce.a"),
        (chapter(reproduce={str(i): i for i in range(100_000)}), "an object of it has 100,000 names"),
        ('{"a":' * 900 + "1" + "}" * 900, "no evaluate.chapter/2"),
        (json.dumps(chapter("DEEP")).replace('"DEEP"', '{"layer":[' * 400 + "]}" * 400), "at charts.replay.layer.0"),
        ("[" * 100_000, "cannot be read"),
        ('{"schema": ' + "9" * 5000 + "}", "cannot be read"),
        ("[" + "1," * 40_000_000 + "1]", "cannot be read (it has more than 64 MB)"),
    ],
)  # fmt: skip
def test_what_is_no_chapter_is_one_line(found: Any, said: str, tmp_path: Path) -> None:
    assert said in told(tmp_path, found)


def test_a_verdict_that_no_comparison_has_is_one_line(results: dict[str, Any], tmp_path: Path) -> None:
    write_chapter(tmp_path, chapter_of(results["compare"]))
    found = json.loads((tmp_path / CHAPTER).read_text())
    blocks = [block for section in found["sections"] for block in section["blocks"] if block["kind"] == "verdict"]
    assert blocks
    for wrong in ({"variant": 77}, {"settle": [1] * 2_000_000}):
        own = blocks[0]["verdict"].copy()
        blocks[0]["verdict"].update(wrong)
        assert ".verdict.verdict. Hint" in told(tmp_path, found)
        blocks[0]["verdict"].update(own)
