"""How wide tables are whose numbers stand whole."""

from __future__ import annotations

from rich.table import Table

from evaluator.report.console import ReportConsole

# Below this an interval stands under its estimate.
WIDE = 100
# Characters of a name that stand in one line at the least; the rest of it may stand below.
_NAME = 12


def fits(console: ReportConsole, table: Table, longest: int) -> bool:
    """Return whether a table has room for its numbers, and for its names after they are folded.

    Parameters
    ----------
    console
        Console to print on.
    table
        Table with one column of names.
    longest
        Characters of the longest name.
    """
    unfolded = console.measure(table, options=console.options.update(width=100_000)).maximum
    return unfolded - max(longest - _NAME, 0) <= console.width
