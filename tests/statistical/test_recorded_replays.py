"""Replays are those on record, whatever the versions and the machine: every choice and reward, and their values."""

from __future__ import annotations

import json

import pytest

from tests.engine.kernels.test_internals import untested
from tests.golden.replays import RECORD, found


def test_replays_are_those_on_record() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))["replays"]
    now = found()
    assert now.keys() == record.keys()
    for policy, was in record.items():
        value = now[policy].pop("value")
        # Logarithms and roots differ in their last bits between mathematical libraries.
        assert value == pytest.approx(was.pop("value"), rel=1e-12), policy
        assert now[policy] == was, policy


def test_an_untested_numba_finds_the_same() -> None:
    untested(arms=["ucb1"], linear=["linucb"])
