"""What the policy of a plan has learned, with what it takes to go on elsewhere."""

from __future__ import annotations

from evaluator.engine.log_replay import Replay
from evaluator.replays.learned.policy import LearnedPolicy, learned_policy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.references import References


def learned_by(plan: ReplayPlan, replay: Replay, references: References) -> LearnedPolicy:
    """Return what a replay of a plan has learned. The two share their state."""
    log, start = plan.log, None if plan.start is None else plan.start.learned
    encoder = log.meta.encoder or (None if start is None else start.encoder)
    fits = plan.rounds.vectors == "context" and encoder is not None and encoder.dimensions == plan.setting.dimension
    source = references.source(plan, replay.read)
    return learned_policy(
        plan.policy,
        plan.setting,
        tuple(log.labels),
        replay,
        before=0 if start is None else start.rounds,
        encoder=encoder if fits else None,
        learned_from=(*(() if start is None else start.learned_from), *(() if source is None else (source,))),
    )
