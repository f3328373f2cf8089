"""Small files that unpack to much end in one line before they take memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evaluator import load
from evaluator.errors import SourceError
from tests.fuzz.bombs import BOMBS
from tests.fuzz.oracle import RESIDENT, forget_peak, peak
from tests.reading.sources import write_spec


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_one_line(bomb: str, tmp_path: Path) -> None:
    suffix, make, said = BOMBS[bomb]
    path = tmp_path / f"log{suffix}"
    path.write_bytes(make())
    assert path.stat().st_size < 11_000_000
    spec = write_spec(tmp_path, source={"files": path.name})
    before, begun = forget_peak(), time.process_time()
    with pytest.raises(SourceError) as refused:
        load(spec)
    assert time.process_time() - begun < 20
    assert peak() - before < RESIDENT
    line = str(refused.value)
    assert path.name in line
    assert said in line
    assert "or set EVALUATE_" in line
    assert "\n" not in line
