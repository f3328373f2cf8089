"""mabwiser's LinUCB in a replay loop of ours: it has none for a log of another policy.

One model for all actions is one arm, whose bounds at the K vectors of a display come from one call: several times
faster than one arm an action. A call takes any number of displays. Those after the first match are thrown away, which
changes no result; or they are kept, and the model learns from all matches of the call at its end, a different policy.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.bench.peers.peer import Displays, Outcome, Peer, Replay, Way


def _replay(displays: Displays, *, ahead: int, late: bool = False) -> Replay:
    from mabwiser.mab import MAB, LearningPolicy

    vectors, action, reward = displays
    n, k, d = vectors.shape

    def replay() -> Outcome:
        mab = MAB([0], LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
        mab.fit([0], [0.0], np.zeros((1, d)))  # before any data; it refuses to predict without
        accepted: list[int] = []
        at = 0
        while at < n:
            end = min(at + ahead, n)
            bounds = np.array([bound[0] for bound in mab.predict_expectations(vectors[at:end].reshape(-1, d))])
            matches = at + np.flatnonzero(bounds.reshape(-1, k).argmax(axis=1) == action[at:end])
            if not late:
                matches = matches[:1]
            if len(matches):
                mab.partial_fit(np.zeros(len(matches), int), reward[matches], vectors[matches, action[matches]])
                accepted.extend(matches)
            at = matches[0] + 1 if len(matches) and not late else end
        return Outcome(len(accepted), float(reward[accepted].mean()))

    return replay


PEER = Peer(
    "mabwiser",
    (
        Way("LinUCB, 1 display a call", partial(_replay, ahead=1)),
        Way("LinUCB, 8 displays a call", partial(_replay, ahead=8)),
        Way("LinUCB, 1,000 a call, late", partial(_replay, ahead=1_000, late=True)),
    ),
)
