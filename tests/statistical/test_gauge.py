"""The gauge measures what each tree runs, and says which of a commit's trees cannot run an item."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.gauge import HERE, ITEMS, FailedError, Measured, Tree, Used, measure

SLEEPY = "import sys, time; end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def tree(folder: Path, code: str) -> Tree:
    """Return sources whose command runs this code."""
    package = folder / "sources" / "evaluator"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(code)
    return Tree(folder / "sources", folder / "written")


def test_a_ratio_is_new_over_old_of_processor_time_and_of_memory(tmp_path: Path) -> None:
    old = tree(tmp_path / "old", SLEEPY.format(seconds=1.0))
    new = tree(tmp_path / "new", "held = b'x' * 400_000_000\n" + SLEEPY.format(seconds=2.0))
    found = measure("start", "small", 2, tmp_path, old, new)
    assert isinstance(found, Measured)
    assert 1.5 < found.cells(0)[-1] < 2.6
    # Those of the old tree are never below what this process holds, which starts them: the gauge itself holds nothing.
    assert all(used.megabytes > 400_000_000 / 2**20 for used in found.new)
    assert found.cells(1)[-1] >= 1


def test_what_the_commit_lacks_is_said_and_no_crash(tmp_path: Path) -> None:
    fine = "pass"
    lacking = "import sys; print('error: No such option: --guardrail', file=sys.stderr); sys.exit(2)"
    broken = "raise ValueError('no such log')"
    good = tree(tmp_path / "good", fine)
    found = [
        measure("replay-sets", "small", 1, tmp_path, tree(tmp_path / name, code), good)
        for name, code in {"lacking": lacking, "broken": broken}.items()
    ]
    assert found == [
        "not in the commit: error: No such option: --guardrail", "fails in the commit: ValueError: no such log",
    ]  # fmt: skip
    with pytest.raises(FailedError, match="no such log"):
        measure("replay-sets", "small", 1, tmp_path, good, tree(tmp_path / "worse", broken))


def test_a_failed_check_is_a_result(tmp_path: Path) -> None:
    assert isinstance(tree(tmp_path, "raise SystemExit(4)").run(["check"]), Used)


def test_items_read_what_other_items_write() -> None:
    for item in ITEMS.values():
        assert ("{parquet}" in item.small + item.full) <= ("parquet" in item.reads)
        assert ("{out_of_out}" in item.small) <= ("out" in item.reads)


@pytest.mark.skipif(not (HERE / ".git").exists(), reason="there is no commit to compare with")
def test_it_prints_a_table_against_a_commit() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gauge", "--against", "HEAD", "--size", "small", "--items", "start,help",
         "--rounds", "1"], cwd=HERE, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("old: ")
    assert [line.split()[0] for line in lines[-2:]] == ["start", "help"]
