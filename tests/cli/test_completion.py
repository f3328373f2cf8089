"""What shells complete, and that they need not wait for it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.reading.locate import DATA_SUFFIXES
from evaluator.reading.sources.files import SUFFIXES

ASKED = """
import sys
from evaluator.cli.app import main
try:
    main()
finally:
    heavy = {"numpy", "numba", "polars", "pyarrow", "rich"} & set(sys.modules)
    print("loaded", *sorted(heavy), file=sys.stderr)
"""
SPEC = 'name = "shop"\nsource = { files = "log.csv.gz" }\n'


def completed(words: str, *, cwd: Path, shell: str = "bash") -> list[str]:
    """Return what a shell is offered for the last word."""
    count = len(words.split()) - (not words.endswith(" "))
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(count), "_TYPER_COMPLETE_ARGS": words}
    program = f"import sys; sys.argv = ['evaluate']\n{ASKED}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path), "_EVALUATE_COMPLETE": f"complete_{shell}", **asked},
        capture_output=True,
        text=True,
        cwd=cwd,
    )
    assert done.stderr == "loaded\n"
    return done.stdout.split()


def test_files_are_completed_that_can_be_read() -> None:
    assert set(SUFFIXES) == DATA_SUFFIXES


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("evaluate rep", ["replay", "report"]),
        ("evaluate replay -p otfl", ["otflinucb", "otflints"]),
        ("evaluate compare --policies ucb1,lin", ["ucb1,linucb", "ucb1,lints"]),
        ("evaluate policies show qpm", ["qpm-d"]),
        ("evaluate replay -d synth", ["synthetic"]),
        ("evaluate datasets make sh", ["shop"]),
        ("evaluate check criteo_t", ["criteo_twin"]),
        ("evaluate simulate -s vernade2017-l", ["vernade2017-low"]),
        ("evaluate replay -d shop --cluster-by us", ["user"]),
        ("evaluate replay -d shop --by ad,user+a", ["ad,user+ad"]),
        ("evaluate delays -d shop/spec.toml --by ", ["time", "user", "ad"]),
        ("evaluate delays --file delays.csv --delay-column d", ["delay_s"]),
        ("evaluate delays absent/spec.toml --by u", []),
        ("evaluate check sh", ["shop"]),
        ("evaluate check shop/", ["shop/spec.toml"]),
        ("evaluate replay con", ["converted"]),
        ("evaluate simulate vernade2017-h", ["vernade2017-high"]),
        ("evaluate simulate criteo", []),
        ("evaluate simulate mi", ["mine.toml"]),
        ("evaluate datasets init ", ["delays.csv", "sales.parquet"]),
        ("evaluate delays --file de", ["delays.csv"]),
        ("evaluate compare --sampl", ["--sampler", "--sampling-rate"]),
        ("evaluate compare --help", ["--help", "--help-all"]),
        ("evaluate check -d criteo_twin --path shop/", ["shop/log.csv.gz"]),
    ],
)
def test_names_are_completed_at_once(tmp_path: Path, words: str, offered: list[str]) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "spec.toml").write_text(SPEC)
    (tmp_path / "shop" / "log.csv.gz").write_bytes(gzip.compress(b"time,user,ad\n1,a,b\n"))
    (tmp_path / "mine.toml").touch()
    (tmp_path / "sales.parquet").touch()
    (tmp_path / "converted").mkdir()
    (tmp_path / "converted" / "meta.json").touch()
    (tmp_path / "delays.csv").write_text('arm,"delay_s"\na,3\n')
    assert completed(words, cwd=tmp_path) == offered
