"""Whether so many rows were left out of a log, or such ones, that what is left is another log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.frames import UNPARSED
from evaluator.datasets.json_lines import BROKEN
from evaluator.datasets.row_breaches import SHOWN, Breaches
from evaluator.datasets.spec import Conversion
from evaluator.datasets.text_rows import CELLS
from evaluator.datasets.vw.decision_frames import NO_DECISION
from evaluator.errors import LogError
from evaluator.log.meta import LEFT_OUT

# Of logs whose rows are left out whatever their outcome, this share at most are said to depend on it (Fisher's exact
# test keeps its level), and fewer are refused: the share left out must be large too.
LEVEL = 1e-3


@dataclass
class LeftOut:
    """Displays by whether they stay in the log and whether they converted, as far as their rows say.

    Parameters
    ----------
    rows
        Number of displays that were left out and that stay, without a conversion and with one: shape (2, 2).
    unknown
        Number of displays left out that do not say whether they converted.
    """

    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 2), np.int64))
    unknown: int = 0

    def see(self, sound: npt.NDArray[np.bool_], converted: pl.Series) -> None:
        """Count the rows of a chunk: whether they stay, and whether they converted, null where unknown."""
        for stays in (False, True):
            found = converted.filter(pl.Series(sound == stays))
            with_one = int(found.sum())
            without = len(found) - found.null_count() - with_one
            self.rows[int(stays)] += [without, with_one]
            self.unknown += 0 if stays else found.null_count()

    @property
    def left_out(self) -> int:
        """Number of displays left out."""
        return int(self.rows[0].sum()) + self.unknown

    def depends_on_outcome(self) -> bool:
        """Whether displays with a conversion were left out more often, or less, than chance explains."""
        if not self.rows[0].any():
            return False
        from scipy.stats import fisher_exact

        return bool(fisher_exact(self.rows).pvalue < LEVEL)

    def refuse(self, breaches: Breaches, most: float) -> str:
        """Return a sentence on what the outcome has to do with it, empty where nothing.

        Raises
        ------
        LogError
            More than the share `most` of the displays were left out; or of those with a conversion, or of the others,
            if that depends on the outcome.
        """
        lost, total = self.left_out, self.left_out + int(self.rows[1].sum())
        refuse_many(lost, total, breaches, most, "rows")
        if not self.depends_on_outcome():
            return ""
        of_each = self.rows.sum(axis=0)
        shares = self.rows[0] / np.maximum(of_each, 1)
        said = (
            f"left out are {self.rows[0, 1]:,} of {of_each[1]:,} rows with a conversion ({_percent(shares[1])}) and "
            f"{self.rows[0, 0]:,} of {of_each[0]:,} others ({_percent(shares[0])}): it depends on the outcome, so that "
            "what is left has another conversion rate"
        )
        if shares.max() > most:
            raise _error(said, breaches, float(shares.max()))
        return f"{said[0].upper()}{said[1:]}."


def refuse_many(lost: int, total: int, breaches: Breaches, most: float, rows: str) -> None:
    """Raise LogError if more than the share `most` of some rows were left out."""
    if lost > most * total:
        share = lost / total
        said = f"{lost:,} of {total:,} {rows} ({_percent(share)}) break a rule, and {_percent(most)} may be left out"
        raise _error(said, breaches, share)


def left_out_note(tables: Sequence[Breaches], by_outcome: str = "") -> str:
    """Return how many rows were left out and why, the commonest reasons first; empty where none were.

    Parameters
    ----------
    tables
        Breaches of every table.
    by_outcome
        Sentence on what the outcome has to do with it.
    """
    rows = sum(table.rows for table in tables)
    counts = sorted((item for table in tables for item in table.counts.items()), key=lambda item: -item[1])
    if not rows:
        return ""
    reasons = "; ".join(f"{what} ({count:,})" for what, count in counts[:SHOWN])
    more = f"; and {len(counts) - SHOWN} more reasons" if len(counts) > SHOWN else ""
    return f"{rows:,} rows {LEFT_OUT}: {reasons}{more}. {by_outcome}".rstrip()


def says_converted(frame: pl.DataFrame, conversion: Conversion) -> pl.Series:
    """Return whether each row of a chunk says that its display converted, in whatever way; null where it cannot.

    A cell that cannot be read says so: where nothing happened it would be empty, or 0.
    """
    column = str(conversion.indicator or conversion.time or conversion.delay)
    cells = frame[column]
    said = (cells == 1).fill_null(False) if conversion.indicator is not None else cells.is_not_null()
    if UNPARSED + column in frame.columns:
        said |= frame[UNPARSED + column].is_not_null()
    for marks in (CELLS, BROKEN, NO_DECISION):
        if marks in frame.columns:
            said = said.set(frame[marks].is_not_null() & ~said, None)
    return said


def _error(what: str, breaches: Breaches, share: float) -> LogError:
    enough = math.ceil(share * 100)
    return LogError(
        f"{what[0].upper()}{what[1:]}. {breaches.commonest()}.",
        remedy=f"repair these first; `quarantine_at_most='{enough}%'` allows the loss.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
