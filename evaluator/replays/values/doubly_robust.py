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
(below). A model cross-fitted on later displays too would know rewards that the
policy's later choices depend on, and the terms would no longer be those of a martingale.

*Interval.* The terms minus their conditional means are martingale differences, so the variance of the estimate is the
sum of their conditional variances over n², and the interval is normal by the martingale central limit theorem. The
sample variance of the terms over n stands in for it; it also holds the spread of the conditional means, so it is a
little too large while the policy improves. Below a number of rewards on matching displays neither value nor interval
is given (`evaluator.estimates.standard_errors`).

*Repeats.* The value is that of the first, which reads the log in its own order. In the others, displays that come later
than i stand before it in the log, and so in the model that i is compared with.

Where displays hang together, the variance is that of the terms' sums over clusters, and what the interval is for is
what the choices that were made are worth to new clusters.

*The model* is linear and cross-fitted: what DR compares each reward with was fitted without that reward. The displays
are cut into groups of consecutive numbers. Each group is predicted by a ridge regression on other groups: on all the
others (of a policy that does not learn on the way), or on the earlier ones alone (of one that does: what is predicted
must not depend on what comes, and the first group is predicted to be 0).

Features are what the log has of a display, and a constant: its context, one regression an action; the action sets' or
the catalogue's vectors, one regression for all; without vectors, each action's own mean. Displays too young at the end
of the log enter with the rewards that the caller has corrected, or not at all. A wrong model leaves DR unbiased.

References
----------
Dudik, Erhan, Langford, Li. Sample-efficient nonstationary policy evaluation for contextual bandits. UAI 2012.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.solving import solved, varying
from evaluator.engine.log_replay import Replay
from evaluator.estimates.confidence import SparseRewards
from evaluator.estimates.weighted import WeightedValue, doubly_robust, mean_value
from evaluator.findings.codes import DOUBLY_ROBUST, FEW_WEIGHTED_REWARDS
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.vectors_of_displays import readable_vectors
from evaluator.replays.findings.plan import warn_of_few_clusters
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.stream import LogRounds, pieces
from evaluator.replays.values.rewards import eventual_rewards

LEARNING = "the policy's choice at each display read, as it had learned by then"
FIXED = "a policy that does not learn"
Floats = npt.NDArray[np.float64]
FittedTo = Literal["others", "earlier"]
RIDGE = 1.0
# More groups leave more to fit to, but each needs its own normal equations.
_MOST_GROUPS, _MOST_NUMBERS = 20, 2**25


class RewardModels:
    """Models of the rewards, cross-fitted, each fitted once for all plans on one log that count the same rewards."""

    def __init__(self) -> None:
        self._fitted: dict[tuple[object, ...], RewardModel] = {}

    def of(self, plan: ReplayPlan) -> RewardModel:
        """Return the model that predicts each display that can be judged without its own reward."""
        # On one log and with one set of options, only the window tells one plan's rewards from another's.
        key = (plan.maturity.used, plan.window.cut)
        if key not in self._fitted:
            rewards = eventual_rewards(plan, used=plan.maturity.used)
            self._fitted[key] = fit_reward_model(plan.log, rewards, to="others")
        return self._fitted[key]


def robust_value(
    plan: ReplayPlan, replays: Sequence[Replay], frozen: WeightedValue | None
) -> tuple[WeightedValue, list[Finding]]:
    """Return the doubly robust value of a plan's policy that asks for it, and what goes with it.

    Of a policy that does not learn, other than the logging policy, whose weights are all 1, it is that of the `frozen`
    one.
    """
    clusters = None if plan.clusters is None else plan.clusters.code
    findings = []
    if plan.policy.learns:
        value = running_value(plan, replays)
        if value.withheld:
            findings.append(FEW_WEIGHTED_REWARDS.found(f"The doubly robust value is not given: {value.withheld}."))
        findings.append(
            DOUBLY_ROBUST.found(
                "doubly robust value: of the policy's choices at all displays read, as it had learned by then; the "
                "realised value is that of the accepted rounds alone, which this interval need not hold"
            )
        )
    elif frozen is not None:
        value = replace(frozen, target=FIXED)
    else:
        rewards = eventual_rewards(plan, used=plan.rounds.used)
        own = None if clusters is None else clusters[: rewards.n]
        value = mean_value(rewards.taken(np.arange(rewards.n)), level=plan.options.level, clusters=own)
        value = replace(value, target=FIXED)
    if clusters is not None:
        findings += warn_of_few_clusters(plan, clusters[: value.value.n], "the doubly robust value")
    return value, findings


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


