"""The same rows replay alike, to the bit, in whatever format they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator import replay
from evaluator.log import Log
from tests.reading.test_formats_agree import in_all_formats


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Log]:
    return in_all_formats(tmp_path_factory, 600)


def numbers(log: Log, policy: str) -> tuple[Any, Any]:
    found = replay(log, policy, window="2d", seed=4)
    told = {name: value for name, value in found.to_dict().items() if name != "plan"}
    return told, found.trajectory


@pytest.mark.parametrize("policy", ["delayed-klucb", "otflinucb"])
def test_they_replay_alike_to_the_bit(logs: dict[str, Log], policy: str) -> None:
    first, trajectory = numbers(logs["log.csv"], policy)
    for name, log in logs.items():
        found, rounds = numbers(log, policy)
        assert found == first, name
        assert rounds.equals(trajectory), name
