"""coba's rejection sampler with its LinUCB (Chu et al. 2011, one model for all actions). It takes no batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.peers.peer import Displays, Outcome, Peer, Replay, Way


def _replay(displays: Displays) -> Replay:
    from coba.evaluators import RejectionCB
    from coba.learners import LinUCBLearner
    from coba.primitives import Environment, LoggedInteraction

    interactions = []
    for vectors, action, reward in zip(*(column.tolist() for column in displays), strict=True):
        actions = [tuple(vector) for vector in vectors]
        interactions.append(LoggedInteraction(None, actions[action], reward, 1 / len(actions), actions=actions))

    class Logged(Environment):
        def read(self) -> Iterator[Any]:
            return iter(interactions)

    def replay() -> Outcome:
        # cpct=0: its unbiased setting.
        rows = list(RejectionCB(cpct=0).evaluate(Logged(), LinUCBLearner(alpha=1.0, features=["a"])))
        return Outcome(len(rows), sum(row["reward"] for row in rows) / len(rows))

    return replay


PEER = Peer("coba", (Way("RejectionCB, LinUCBLearner", _replay),))
