"""What small replays found when they were recorded: ``python -m tests.golden.replays`` writes ``replays.json``.

The record is to be the same on every version of Python and of the libraries, and on every machine.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from evaluator import replay
from evaluator.log import Log
from tests.logs import bernoulli_log, linear_log

RECORD = Path(__file__).with_name("replays.json")
ARMS = ("ucb1", "klucb", "thompson", "delayed-klucb", "qpm-d:base=ucb1")
LINEAR = ("linucb", "lints", "otflinucb", "otflints", "waitlinucb")


def logs() -> tuple[Log, Log]:
    """Return a log without contexts and one with action vectors."""
    return (
        bernoulli_log(3000, [0.5, 0.3, 0.2], mean_delay=40.0, seed=1),
        linear_log(3000, n_actions=3, dimension=4, mean_delay=40.0, seed=1),
    )


def found() -> dict[str, dict[str, Any]]:
    """Return, for each policy, a digest of what it did in every round and what that was worth."""
    arms, linear = logs()
    out = {}
    for log, policies in ((arms, ARMS), (linear, LINEAR)):
        for policy in policies:
            result = replay(log, policy, window=60, seed=3)
            rounds = result.trajectory.select(["display_id", "action", "reward"])
            digest = hashlib.sha256()
            for column in rounds.columns:
                digest.update(column.to_numpy().astype("<f8").tobytes())
            value = result.value
            out[policy] = {
                "rounds": rounds.num_rows,
                "what_it_did": digest.hexdigest(),
                "value": [value.estimate, value.low, value.high],
            }
    return out


if __name__ == "__main__":
    record = {"python": platform.python_version(), "replays": found()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
