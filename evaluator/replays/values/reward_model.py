"""A linear model of the rewards, cross-fitted: what DR compares each reward with was fitted without that reward.

The displays are cut into groups of consecutive numbers. Each group is predicted by a ridge regression on other groups:
on all the others (of a policy that does not learn on the way), or on the earlier ones alone (of one that does: what is
predicted must not depend on what comes, and the first group is predicted to be 0).

Features are what the log has of a display, and a constant: its context, one regression an action; the action sets' or
the catalogue's vectors, one regression for all; without vectors, each action's own mean. Displays too young at the end
of the log enter with the rewards that the caller has corrected, or not at all. A wrong model leaves DR unbiased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.solving import solved, varying
from evaluator.estimates.confidence import SparseRewards
from evaluator.log import Log
from evaluator.log.vectors_of_displays import readable_vectors
from evaluator.replays.rounds.stream import LogRounds, pieces

Floats = npt.NDArray[np.float64]
FittedTo = Literal["others", "earlier"]

RIDGE = 1.0
# More groups leave more to fit to, but each needs its own normal equations.
_MOST_GROUPS, _MOST_NUMBERS = 20, 2**25


@dataclass(frozen=True, eq=False)
class RewardModel:
    """A cross-fitted ridge regression of the reward: of each group of displays one fit, made on other groups.

    Parameters
    ----------
    bounds
        First display of each group, and one past the last display, shape (groups + 1,).
    theta
        Coefficients of each group and block, the constant's last, shape (groups, blocks, d + 1): a block an action, or
        one for all.
    n_actions
        Number of actions K.
    """

    bounds: npt.NDArray[np.int64]
    theta: Floats
    n_actions: int

    def values(self, first: int, n: int, vectors: npt.NDArray[np.floating]) -> Floats:
        """Return q^(x_i, a) of the displays from number `first` on, shape (n, K).

        Parameters
        ----------
        first, n
            Number of the first display, and how many displays follow from there.
        vectors
            Vectors of these displays, as `evaluator.replays.rounds.stream.LogPiece` has them: shape (n, K, d), (n, 1,
            d), or (1, ...) for all.
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
    with mean 0 and variance 1 there, and a constant: predictions do not depend on the units of the columns.

    Parameters
    ----------
    log
        Log whose rewards are modelled.
    rewards
        Rewards of the log's first ``rewards.n`` displays, corrected for what the log could not see; the others are not
        looked at.
    to
        Rule that says which groups a group's model is fitted to.
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
