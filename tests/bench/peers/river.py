"""river's `evaluate_offline` with its LinUCB, which takes no batches.

`LinUCBDisjoint` reads one context for all actions. Here it is given each action's own vector and one regression for
all of them, as this log asks: the same calls of river's regression a display, one for each action.
"""

from __future__ import annotations

from typing import Any

from tests.bench.peers.peer import Displays, Outcome, Peer, Replay, Way


def _replay(displays: Displays) -> Replay:
    from river import bandit

    class SharedLinUCB(bandit.LinUCBDisjoint):
        def _pull(self, arm_ids: list[int], context: list[dict[int, float]]) -> int:
            model = self._bayes_lin_regs[0]
            scores = [model.predict_one(context[arm], with_dist=True) for arm in arm_ids]
            return max(arm_ids, key=[score.mu + score.sigma for score in scores].__getitem__)

        def update(self, arm_id: int, context: list[dict[int, float]], *reward: Any, **more: Any) -> None:
            bandit.base.ContextualPolicy.update(self, arm_id, None, *reward, **more)
            self._bayes_lin_regs[0].learn_one(context[arm_id], reward[0])

    arms = list(range(displays.vectors.shape[1]))
    history = [
        (arms, [dict(enumerate(vector)) for vector in vectors], action, reward)
        for vectors, action, reward in zip(*(column.tolist() for column in displays), strict=True)
    ]

    def replay() -> Outcome:
        total, accepted = bandit.evaluate_offline(SharedLinUCB(), iter(history))
        return Outcome(accepted, total.get() / accepted)

    return replay


PEER = Peer("river", (Way("evaluate_offline, LinUCB", _replay),))