@dataclass(frozen=True, eq=False)
class RewardModel:
    """A cross-fitted ridge regression of the reward: of each group of displays one fit, made on other groups.

    `bounds` are the first display of each group, and one past the last display, shape (groups + 1,); `theta` the
    coefficients of each group and block, the constant's last, shape (groups, blocks, d + 1): a block an action, or one
    for all.
    """

    bounds: npt.NDArray[np.int64]
    theta: Floats
    n_actions: int

    def values(self, first: int, n: int, vectors: npt.NDArray[np.floating]) -> Floats:
        """Return q^(x_i, a) of the `n` displays from number `first` on, shape (n, K).

        Vectors are as `evaluator.replays.rounds.stream.LogPiece` has them: shape (n, K, d), (n, 1, d), or (1, ...) for
        all.
        """
        out = np.empty((n, self.n_actions))
        for group, part in _cut(self.bounds, first, n):
            own = vectors if len(vectors) == 1 else vectors[part]
            theta = self.theta[group]
            if len(theta) == 1:
                out[part] = own @ theta[0, :-1] + theta[0, -1]
            else:
                out[part] = own[:, 0] @ theta[:, :-1].T + theta[:, -1]
        return out


def fit_reward_model(log: Log, rewards: SparseRewards, *, to: FittedTo) -> RewardModel:
    """Fit the model in one scan of a log, to normal equations: no more memory for a longer log.

    theta of a group = (RIDGE I + sum f f')^-1 sum f Y over the displays it is fitted to, f the shown action's features
    with mean 0 and variance 1 there, and a constant: predictions do not depend on the units of the columns. Rewards are
    those of the log's first displays, corrected for what the log could not see; the others are not looked at.
    """
    name, k, n = readable_vectors(log), log.n_actions, rewards.n
    shape = LogRounds(log, n, name, np.zeros(0, np.int64))
    blocks, d = (1 if shape.rows > 1 else k), shape.dimension + 1
    groups = int(np.clip(_MOST_NUMBERS // (blocks * d * d), 2, _MOST_GROUPS))
    bounds = np.rint(np.linspace(0, n, groups + 1)).astype(np.int64)
    gram, moment = np.zeros((groups, blocks, d, d)), np.zeros((groups, blocks, d))
    # Sums about a display's own numbers keep the digits that those about 0 lose where numbers are dates.
    origin: Floats | None = None
    for piece in pieces(log, ["action"], [] if name is None else [name]):
        size = min(len(piece.action), n - piece.first)
        if size <= 0:
            break
        y = rewards.taken(np.arange(piece.first, piece.first + size))
        for group, part in _cut(bounds, piece.first, size):
            shown = _shown(piece.action[part], piece.part_of_all(name, part, k))
            origin = np.append(shown[0, :-1], 0.0) if origin is None else origin
            shown -= origin
            _add(gram[group], moment[group], piece.action[part], y[part], shown)
    if to == "others":
        gram, moment = gram.sum(axis=0) - gram, moment.sum(axis=0) - moment
    else:
        gram, moment = np.cumsum(gram, axis=0) - gram, np.cumsum(moment, axis=0) - moment
    theta = np.stack([_standard_fit(*sums) for sums in zip(gram, moment, strict=True)])
    if origin is not None:
        theta[..., -1] -= theta @ origin
    return RewardModel(bounds, theta, k)


def _standard_fit(gram: Floats, moment: Floats) -> Floats:
    """Return the coefficients of each block, shape (blocks, d), of columns as they are, by those with variance 1."""
    d = gram.shape[-1]
    total = gram.sum(axis=0)
    n = max(total[-1, -1], 1.0)
    centre = total[-1] / n
    deviation = varying(np.sqrt(np.maximum(np.diag(total) / n - centre**2, 0.0)), centre)
    # Of the constant: it stays.
    deviation[-1], centre[-1] = 1.0, 0.0
    to_standard = np.diag(1.0 / deviation)
    to_standard[-1] -= centre / deviation
    own = to_standard.T @ gram @ to_standard + RIDGE * np.eye(d)
    return np.asarray(solved(own, moment @ to_standard) @ to_standard.T)


def _cut(bounds: npt.NDArray[np.int64], first: int, n: int) -> Iterator[tuple[int, slice]]:
    """Yield (group, its part) of the displays from `first` on."""
    group = int(np.searchsorted(bounds, first, side="right")) - 1
    low = 0
    while low < n:
        high = min(int(bounds[group + 1]) - first, n)
        if high > low:
            yield group, slice(low, high)
        low, group = max(high, low), group + 1


def _shown(action: npt.NDArray[np.int32], vectors: npt.NDArray[np.floating]) -> Floats:
    """Return the features of the actions shown, and a constant, shape (n, d)."""
    rows, d = vectors.shape[1:]
    shown = np.ones((len(action), d + 1))
    if rows > 1:
        shown[:, :-1] = vectors[0, action] if len(vectors) == 1 else vectors[np.arange(len(action)), action]
    elif d:
        shown[:, :-1] = vectors[:, 0]
    return shown


def _add(gram: Floats, moment: Floats, action: npt.NDArray[np.int32], y: Floats, shown: Floats) -> None:
    """Add displays to the normal equations of their group, shape (blocks, d, d) and (blocks, d)."""
    if len(gram) == 1:
        gram[0] += shown.T @ shown
        moment[0] += shown.T @ y
        return
    order = np.argsort(action, kind="stable")
    bounds = np.searchsorted(action[order], np.arange(len(gram) + 1))
    for k in np.flatnonzero(np.diff(bounds)):
        mine = order[bounds[k] : bounds[k + 1]]
        own = shown[mine]
        gram[k] += own.T @ own
        moment[k] += own.T @ y[mine]
