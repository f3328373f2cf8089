"""Rows as text: the first column to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[str | float, ...]


def print_table(headers: Sequence[str], rows: Sequence[Row]) -> None:
    cells = [list(headers), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    for row in cells:
        aligned = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        print("   ".join([f"{row[0]:<{widths[0]}}", *aligned[1:]]))


def _text(cell: str | float) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if cell >= 1000 else f"{cell:.3g}" if cell < 1 else f"{cell:.1f}"
