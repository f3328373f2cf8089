"""A picture that cannot be drawn costs no other, and no table."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.reports.html import pictures
from tests.drawing import KeptDrawing


def chart(label: str) -> dict[str, Any]:
    return {"data": {"values": [{"g": label}]}, "mark": "point", "encoding": {"x": {"field": "g", "type": "nominal"}}}


@pytest.mark.usefixtures("drawn_alone")
def test_one_that_ends_the_process_and_one_that_is_no_chart_cost_no_other() -> None:
    found = pictures({"first": chart("a"), "dies": chart("\x00"), "wrong": {"mark": "nothing"}, "last": chart("b")})
    assert list(found) == ["first", "last"]
    assert all(picture.startswith(b"\x89PNG") for picture in found.values())


@pytest.mark.usefixtures("drawn_alone")
def test_a_picture_does_not_depend_on_what_was_drawn_before(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = {**chart("a"), "mark": {"type": "line", "clip": True}}
    charts = {"first": chart("a"), "cut": cut, "again": cut, "dies": chart("\x00"), "last": {**cut, "width": 40}}
    alone = pictures(charts, form="svg")
    assert list(alone) == ["first", "cut", "again", "last"]
    assert b"clip1" in alone["cut"]
    with KeptDrawing() as kept:
        monkeypatch.setattr("evaluator.reports.html._answers", kept)
        for _ in range(2):
            assert pictures(charts, form="svg") == alone
            kept.drawn.clear()
        for _ in range(2):  # the second time, nothing is drawn
            assert pictures(charts, form="svg") == alone
        kept.drawn.clear()
        for process in kept.begun.values():
            process.kill()
            process.wait()
        assert pictures(charts, form="svg") == alone
