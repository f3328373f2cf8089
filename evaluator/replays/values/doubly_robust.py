"""The value of a policy over all displays that a rejection replay reads, as it learned: DR under non-stationarity.

A replay asks the policy at each display i for its choice c_i, from what it has learned so far, and accepts the display
if c_i is the logged action and a draw keeps it. Plain replay averages the rewards of the accepted displays and throws
the others away. Here every display counts, by a model q^ of the rewards and a weight for the model's error:

    (1/n) sum_i [ q^(x_i, c_i) + 1{c_i = a_i} / p_i (Y_i - q^(x_i, a_i)) ].

*What it estimates.* The mean of r(x_i, c_i) over the n displays read: what the policy would have earned at these
displays had each been shown its choice, given what it had learned by then. That is not the realised value, the mean of
the same r over the T accepted displays alone. As every display is accepted with the same probability c whatever the
context and the choice, both have one expectation; but the accepted displays are a sample, and their mean is off by

    (1/T) sum_accepted r(x_i, c_i) - (1/n) sum_i r(x_i, c_i),    of variance (1 - c) / T times the variance of r.

The interval does not hold that difference, and must not be read as one for the realised value, of which it holds .90 to
.95 only. No interval could be mended to hold it and stay short: no log shows how far r, of which each display shows one
draw, is from its model, and where the bound is the variance of the rewards, the interval is that of the rounds' mean
again. Under a uniform logger that mean is as precise about the realised value as any doubly robust estimate with a
perfect model: both have variance sigma² / (c n).

*Policies that do not learn* have one value, and exact probabilities: it is estimated by the weights of
`evaluator.replays.values.final` (all 1 for the logging policy itself).

*Why it is unbiased.* Given the displays before i and x_i, the choice c_i (made without a look at a_i and Y_i) and q^
are fixed, a_i is drawn with the logged propensities, and the term's mean is r(x_i, c_i), however wrong the model. For
this q^ must not depend on display i or later ones: each group of displays is predicted by a model of the earlier groups
(`evaluator.replays.values.reward_model`). A model cross-fitted on later displays too would know rewards that the
policy's later choices depend on, and the terms would no longer be those of a martingale.

*Interval.* The terms minus their conditional means are martingale differences, so the variance of the estimate is the
sum of their conditional variances over n², and the interval is normal by the martingale central limit theorem. The
sample variance of the terms over n stands in for it; it also holds the spread of the conditional means, so it is a
little too large while the policy improves. Below a number of rewards on matching displays neither value nor interval
is given (`evaluator.estimates.enough`).

*Repeats.* The value is that of the first, which reads the log in its own order. In the others, displays that come later
than i stand before it in the log, and so in the model that i is compared with.

Where displays hang together, the variance is that of the terms' sums over clusters, and what the interval is for is
what the choices that were made are worth to new clusters.

References
----------
Dudik, Erhan, Langford, Li. Sample-efficient nonstationary policy evaluation for contextual bandits. UAI 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evaluator.engine.log_replay import Replay
from evaluator.estimates.weighted import WeightedValue, doubly_robust, mean_value
from evaluator.findings.codes import DOUBLY_ROBUST, FEW_WEIGHTED_REWARDS
from evaluator.findings.finding import Finding
from evaluator.log.vectors_of_displays import readable_vectors
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.stream import pieces
from evaluator.replays.values.final import FinalValue
from evaluator.replays.values.reward_model import fit_reward_model
from evaluator.replays.values.rewards import eventual_rewards

LEARNING = "the policy's choice at each display read, as it had learned by then"
FIXED = "a policy that does not learn"


def robust_value(plan: ReplayPlan, replays: Sequence[Replay], frozen: FinalValue | None) -> WeightedValue | None:
    """Return the doubly robust value of a plan's policy, given its repeats; None where it is not asked for.

    Parameters
    ----------
    plan, replays
        Plan of a policy that learns, and its replays, one a repeat.
    frozen
        Value of a policy that does not learn, other than the logging policy, whose weights are all 1; None of one that
        learns.
    """
    if not plan.options.doubly_robust:
        return None
    if plan.policy.learns:
        return running_value(plan, replays)
    if frozen is not None:
        return replace(frozen.dr, target=FIXED)
    rewards = eventual_rewards(plan, used=plan.rounds.used)
    clusters = None if plan.clusters is None else plan.clusters.code[: rewards.n]
    found = mean_value(rewards.taken(np.arange(rewards.n)), level=plan.options.level, clusters=clusters)
    return replace(found, target=FIXED)


def said_of_robust(found: WeightedValue | None) -> list[Finding]:
    """Return what goes with a doubly robust value."""
    if found is None or found.target == FIXED:
        return []
    withheld = FEW_WEIGHTED_REWARDS.found(f"The doubly robust value is not given: {found.withheld}.")
    return [
        *([withheld] if found.withheld else []),
        DOUBLY_ROBUST.found(
            "doubly robust value: of the policy's choices at all displays read, as it had learned by then; the "
            "realised value is that of the accepted rounds alone, which this interval need not hold"
        ),
    ]


def running_value(plan: ReplayPlan, replays: Sequence[Replay]) -> WeightedValue:
    """Return the doubly robust value over the displays that the first of a plan's repeats read, its choices recorded.

    Costs two scans of the displays read, the first to fit the model.
    """
    choices = replays[0].choices
    assert choices is not None  # the plan records them
    n = len(choices)
    rewards = eventual_rewards(plan, used=plan.rounds.used)
    model = fit_reward_model(plan.log, rewards, to="earlier")
    target, propensity, q_shown, q_chosen = np.empty((4, n))
    columns = list(dict.fromkeys(["action", *plan.propensities.reads]))
    name = readable_vectors(plan.log)
    for piece in pieces(plan.log, columns, [] if name is None else [name]):
        size = min(len(piece.action), n - piece.first)
        if size <= 0:
            break
        at, rows = slice(piece.first, piece.first + size), np.arange(size)
        shown, chosen = piece.action[:size], choices[at]
        q = model.values(piece.first, size, piece.part_of_all(name, slice(size), plan.log.n_actions))
        target[at] = chosen == shown
        propensity[at] = plan.propensities.of(piece.displays)[:size]
        q_shown[at], q_chosen[at] = q[rows, shown], q[rows, chosen]
    found = doubly_robust(
        rewards.taken(np.arange(n)), target, propensity, q_shown, q_chosen, level=plan.options.level,
        clusters=None if plan.clusters is None else plan.clusters.code[:n],
    )  # fmt: skip
    return replace(found, target=LEARNING)
