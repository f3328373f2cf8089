"""A few damaged inputs of each kind that is read fast; ``pytest tests/statistical/test_fuzz.py`` reads thousands."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import oracle
from tests.fuzz.broken import BROKEN, SAID
from tests.fuzz.campaign import run_cases
from tests.fuzz.files import damage
from tests.fuzz.seeds import make

FAST = ("csv", "parquet", "spec", "fit", "study", "converted")


def test_damaged_inputs_are_refused_or_sound() -> None:
    failures = run_cases(FAST, range(8))
    assert not failures, "\n".join(map(str, failures))


@pytest.mark.parametrize("name", SAID)
def test_the_fuzzer_finds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "seeds", ["csv"])
    monkeypatch.setattr(oracle, "TARGETS", BROKEN)
    monkeypatch.setattr(oracle, "RESIDENT", 50_000_000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch" / "tmp"))
    bench = oracle.Bench(tmp_path / "seeds", tmp_path / "scratch")
    bench.prepare()
    monkeypatch.chdir(bench.cwd)
    assert SAID[name] in (bench.run(name, 0) or "nothing")
    assert os.listdir(bench.cwd) == []


def test_a_case_is_its_number(tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        folder = tmp_path / str(len(found))
        make(folder, ["converted"])
        files = sorted((folder / "converted" / "log").iterdir())
        how = damage(np.random.default_rng(seed), files)
        found.append((how, [file.read_bytes() for file in files]))
    assert found[0] == found[1] != found[2]
