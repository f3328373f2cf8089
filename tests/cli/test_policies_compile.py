"""``evaluate policies compile`` fills the cache that replays take their loops from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from evaluator.engine.kernels.compiling import LoopCall
from evaluator.policies.registry import POLICIES
from evaluator.replays import run as replaying
from tests.cli.runs import evaluate


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
    run = evaluate("policies", "compile", "fixd")
    assert run.code == 2
    assert "fixed" in run.err


def test_all_policies_are_compiled_but_what_the_log_has_no_columns_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(calls: Iterable[LoopCall], *, least: int) -> list[str]:
        return [call.name for call in calls]

    monkeypatch.setattr(replaying, "compile_ahead", named)
    run = evaluate("policies", "compile")
    assert run.out == f"Compiled for {', '.join(name for name in POLICIES if name not in ('columns', 'target'))}.\n"
    assert "Left out: columns needs the column 'target'" in run.err
