"""A picture that cannot be drawn costs no other, and no table."""

from __future__ import annotations

from typing import Any

from evaluator.reports.html import pictures


def chart(label: str) -> dict[str, Any]:
    return {"data": {"values": [{"g": label}]}, "mark": "point", "encoding": {"x": {"field": "g", "type": "nominal"}}}


def test_one_that_ends_the_process_and_one_that_is_no_chart_cost_no_other() -> None:
    found = pictures({"first": chart("a"), "dies": chart("\x00"), "wrong": {"mark": "nothing"}, "last": chart("b")})
    assert list(found) == ["first", "last"]
    assert all(picture.startswith(b"\x89PNG") for picture in found.values())
