"""Clusters of displays: by a kept column or by the clock, the same from memory and from disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator.datasets.canonical import open_canonical
from evaluator.datasets.writing import write_canonical
from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.log.clusters import read_clusters, source_columns
from tests.logs import build_log

TIME = np.array([0, 10, 80_000, 86_400, 90_000, 260_000])


def timed(**columns: list[str | None]) -> Log:
    log = build_log(time=TIME, action=[0, 1, 0, 1, 0, 1], n_actions=2, tick="s")
    displays = log.displays
    for name, values in columns.items():
        displays = displays.append_column(name, pa.array(values, pa.string()))
    return replace(log, displays=displays)


def test_clusters_are_numbered_and_the_unnamed_stand_alone(tmp_path: Path) -> None:
    log = timed(user=["zoe", None, "ann", "zoe", None, "ann"])
    found = read_clusters(log, "user")
    assert found.code.tolist() == [0, 2, 1, 0, 3, 1]
    assert (found.count, found.unnamed) == (4, 2)
    write_canonical(log, tmp_path)
    assert read_clusters(open_canonical(tmp_path), "user").code.tolist() == found.code.tolist()


def test_an_empty_text_is_a_value_and_no_value_is_none() -> None:
    found = read_clusters(timed(user=["", None, "", "a", None, ""]), "user")
    assert (found.count, found.unnamed) == (4, 2)
    assert len(set(found.code[[0, 2, 5]].tolist())) == 1


@pytest.mark.parametrize("by", ["every:1d", "every:24h", "every:86400s"])
def test_parts_of_the_clock_are_cut_at_whole_multiples(by: str) -> None:
    assert read_clusters(timed(), by).code.tolist() == [0, 0, 0, 1, 1, 2]


def test_parts_of_a_log_that_counts_rounds_are_named_in_rounds() -> None:
    log = build_log(time=np.arange(10), action=np.zeros(10), n_actions=2)
    assert read_clusters(log, "every:4").code.tolist() == [0] * 4 + [1] * 4 + [2] * 2


@pytest.mark.parametrize(
    ("log", "by", "words"),
    [
        (timed(user=["a"] * 6), "usr", "keeps no such column .it keeps user."),
        (timed(), "day", "keeps none|it keeps none"),
        (timed(), "every:5000", "has times"),
        (timed(), "every:week", "week"),
        (timed(), "every:0d", "out of range"),
        (build_log(time=[0, 1], action=[0, 1], n_actions=2), "every:1d", "counts rounds"),
        (build_log(time=[0, 1], action=[0, 1], n_actions=2), "every:0", "counts rounds"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(log: Log, by: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        read_clusters(log, by)


def test_a_column_called_like_a_part_of_the_clock_is_not_taken_for_it() -> None:
    with pytest.raises(ParameterError, match="a column of that name"):
        read_clusters(timed(**{"every:1d": ["a"] * 6}), "every:1d")


def test_only_columns_are_asked_of_a_source() -> None:
    assert [source_columns(by) for by in (None, "user", "every:1d")] == [[], ["user"], []]
