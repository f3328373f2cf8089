"""obp's LinUCB (Open Bandit Pipeline) in a replay loop of ours: its `run_bandit_replay` stops, calling a module.

It reads one context for all actions, so it is given the first action's vector: the work is that of the other peers, but
what it learns says little about this log.
"""

from __future__ import annotations

import numpy as np

from tests.bench.peers.peer import Displays, Outcome, Peer, Replay, Way


def _replay(displays: Displays) -> Replay:
    try:
        from obp.policy import LinUCB
    except ImportError as error:
        raise ImportError(f"{error}; obp 0.5.7 asks for Python below 3.11") from error

    n, k, d = displays.vectors.shape
    context = np.ascontiguousarray(displays.vectors[:, :1])

    def replay() -> Outcome:
        policy = LinUCB(dim=d, n_actions=k, epsilon=1.0)
        accepted = []
        for i in range(n):
            if policy.select_action(context[i])[0] == displays.action[i]:
                policy.update_params(displays.action[i], displays.reward[i], context[i])
                accepted.append(i)
        return Outcome(len(accepted), float(displays.reward[accepted].mean()))

    return replay


PEER = Peer("obp", (Way("LinUCB, disjoint", _replay),))
