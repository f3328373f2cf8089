"""What the policy of a plan has learned, with what it takes to go on elsewhere."""

from __future__ import annotations

import numpy as np

from evaluator.log.schema import to_numpy
from evaluator.replays.learned.learned_from import LearnedFrom
from evaluator.replays.learned.policy import LearnedPolicy, learned_policy
from evaluator.replays.loop.engine import Replay
from evaluator.replays.plan import ReplayPlan


def learned_by(plan: ReplayPlan, replay: Replay) -> LearnedPolicy:
    """Return what a replay of a plan has learned. The two share their state."""
    log, encoder = plan.log, plan.log.meta.encoder
    fits = plan.rounds.vectors == "context" and encoder is not None and encoder.dimensions == plan.setting.dimension
    return learned_policy(
        plan.policy,
        plan.setting,
        tuple(log.labels),
        replay,
        encoder=encoder if fits else None,
        learned_from=displays_of(plan, replay.read),
    )


def displays_of(plan: ReplayPlan, read: int) -> LearnedFrom | None:
    """Return which displays a replay goes through that reads so many; None where it reads none."""
    if not read:
        return None
    log, meta = plan.log, plan.log.meta
    first, last = to_numpy(log.take(np.array([0, read - 1]), ["time"])["time"]).tolist()
    return LearnedFrom(
        log=meta.name,
        fingerprint=meta.fingerprint,
        displays=plan.before + len(log),
        first_display=plan.before,
        end_display=plan.before + read,
        first_time=first,
        last_time=last,
        window=plan.window.text,
    )
