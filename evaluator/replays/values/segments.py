"""What a replay was worth in the groups of a column: the rounds of a group are those of its accepted displays.

The policy learned from the displays of all groups; nothing is replayed anew. The uplift's baseline is the mean reward
of the group's logged displays. Each column is a split of its own: groups of two columns are not crossed, for their
number would grow as a product, and few of them would have rounds enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evaluator.estimates.combine import difference
from evaluator.estimates.confidence import ANYTIME, Interval
from evaluator.estimates.multiplicity import holm
from evaluator.estimates.paired import RewardSums, sums_of
from evaluator.estimates.repeated import REPEATED, mean_sums
from evaluator.estimates.segments import p_of_no_difference, sums_interval
from evaluator.estimates.sparse import SparseRewards
from evaluator.log.segments import Split
from evaluator.replays.loop.engine import Replay
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.rewards import RewardBounds, logged_rewards, observed_rewards, reward_bounds
from evaluator.replays.values.segment_values import GroupValue, SegmentValues
from evaluator.replays.words.unknown_maximum import with_honest_kind

ASSUMED = (
    "groups ({columns}): a group's rounds are those of its accepted displays; the policy learned from the displays of "
    "all groups, and the uplift is over the mean of the group's logged displays. Intervals hold for all groups at once"
)


def with_segments(plan: ReplayPlan, result: ReplayResult, replays: Sequence[Replay]) -> ReplayResult:
    """Return a result with the values of its groups; O(rounds + displays) a column.

    Parameters
    ----------
    plan, result, replays
        Plan, its result, and its replays, one a repeat.
    """
    splits = plan.splits
    if not splits:
        return result
    rounds = min(len(replay.displays) for replay in replays)
    logged = logged_rewards(plan, rounds=rounds)
    observed = plan.options.reward == "observed"
    shown = [replay.displays for replay in replays]
    rewards = [observed_rewards(plan, one) if observed else logged.taken(one) for one in shown]
    total = sum(len(split.labels) for split in splits)
    found = [_values(plan, split, shown, rewards, logged, total) for split in splits]
    alpha = 1.0 - plan.options.level
    tested = [i for i, one in enumerate(found) if one.tested > 1]
    adjusted = dict(zip(tested, holm([found[i].p for i in tested]).tolist(), strict=True))
    segments = tuple(
        replace(one, p_adjusted=adjusted[i], differ=adjusted[i] <= alpha) if i in adjusted else one
        for i, one in enumerate(found)
    )
    said = ASSUMED.format(columns=", ".join(split.column for split in splits))
    return replace(result, segments=segments, assumptions=(*result.assumptions, said))


def _values(
    plan: ReplayPlan,
    split: Split,
    shown: Sequence[npt.NDArray[np.int64]],
    rewards: Sequence[npt.NDArray[np.float64]],
    logged: SparseRewards,
    total: int,
) -> SegmentValues:
    bounds, level = reward_bounds(plan), plan.options.level
    alpha = (1.0 - level) / total
    of_rounds, different = group_sums(split, shown, rewards, bounds)
    of_log = logged_sums(split, logged, bounds)
    kind = f"{ANYTIME if len(shown) == 1 else REPEATED}; all {total:,} groups at once"

    def interval(of: RewardSums, share: float, n: int) -> Interval:
        made = sums_interval(of, **bounds._asdict(), alpha=share, level=level, n=n, kind=kind)
        return made if plan.bounded else with_honest_kind(made)

    groups = []
    for label, of, n, base in zip(split.labels, of_rounds, different, of_log, strict=True):
        size = int(base.n)
        uplift = difference(interval(of, alpha / 2, n), interval(base, alpha / 2, size))
        made = replace(uplift, level=level, n=n)
        groups.append(GroupValue(label, size, interval(of, alpha, n), made, interval(base, alpha, size)))
    k = split.named
    tested = sum(of.n > 0 and base.n > 0 for of, base in zip(of_rounds[:k], of_log[:k], strict=True))
    p = p_of_no_difference(of_rounds[:k], of_log[:k], tuned_at=1.0 - level)
    return SegmentValues(split.column, tuple(groups), split.pooled, int(tested), p, p, False)


def group_sums(
    split: Split,
    shown: Sequence[npt.NDArray[np.int64]],
    rewards: Sequence[npt.NDArray[np.float64]],
    bounds: RewardBounds,
) -> tuple[list[RewardSums], list[int]]:
    """Return the sums of each group's rounds, mean over repeats, and how many different displays these showed.

    Parameters
    ----------
    split
        Groups of the log's displays.
    shown, rewards
        Displays of each repeat's rounds, and what they earned, shape (T_r,) each.
    bounds
        Smallest and largest possible reward of a round.
    """
    sums, different = [], []
    codes = [split.code[one] for one in shown]
    for g in range(len(split.labels)):
        sums.append(
            mean_sums([sums_of(x[code == g], **bounds._asdict()) for x, code in zip(rewards, codes, strict=True)])
        )
        own = [one[code == g] for one, code in zip(shown, codes, strict=True)]
        different.append(len(own[0]) if len(own) == 1 else len(np.unique(np.concatenate(own))))
    return sums, different


def logged_sums(split: Split, logged: SparseRewards, bounds: RewardBounds) -> list[RewardSums]:
    """Return the sums of each group's logged displays, of the first `logged.n`."""
    code = split.code[: logged.n]
    return [sums_of(logged.taken(np.flatnonzero(code == g)), **bounds._asdict()) for g in range(len(split.labels))]
