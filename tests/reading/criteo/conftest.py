"""One twin of 200,000 rows serves all tests that only read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluator.datasets import make

ROWS = 200_000
FULL = 16_468_027


@dataclass(frozen=True)
class Twin:
    path: Path
    frame: pl.DataFrame
    truth: dict[str, Any]
    table: pl.DataFrame

    @property
    def converted(self) -> pl.DataFrame:
        delay = pl.col("conversion_timestamp") - pl.col("timestamp")
        return self.frame.filter(pl.col("conversion") == 1).with_columns(delay.alias("delay"))

    @property
    def others(self) -> pl.DataFrame:
        return self.frame.filter(pl.col("conversion") == 0)

    @property
    def conversions(self) -> pl.DataFrame:
        """One row a key."""
        return self.converted.group_by("conversion_id", "uid").agg(
            pl.len().alias("rows"),
            pl.col("conversion_timestamp").n_unique().alias("times"),
            pl.col("campaign").n_unique().alias("campaigns"),
            pl.col("attribution").mean(),
            pl.col("click_nb").unique(),
            pl.col("click_pos").sort(),
            pl.col("click_pos").sort_by("timestamp", "click_pos").alias("in_time"),
        )


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Twin:
    made = make("criteo_twin", tmp_path_factory.mktemp("twin") / "twin.tsv.gz", rows=ROWS, seed=3)
    frame = pl.read_csv(made.path, separator="\t", infer_schema_length=None)
    return Twin(made.path, frame, json.loads(made.truth.read_text()), pl.read_parquet(made.table))
