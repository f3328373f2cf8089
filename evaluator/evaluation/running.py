"""The value of a policy while it learns, from every display that a rejection replay reads: DR under non-stationarity.

A replay asks the policy at each display i for its choice c_i, from what it has learned so far, and accepts the display
if c_i is the logged action and a draw keeps it. Plain replay averages the rewards of the accepted displays and throws
the others away. Here every display counts, by a model q^ of the rewards and a weight for the model's error:

    (1/n) sum_i [ q^(x_i, c_i) + 1{c_i = a_i} / p_i (Y_i - q^(x_i, a_i)) ].

*What it estimates.* The mean over the n displays read of E[r(x_i, c_i) | the displays before i]: the value of the
policy of each round, once for each display that the round waited. As every display is accepted with the same
probability c whatever the context and the choice, rounds wait alike: in expectation this is the value of the rounds.

*Why it is unbiased.* Given the displays before i and x_i, the choice c_i (made without a look at a_i and Y_i) and q^
are fixed, a_i is drawn with the logged propensities, and the term's mean is r(x_i, c_i), however wrong the model. For
this q^ must not depend on display i or later ones: each group of displays is predicted by a model of the earlier groups
(`evaluator.evaluation.reward_model`). A model cross-fitted on later displays too would know rewards that the policy's
later choices depend on, and the terms would no longer be those of a martingale.

*Interval.* The terms minus their conditional means are martingale differences, so the variance of the estimate is the
sum of their conditional variances over n², and the interval is normal by the martingale central limit theorem. The
sample variance of the terms over n stands in for it; it also holds the spread of the conditional means, so it is a
little too large while the policy improves. For several repeats the terms of a display are averaged first.

Where displays hang together, the variance is that of the terms' sums over clusters, and what the interval is for is
what the choices that were made are worth to new clusters.

References
----------
Dudik, Erhan, Langford, Li. Sample-efficient nonstationary policy evaluation for contextual bandits. UAI 2012.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluator.estimates.weighted import WeightedValue, doubly_robust
from evaluator.evaluation.plan import Plan
from evaluator.evaluation.reward_model import fit_reward_model, model_vectors
from evaluator.evaluation.rewards import eventual_rewards
from evaluator.replayer.engine import Replay
from evaluator.rounds.stream import pieces


def running_value(plan: Plan, replays: Sequence[Replay]) -> WeightedValue | None:
    """Return the doubly robust value of a plan's rounds, given its repeats; None where choices were not recorded.

    Costs two scans of the displays read, the first to fit the model.
    """
    recorded = [replay.choices for replay in replays if replay.choices is not None]
    if not recorded:
        return None
    n = min(map(len, recorded))
    rewards = eventual_rewards(plan, used=plan.rounds.used)
    model = fit_reward_model(plan.log, rewards, to="earlier")
    choices = np.column_stack([chosen[:n] for chosen in recorded])
    target, propensity, q_shown, q_chosen = np.empty((4, n))
    columns = list(dict.fromkeys(["action", *plan.propensities.reads]))
    name = model_vectors(plan.log)
    for piece in pieces(plan.log, columns, [] if name is None else [name]):
        size = min(len(piece.action), n - piece.first)
        if size <= 0:
            break
        at, rows = slice(piece.first, piece.first + size), np.arange(size)
        shown, chosen = piece.action[:size], choices[at]
        q = model.values(piece.first, size, piece.part(name, slice(size)))
        target[at] = _share(chosen, shown)
        propensity[at] = plan.propensities.of(piece.displays)[:size]
        q_shown[at], q_chosen[at] = q[rows, shown], q[rows[:, None], chosen].mean(axis=1)
    return doubly_robust(
        rewards.taken(np.arange(n)), target, propensity, q_shown, q_chosen, level=plan.options.level,
        clusters=None if plan.clusters is None else plan.clusters.code[:n],
    )  # fmt: skip


def _share(chosen: npt.NDArray[np.int32], shown: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the share of the repeats that chose what was shown, shape (n,)."""
    share: npt.NDArray[np.float64] = (chosen == shown[:, None]).mean(axis=1)
    return share
