"""What a comparison may say where nobody knows how much a display can earn at most.

See `evaluator.replays.words.unknown_maximum`.
"""

from __future__ import annotations

from dataclasses import replace

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.ranking import Ranking
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.words.unknown_maximum import with_honest_kind


def honest_difference(plan: ReplayPlan, found: Difference) -> Difference:
    """Return a difference whose interval claims no more than holds."""
    if plan.bounded or found.realised is None:
        return found
    return replace(found, realised=with_honest_kind(found.realised))


def honest_ranking(plan: ReplayPlan, ranking: Ranking) -> Ranking:
    """Return a ranking whose conclusion claims no more than holds."""
    return replace(ranking, rests_on=plan.rewards.ends_seen) if ranking.target == "realised" else ranking
