"""A CDF drawn in characters, on a logarithmic axis of delays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from rich.text import Text

Floats = npt.NDArray[np.float64]
_BLANK = 0x2800
# Bit of the dot in column x, row y of a braille cell.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_LABEL = 5


def sketch_cdf(
    corrected: Callable[[Floats], Floats],
    naive: Callable[[Floats], Floats],
    *,
    low: float,
    high: float,
    mark: Callable[[float], str],
    width: int,
    height: int = 10,
    braille: bool = True,
) -> Text:
    """Return two CDFs as lines of text with axes, the corrected one on top.

    Parameters
    ----------
    corrected, naive
        Functions from an array of delays to P(D <= delay), of its shape.
    low, high
        Range of the delays to draw, 0 < low < high.
    mark
        Function from a delay to its label on the axis.
    width, height
        Width of the whole in characters, and height of the plot in lines.
    braille
        Whether to draw in braille dots, finer than characters; otherwise in ``*`` and ``o``, which any terminal and
        file can show.
    """
    columns = max(width - _LABEL - 1, 16)
    per_x, per_y = (2, 4) if braille else (1, 1)
    x = np.geomspace(low, high, columns * per_x)
    layers = [_rows(curve(x), height * per_y) for curve in (naive, corrected)]
    text = Text()
    for line in range(height):
        share = 1.0 - line / (height - 1)
        text.append(f"{share:>{_LABEL - 1}.0%} " if line % 3 == 0 else " " * _LABEL, style="dim")
        text.append("│" if braille else "|", style="dim")
        for column in range(columns):
            text.append(*_cell(layers, line, column, per_x, per_y))
        text.append("\n")
    text.append(_axis(low, high, mark, columns, braille), style="dim")
    return text


def _rows(cdf: Floats, height: int) -> list[range]:
    """Return the dots of a curve, column by column, from the top: a range, so that steep rises leave no gaps."""
    at = np.clip(np.rint((1.0 - cdf) * (height - 1)).astype(int), 0, height - 1).tolist()
    before = [at[0], *at[:-1]]
    return [range(now, max(then, now + 1)) for now, then in zip(at, before, strict=True)]


def _cell(layers: list[list[range]], line: int, column: int, per_x: int, per_y: int) -> tuple[str, str]:
    bits = [0, 0]
    for layer, curve in enumerate(layers):
        for x in range(per_x):
            for y in range(per_y):
                if line * per_y + y in curve[column * per_x + x]:
                    bits[layer] |= _DOTS[x][y]
    style = "cyan" if bits[1] else "yellow"
    if per_x == 2:
        return chr(_BLANK + (bits[1] or bits[0])), style
    return ("*" if bits[1] else "o" if bits[0] else " "), style


def _axis(low: float, high: float, mark: Callable[[float], str], columns: int, braille: bool) -> str:
    rule = " " * _LABEL + ("└" if braille else "+") + ("─" if braille else "-") * columns
    ticks = max(columns // 14, 2)
    line = [" "] * (columns + _LABEL + 1)
    for i, value in enumerate(np.geomspace(low, high, ticks)):
        label = mark(float(value))
        place = _LABEL + 1 + round(i * (columns - 1) / (ticks - 1)) - len(label) // 2
        place = max(0, min(place, len(line) - len(label)))
        line[place : place + len(label)] = label
    return f"{rule}\n{''.join(line).rstrip()}"
