"""The hash of a log's content follows everything in it, and nothing but that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator.datasets.canonical import open_canonical
from evaluator.datasets.writing import write_canonical
from evaluator.log import Log
from evaluator.log.content import content_hash
from tests.logs import linear_log

LOG = linear_log(300, n_actions=3, dimension=2, mean_delay=10.0, seed=1)


def with_displays(log: Log, displays: pa.Table) -> Log:
    return Log(displays, log.conversions, log.actions, log.meta)


def changed(column: pa.ChunkedArray) -> pa.Array:
    """Return the column with its last entry like its first one, or with a sign turned."""
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        return pa.concat_arrays([array.slice(0, len(array) - 1), array.slice(0, 1)])
    if pa.types.is_string(array.type):
        return pa.array([*array.to_pylist()[:-1], "another"])
    values = array.to_numpy().copy()
    values[-1] += 1
    return pa.array(values)


def each_changed() -> list[pytest.param]:
    cases = []
    for part in ("displays", "conversions", "actions"):
        table = getattr(LOG, part)
        for i, name in enumerate(table.column_names):
            parts = {p: getattr(LOG, p) for p in ("displays", "conversions", "actions")}
            parts[part] = table.set_column(i, name, changed(table.column(i)))
            cases.append(pytest.param(Log(**parts, meta=LOG.meta), id=f"{part}.{name}"))
    return cases


@pytest.mark.parametrize("other", each_changed())
def test_one_cell_of_any_column_makes_it_another_log(other: Log) -> None:
    assert content_hash(other) != content_hash(LOG)


@pytest.mark.parametrize(
    "said",
    [{"reward_max": 2.0}, {"observed_until": 10_000}, {"notes": ("read this",)}, {"counts": {"rows_read": 1}}],
    ids=lambda said: next(iter(said)),
)
def test_what_it_says_of_itself_belongs_to_it(said: dict[str, object]) -> None:
    assert content_hash(LOG.with_meta(**said)) != content_hash(LOG)


def test_neither_chunks_nor_copies_matter() -> None:
    device = pa.array(np.array(["phone", "desk", None], object)[np.arange(300) % 3])
    log = with_displays(LOG, LOG.displays.append_column("device", device))
    cut = pa.concat_tables([log.displays.slice(0, 1), log.displays.slice(1, 150), log.displays.slice(151)])
    assert cut["device"].num_chunks == 3
    assert content_hash(with_displays(log, cut)) == content_hash(log)
    other = log.displays.set_column(log.displays.num_columns - 1, "device", pa.array(device.to_pylist()[::-1]))
    assert content_hash(with_displays(log, other)) != content_hash(log)


@pytest.mark.parametrize("chosen", [{"limit": 200}, {"actions": "top:2"}], ids=lambda chosen: next(iter(chosen)))
def test_a_stored_log_is_its_file_and_what_is_taken_of_it(tmp_path: Path, chosen: dict[str, Any]) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write_canonical(LOG, folder)
    log = open_canonical(folder)
    assert content_hash(open_canonical(folder)) == content_hash(log)
    assert content_hash(open_canonical(folder, **chosen)) != content_hash(log)
    before, file = content_hash(log), folder / "displays.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert content_hash(log) != before
