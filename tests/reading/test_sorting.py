"""External sort: the order of a stable sort in memory, whatever fits into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.reading import frames as scan
from evaluator.reading import sorting
from evaluator.reading.sorting import SortedChunks, spools

LAST = np.iinfo(np.int64).max
TIMES = st.none() | st.integers(0, 5) | st.sampled_from([-(2**63), -1, LAST - 1, LAST])


def frames(times: list[int | None], size: int) -> list[pl.DataFrame]:
    whole = pl.DataFrame({"t": times, "row": range(len(times))}, schema={"t": pl.Int64, "row": pl.Int64})
    return [whole.slice(i, size) for i in range(0, len(times), size)]


@pytest.mark.parametrize("on_disk", [False, True])
@settings(max_examples=80, deadline=None)
@given(
    st.lists(TIMES, max_size=60), st.integers(1, 9), st.integers(1, 9), st.integers(2, 5), st.sampled_from([1, 3, 64]),
    st.none() | st.integers(1, 9),
)  # fmt: skip
def test_order_is_that_of_a_stable_sort(
    tmp_path_factory: pytest.TempPathFactory,
    on_disk: bool,
    times: list[int | None],
    size: int,
    fits: int,
    ranges: int,
    sampled: int,
    limit: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("sort") if on_disk else None
    expected = sorted(range(len(times)), key=lambda i: LAST if times[i] is None else times[i])[:limit]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "RANGE_ROWS", fits)
        patch.setattr(sorting, "MOST_RANGES", ranges)
        patch.setattr(sorting, "SAMPLED", sampled)
        patch.setattr(scan, "CHUNK_ROWS", 7)
        chunks = SortedChunks(frames(times, size), "t", limit, spools(folder))
        for _ in range(2):  # as often as wanted
            assert [row for frame in chunks for row in frame["row"].to_list()] == expected


def test_what_is_sorted_fits_into_memory_and_a_single_time_needs_no_sorting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    # Half of the rows share one time; the others are spread evenly.
    times = np.where(rng.random(20_000) < 0.5, 500, rng.integers(0, 1_000_000, 20_000)).tolist()
    sorted_rows = []
    concat = pl.concat

    def counted(items: object, **options: object) -> pl.DataFrame:
        whole = concat(items, **options)
        sorted_rows.append(whole.height)
        return whole

    monkeypatch.setattr(sorting, "RANGE_ROWS", 1_000)
    monkeypatch.setattr(sorting.pl, "concat", counted)
    monkeypatch.setattr(scan, "CHUNK_ROWS", 100)
    chunks = SortedChunks(frames(times, 100), "t", None, spools(tmp_path))
    rows = []
    for frame in chunks:
        rows += frame["row"].to_list()
        assert len(list(tmp_path.iterdir())) <= 2 + 2 * sorting.MOST_RANGES
    assert rows == np.argsort(times, kind="stable").tolist()
    assert max(sorted_rows) <= 1_000
    # Ranges vanish once they have been read; the rows themselves stay, to be read again.
    assert len(list(tmp_path.iterdir())) == 1
