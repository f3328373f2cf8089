"""Blocks of exactly so many displays, however the log's file is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.rounds.stream import blocks, pieces
from tests.logs import build_log


@pytest.mark.parametrize("size", [1, 30, 64, 100, 250, 1000])
@pytest.mark.parametrize("vectors", ["action_set", "context", None])
@pytest.mark.parametrize("stored", [False, True])
def test_blocks_are_the_log_in_equal_parts(size: int, vectors: str | None, stored: bool, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(0), 250
    of = np.sort(rng.integers(0, n, 70))
    log = build_log(
        time=np.arange(n), action=rng.integers(0, 3, n), n_actions=3, conversion_display=of, conversion_time=of + 1,
        context=rng.random((n, 2)), action_set=rng.random((n, 3, 2)),
    )  # fmt: skip
    if stored:
        write_canonical(log, tmp_path)
        log = open_canonical(tmp_path)
    names = [] if vectors is None else [vectors]
    found = list(blocks(log, ["action", "context"], names, size))
    (whole,) = pieces(log, ["action", "context"], names, n)
    assert [len(block.action) for block in found] == [size] * (n // size) + [n % size] * (n % size > 0)
    for block in found:
        rows = slice(block.first, block.first + len(block.action))
        assert (block.action == whole.action[rows]).all()
        assert (block.displays["context"] == whole.displays["context"][rows]).all()
        own = whole.first_conversion[rows.start : rows.stop + 1]
        assert (block.conversion + block.first_conversion == whole.conversion + own).all()
        assert block.first_conversion[0] == whole.conversion == 0
        assert block.vectors.keys() == set(names)
        for name in names:
            assert (block.vectors[name] == whole.vectors[name][rows]).all()
