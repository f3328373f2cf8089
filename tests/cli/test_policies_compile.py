"""``evaluate policies compile`` fills the cache that replays take their loops from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_second_time_there_is_nothing_to_do(tmp_path: Path) -> None:
    said = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-m", "evaluator", "policies", "compile", "fixed"],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        said.append(run.stdout)
    assert said == ["Compiled for fixed.\n", "All is compiled already.\n"]


def test_a_name_that_is_none_is_refused() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "evaluator", "policies", "compile", "fixd"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "fixed" in run.stderr
