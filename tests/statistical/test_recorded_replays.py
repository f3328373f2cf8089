"""Replays are those on record, whatever the versions and the machine: every choice and reward, and their values."""

from __future__ import annotations

import json

import pytest

from tests.engine.kernels.test_internals import untested
from tests.frozen import test_frozen
from tests.frozen.commands import LATER
from tests.frozen.running import Runs
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


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("frozen").resolve())


@pytest.mark.parametrize("name", LATER)
def test_a_command_says_what_its_snapshot_says(name: str, commands: Runs) -> None:
    test_frozen.test_a_command_says_what_its_snapshot_says(name, commands)
