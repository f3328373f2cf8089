"""What is compiled is announced by the policy that needs it, once; what the cache holds is not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.engine.kernels.compiling import announced, compiled_uncached, compiling_for, inlinable

Floats = npt.NDArray[np.float64]


@inlinable
def _doubled(x: float) -> float:
    return 2.0 * x


def _total(values: Floats) -> float:
    total = 0.0
    for i in range(values.shape[0]):
        total += _doubled(values[i])
    return total


def test_a_loop_is_announced_and_what_it_is_made_of_is_not() -> None:
    said: list[str] = []
    loop = compiled_uncached(_total)
    with announced(said.append), compiling_for("mine"):
        loop(np.ones(3))
        loop(np.ones(3))
    assert said == ["Compiling mine", ""]
    loop(np.ones(3, np.float32))
    assert len(said) == 2  # nobody listens


def test_an_error_ends_the_announcement() -> None:
    said: list[str] = []
    loop = compiled_uncached(_total)
    with announced(said.append), pytest.raises(Exception, match="nopython"):
        loop("no array")
    assert said == ["Compiling the replay", ""]


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
def test_a_first_run_on_a_terminal_says_what_it_waits_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evaluator", "replay", "--policy", "fixed", "--limit", "500"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "TERM": "xterm", "COLUMNS": "120"}
    said = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            said.append(_everything(ours))
            assert process.wait() == 0
    assert b"Compiling fixed, once on this machine" in said[0]
    assert b"Compiling" not in said[1]


def _everything(terminal: int) -> bytes:
    parts = []
    try:
        while part := os.read(terminal, 65_536):
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    return b"".join(parts)
