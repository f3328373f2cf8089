"""Every bundled scenario replays with every policy that accepts it, whatever its delays: memory follows the rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator import load, replay
from evaluator.errors import ParameterError
from evaluator.policies.registry import POLICIES, resolve

FOLDER = Path(__file__).resolve().parents[2] / "datasets" / "synthetic"
SCENARIOS = ["synthetic", *sorted(file.stem for file in FOLDER.glob("*.toml") if file.stem != "spec")]


def test_all_scenarios_are_here() -> None:
    assert len(SCENARIOS) > 30
    assert "manegueu2020-figure3-02" in SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_policy_replays(scenario: str) -> None:
    log = load(scenario, limit=1_000)
    refused = {}
    for policy in POLICIES:
        try:
            found = replay(log, policy, window=500 if policy == "waitlinucb" else None)
        except ParameterError as error:
            refused[policy] = str(error)
            continue
        assert found.rounds > 0, policy
        assert found.generated == found.delivered + found.pending + found.expired, policy
    contextual = {name for name in POLICIES if resolve(name).contextual}
    has_contexts = "action_set" in log.schema.names or "context" in log.schema.names
    # The scenarios' logs hold no columns of probabilities.
    expected = {"columns", "target"} if has_contexts else contextual
    if "eligible" in log.schema.names:
        expected |= {name for name in POLICIES if name != "logging" and not resolve(name).among}
    assert set(refused) == expected
