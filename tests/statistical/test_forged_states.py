"""States that no replay leaves, in files that are whole: whatever they hold, the process that loads them goes on.

The first and the last number of every array of every policy's state are set to extremes in turn. A loaded policy lives
in Python, where an index out of range is an exception: it may choose nonsense, or say that it cannot go on, and neither
crashes nor hangs.
"""

from __future__ import annotations

import contextlib
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import load_policy
from evaluator.errors import EvaluatorError, PolicyError
from tests.policies.variants import PLAYED
from tests.replays.learned.policy_files import live, lived, read, write

_EXTREMES: dict[str, tuple[Any, ...]] = {
    "i": (-(2**63), -(10**6), -2, -1, 0, 3, 7, 10**6, 2**31, 2**63 - 1),
    "f": (-np.inf, -1e300, -1.0, 0.0, 1e-300, 1e300, np.inf),
    "b": (False, True),
}
_SECONDS = 2


class _NoAnswer(BaseException):
    pass


def _interrupt(signum: int, frame: object) -> None:
    raise _NoAnswer


def forged(arrays: dict[str, np.ndarray]) -> Any:
    """Yield the arrays with one entry of the state changed, the first or the last of each."""
    for name, array in arrays.items():
        if not name.startswith("state.") or array.size == 0:
            continue
        kinds = _EXTREMES[array.dtype.kind]
        limits = np.iinfo(array.dtype) if array.dtype.kind == "i" else None
        for at in sorted({0, array.size - 1}):
            for value in kinds:
                changed = array.copy()
                changed.reshape(-1)[at] = value if limits is None else min(max(value, limits.min), limits.max)
                yield f"{name}[{at}] = {value}", {**arrays, name: changed}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
@pytest.mark.parametrize("spec", PLAYED)
def test_no_state_ends_the_process(spec: str, tmp_path: Path) -> None:
    lived(spec).save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    before = signal.signal(signal.SIGALRM, _interrupt)
    ended: dict[str, list[str]] = {"refused": [], "no answer": [], "went on": []}
    try:
        for what, changed in forged(arrays):
            write(tmp_path / "forged.npz", about, changed)
            signal.setitimer(signal.ITIMER_REAL, _SECONDS)
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    learned = load_policy(tmp_path / "forged.npz")
                    live(learned, 12, np.random.default_rng(4))
                    with contextlib.suppress(PolicyError):  # nothing has an estimate
                        learned.choose(np.ones((4, 3)) if learned.setting.rows else None, greedy=True)
                ended["went on"].append(what)
            except EvaluatorError:
                ended["refused"].append(what)
            except _NoAnswer:
                ended["no answer"].append(what)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended["went on"]
    assert not ended["no answer"]
