"""What the making of a dataset returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MadeFiles:
    """Where a generated dataset and its truth are.

    Parameters
    ----------
    path
        Path of the data: a twin's gzipped file, the shop's folder.
    truth, table
        Paths of the truth as JSON, and of its propensities and rates by context and action as a table (Parquet, CSV).
    counts
        Numbers of rows by name: of a twin's rows, users, conversions and rows with conversions; of the shop's displays,
        sales and delays.
    """

    path: Path
    truth: Path
    table: Path
    counts: dict[str, int]
