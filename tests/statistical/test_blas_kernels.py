"""Processors multiply matrices in orders of their own: numbers differ by at most 5e-9 between their kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

# Kernels of OpenBLAS: without AVX, with AVX2, with AVX-512.
KERNELS = ("Nehalem", "Haswell", "SkylakeX")
AGREE = 5e-9
SCRIPT = """
import hashlib, json
import numpy as np
from evaluator import replay
from tests.logs import linear_log

square = np.random.default_rng(0).standard_normal((200, 200))
log = linear_log(4000, n_actions=4, dimension=8, mean_delay=40.0, seed=1)
numbers = {}
for policy in ("linucb", "lints", "otflinucb"):
    result = replay(log, policy, window=60, seed=3, final="last:20%", doubly_robust=True)
    told = json.loads(json.dumps(result.to_dict(), default=str))
    told.pop("plan")
    numbers[policy] = told
print(json.dumps([hashlib.sha256((square @ square).tobytes()).hexdigest(), numbers]))
"""


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, inner in pairs for k, v in leaves(inner, f"{path}.{key}").items()}
    return {path: value}


@pytest.fixture(scope="module")
def runs() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for kernel in KERNELS:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"OPENBLAS_CORETYPE": kernel},
            capture_output=True,
            text=True,
            check=True,
        )
        digest, numbers = json.loads(done.stdout)
        found.append((digest, leaves(numbers)))
    return found


def test_the_kernels_differ(runs: list[tuple[str, dict[str, Any]]]) -> None:
    if len({digest for digest, _ in runs}) == 1:
        pytest.skip("NumPy's BLAS here has one kernel, or the processor runs only one")


def test_every_number_of_a_contextual_replay_agrees(runs: list[tuple[str, dict[str, Any]]]) -> None:
    _, first = runs[0]
    compared = 0
    for _, other in runs[1:]:
        assert other.keys() == first.keys()
        for path, value in first.items():
            if isinstance(value, float):
                np.testing.assert_allclose(other[path], value, rtol=AGREE, atol=AGREE, err_msg=path)
                compared += 1
            elif not isinstance(value, str):
                assert other[path] == value, path
    assert compared > 100
