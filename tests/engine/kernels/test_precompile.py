"""Loops compiled ahead, in other processes too, are those that the calls would have compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.engine.kernels import compiling
from evaluator.engine.kernels.compiling import compiled_uncached

ROOT = Path(__file__).parents[3]
# With nothing but help: this process takes no job, and then finds all of them in the cache.
HELPED = """
import numpy as np
from evaluator.engine.kernels import compiling
from evaluator.replays.values.rewards import count_ranks

def calls():
    for action in (np.int32, np.int64):
        yield compiling.LoopCall("ranks", count_ranks, (np.zeros(3, action), *np.zeros((3, 3), np.int64)))

compiling._processors = lambda: 2
take = compiling._next_job
def only_for_helpers(left):
    import threading
    return None if threading.current_thread() is threading.main_thread() else take(left)
compiling._next_job = only_for_helpers
assert compiling.compile_ahead(calls()) == ["ranks", "ranks"]
assert not count_ranks.dispatcher.overloads
assert all(compiling._missing(call) is None for call in calls())
assert compiling.compile_ahead(calls()) == []
for call in calls():
    count_ranks(*call.arguments)
assert sum(count_ranks.dispatcher.stats.cache_hits.values()) == 2
"""


def test_helpers_compile_into_the_cache(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", HELPED], cwd=ROOT, env=environment, check=True, timeout=600)


def test_what_no_cache_holds_is_left_to_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_processors", lambda: 1)
    loop = compiled_uncached(lambda x: x)
    assert (
        compiling.compile_ahead([compiling.LoopCall("mine", loop, (1,)), compiling.LoopCall("mine", loop, (1.0,))])
        == []
    )
    assert compiling.compile_ahead([compiling.LoopCall("interpreted", abs, (1,))], least=1) == []
    assert not loop.dispatcher.overloads
