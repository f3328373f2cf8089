"""Without Numba's internals loops find the same: the fence has a gate, and what is used instead of them works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from evaluator.engine.kernels import compiling
from evaluator.engine.kernels.argmax import NanScoreError, check_score
from evaluator.engine.kernels.compiling import compiled_uncached, inlinable
from tests.golden.replays import RECORD

ROOT = Path(__file__).parents[3]
# Numba says that it is of a version that nobody has tested.
UNTESTED = """
import json, sys, numba
numba.__version__ = "0.99.0"
from evaluator.engine.kernels import compiling, instructions
from evaluator import replay
from tests.golden import replays
assert not compiling.tested()
kind = numba.float64[:]
assert instructions._type_borrowed(None)(kind) is kind
replays.ARMS, replays.LINEAR = json.loads(sys.argv[1])
print(json.dumps(replays.found()))
"""


def untested(*, arms: Sequence[str] = (), linear: Sequence[str] = ()) -> None:
    """Replay with a Numba that says so, as a proof does: its loops are compiled in a process of their own."""
    words = [sys.executable, "-c", UNTESTED, json.dumps([arms, linear])]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    record = json.loads(RECORD.read_text(encoding="utf-8"))["replays"]
    assert {policy: did["what_it_did"] for policy, did in found.items()} == {
        policy: record[policy]["what_it_did"] for policy in (*arms, *linear)
    }


def test_no_later_version_is_installed_than_was_tested() -> None:
    bound = re.search(r'"numba>=[\d.]+,<(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert bound is not None
    assert (int(bound[1]), int(bound[2])) == (compiling.LAST_TESTED[0], compiling.LAST_TESTED[1] + 1)


@inlinable
def _squared(x: float) -> float:
    return x * x


@compiled_uncached
def _sum_of_squares(n: int) -> float:
    total = 0.0
    for i in range(n):
        total += _squared(float(i))
    return total


def test_a_piece_leaves_no_call_in_its_loop() -> None:
    assert _sum_of_squares(4) == 14.0
    (code,) = _sum_of_squares.dispatcher.inspect_llvm().values()
    assert not re.search(r"call .*_squared", code)
    assert _squared(3.0) == 9.0


@compiled_uncached
def _check(score: float, action: int) -> None:
    check_score(score, action)


def test_a_piece_raises_an_error_that_holds_a_number() -> None:
    # Not from the cache, which gives a loop all that its pieces need.
    for action in (3, 4):
        with pytest.raises(NanScoreError) as raised:
            _check(np.nan, action)
        assert raised.value.args == (action,)
