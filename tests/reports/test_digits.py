"""Numbers in a table have as many decimals as their errors carry."""

from __future__ import annotations

import math

from evaluator.estimates.confidence import Interval
from evaluator.reports.document import column, grid
from evaluator.reports.numbers import Measured, measured


def test_a_column_has_the_decimals_that_its_errors_carry() -> None:
    rows = [
        ("a", *measured(Interval(0.87682, 0.86574, 0.8879, 9, 0.95, "")), Measured(12.3, 1.0, 30.0, "below")),
        ("b", *measured(Interval(0.0004, -0.0004, 0.0012, 9, 0.95, "")), Measured(-0.2, -200.0, 200.0, "below")),
        ("c", *measured(Interval(0.5, math.nan, math.nan, 9, 0.95, "")), Measured(math.nan, 0.0, 1.0, "below")),
    ]
    found = grid([column("")] * 4, rows).rows
    text = [["".join(part.text for part in cell) for cell in row] for row in found]
    # Two digits of the largest error, .011, at least one of the smallest, .0008: four decimals.
    assert [row[1:3] for row in text] == [
        ["0.8768", "[0.8657, 0.8879]"], ["0.0004", "[-0.0004, 0.0012]"], ["0.5000", "none"],
    ]  # fmt: skip
    # What rounds to 0 has no sign.
    assert [row[3] for row in text] == ["12\n[1, 30]", "0\n[-200, 200]", "unknown\nnone"]
    # Of the first row alone: two digits of 14.5, at least one of .011.
    by_row = grid([column("")] * 4, rows, alike="rows").rows
    assert ["".join(part.text for part in cell) for cell in by_row[0][1:3]] == ["0.88", "[0.87, 0.89]"]


def test_a_number_whose_error_is_not_known_has_the_digits_that_count() -> None:
    [[cell]] = grid([column("")], [(Measured(0.123456, math.nan, math.nan, "estimate"),)]).rows
    assert cell[0].text == "0.1235"
