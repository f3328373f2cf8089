"""Thousands of flipped bits, cuts and overwritten bytes: a policy file says what it said, or is refused in one line."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from evaluator import load_policy
from evaluator.errors import EvaluatorError
from evaluator.policies import names
from evaluator.replays.learned.file import state_arrays
from tests.replays.learned.policy_files import lived

_DAMAGES = 120


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """Return the file with one damage."""
    at = int(rng.integers(len(whole)))
    kind = rng.integers(4)
    if kind == 0:
        return whole[:at]
    if kind == 1:
        return whole[:at] + rng.bytes(int(rng.integers(1, 40))) + whole[at:]
    length = int(rng.integers(1, 9)) if kind == 2 else 1
    said = rng.bytes(length) if kind == 2 else bytes([whole[at] ^ (1 << int(rng.integers(8)))])
    return whole[:at] + said + whole[at + length :]


@pytest.mark.parametrize("policy", [name for name in names() if name != "logging"])
def test_no_damage_goes_unseen_or_costs_memory(policy: str, tmp_path: Path) -> None:
    path = tmp_path / "learned.npz"
    learned = lived(policy)
    learned.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(len(policy))
    load_policy(path)
    for _ in range(_DAMAGES):
        path.write_bytes(damaged(whole, rng))
        tracemalloc.start()
        try:
            loaded = load_policy(path)
        except EvaluatorError as error:
            said = str(error)
        else:
            said = ""
            assert (loaded.policy, loaded.setting, loaded.labels) == (learned.policy, learned.setting, learned.labels)
            assert loaded.rng.bit_generator.state == learned.rng.bit_generator.state
            for (name, array), (_, other) in zip(state_arrays(loaded.state), state_arrays(learned.state), strict=True):
                assert np.array_equal(array, other), name
        finally:
            taken = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert "\n" not in said
        assert taken < 20 * len(whole) + 1_000_000
