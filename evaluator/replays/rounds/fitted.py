"""Propensities fitted to the contexts of a log that has none: cross-fitted, and with a c that no single fit decides.

*Cross-fitting.* The displays are dealt to `FOLDS` groups at random, and the propensity of a display is that of the
model fitted to the other groups (Chernozhukov et al. 2018). A model that saw the display itself gives its action too
high a probability, the more so the more columns the context has. The group of a display follows from its number alone,
so it is the same however the log is read. Displays of one user may fall into different groups; a log does not name
users.

*Noise of the fits.* Out of sample 1/p^ is too large on average: 1/p is a sum of exponentials of differences of scores,
and noise makes an exponential larger (in sample the fit's own moments balance most of it). With v_kl the variance of
the fitted difference of the scores of k and l at x, from the information matrix,

    1/p(k|x) = sum_l exp(s_l - s_k - v_kl / 2)

is right on average for normal noise: weights, and probabilities of acceptance, are linear in it. On logs of 1,000
displays and 40 context columns IPS is .069 too high without it, where the truth is .4, and .007 +- .003 with it
(`tests/statistical/test_fitted_propensities.py`). Where it would move propensities by less than half a hundredth on
average it is left out; it falls short where the columns are too many, which the assumption then says.

*c.* With known propensities the smallest of the log is exact: no action is accepted too rarely anywhere. Of fitted ones
the smallest is the one that happened to be fitted worst, and would decide how many rounds a replay has. Here c is that
smallest one, at which no display is clipped, or, where that is more, the largest at which no policy loses more than a
share of the traffic: `LOST` or, on longer logs, 1 / sqrt(n), so that the cost stays below the standard error. A display
with propensity p < c is accepted with probability 1 instead of c / p, which leaves out a share 1 - p / c of the rounds
that choose its action there, so

    E_x[max_a (1 - p(a|x) / c)+] = that share      (of one action for a c of each action: without the maximum).

That is a bias, as that of ``--accept-quantile``, but with a bound, as far as the fitted p are right: no value moves by
more than that share (over 1 less it) of the range of the expected rewards, and where these do not depend on whether p
is below c it does not move at all. The share of the displays below c is reported. A quantile bounds the share of the
*logged* displays below c instead, and so nothing of what a policy chooses that the logger did not.

References
----------
Chernozhukov, Chetverikov, Demirer, Duflo, Hansen, Newey, Robins. Double/debiased machine learning for treatment and
structural parameters. Econometrics Journal 21, 2018.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.solving import Standard, inverted, standard_of
from evaluator.errors import EvaluatorError
from evaluator.log import Log
from evaluator.log.eligible import Bits, SetCodes, members
from evaluator.log.schema import ELIGIBLE, Columns, to_numpy
from evaluator.streams import STEP, Stream, mixed, seed_sequence

Floats = npt.NDArray[np.float64]

FOLDS = 5
# Share of the traffic that the c of fitted propensities may cost a policy at most.
LOST = 0.01
# Displays that the models of the context are fitted to, four times each; evenly spaced in longer logs.
MODEL_DISPLAYS = 125_000
# Displays that the information matrix is summed over, and numbers by which c is found.
_INFORMATION, _NUMBERS = 20_000, 2**22
# Steps that a fit may take.
_STEPS = 1000
_NEGLIGIBLE = 0.005
# From this correction on, in the logarithm and on average, it was seen to fall short: too many columns.
_TOO_MUCH = 0.2
# The logger showed action a of the set E with probability w_a / (sum of w_b over b in E). The weights that make the
# log most likely solve w_a = n_a / (sum over the displays with a eligible of 1 / (sum of w_b over b in E)), n_a the
# displays of a; going round in that equation climbs to them (Hunter 2004, MM algorithms for generalized Bradley-
# Terry models, Annals of Statistics 32). Shares of the log alone would take an action that is seldom eligible for
# one that is seldom chosen.
_ROUNDS, _CLOSE = 10_000, 1e-10


class Acceptance(NamedTuple):
    """The c of fitted propensities, for all actions and of each, shape (K,), nan for those never shown, and its cost.

    The cost, `lost`, is the share of the traffic that a policy may lose.
    """

    overall: float
    by_action: Floats
    lost: float


@dataclass(frozen=True, eq=False)
class LoggerModel:
    """A multinomial logistic model of the action given the context, fitted to `n` displays, which show `seen` ones.

    It sees contexts with mean 0 and variance 1 (`standard`). `scores` are the coefficients of each seen action, the
    constant's last, shape (S, d + 1); `spread` their covariance, shape (S, d + 1, S, d + 1), where propensities are
    corrected for it, and `correction` the mean logarithm of that. A fit that came to rest has `converged`.
    """

    seen: npt.NDArray[np.int64]
    standard: Standard
    scores: Floats
    spread: Floats | None
    n: int
    n_actions: int
    correction: float = 0.0
    converged: bool = True

    def of(self, context: npt.NDArray[np.floating], action: npt.NDArray[np.integer]) -> Floats:
        """Return the propensities of some actions, shape (n,), in (0, 1].

        An action that was not seen has the probability of one display more, of any action.
        """
        x = self.standard.with_constant(context)
        score = x @ self.scores.T
        p = np.zeros(len(x))
        for at, k in enumerate(self.seen):
            rows = np.flatnonzero(action == k)
            difference = score[rows] - score[rows, at][:, None]
            if self.spread is not None:
                difference -= _variances(self.spread, x[rows], at) / 2.0
            p[rows] = 1.0 / np.exp(np.minimum(difference, 700.0)).sum(axis=1)
        return (self.n * p + 1.0 / self.n_actions) / (self.n + 1)

    def all(self, context: npt.NDArray[np.floating]) -> Floats:
        """Return the propensities of all actions, shape (n, K)."""
        every = [self.of(context, np.full(len(context), k)) for k in range(self.n_actions)]
        return np.column_stack(every)


@dataclass(frozen=True, eq=False)
class FittedLogger:
    """The logging policy by cross-fitted models of contexts: one for each group of displays, fitted to the others."""

    models: tuple[LoggerModel, ...]
    fitted_to: int

    @property
    def uncertain(self) -> bool:
        """Whether the context has more columns than these displays can tell a logger by."""
        return max(model.correction for model in self.models) > _TOO_MUCH

    @property
    def converged(self) -> bool:
        """Whether every fit came to rest."""
        return all(model.converged for model in self.models)

    def of(
        self, number: npt.NDArray[np.int64], context: npt.NDArray[np.floating], action: npt.NDArray[np.integer]
    ) -> Floats:
        """Return the propensities of some actions, shape (n,), at the displays with these numbers and contexts."""
        fold, p = folds(number), np.empty(len(number))
        for j, model in enumerate(self.models):
            rows = np.flatnonzero(fold == j)
            p[rows] = model.of(context[rows], action[rows])
        return p


def folds(number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the group of each display, 0 to FOLDS - 1, from its number alone."""
    word = seed_sequence(Stream.CROSS_FITTING, 0).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        z = mixed((np.asarray(number).astype(np.uint64) + word) * STEP)
    fold: npt.NDArray[np.int64] = (z % np.uint64(FOLDS)).astype(np.int64)
    return fold


def fit_logger(log: Log, displays: int = MODEL_DISPLAYS) -> FittedLogger:
    """Fit the models to at most so many displays, evenly spaced: FOLDS fits to all but one group each."""
    number, context, action = _some(log, displays)
    fold = folds(number)
    models = tuple(_fit(context[fold != j], action[fold != j], log.n_actions, corrected=True) for j in range(FOLDS))
    return FittedLogger(models, len(number))


def context_model(log: Log, displays: int) -> LoggerModel:
    """Fit one model to all displays alike, at most so many, evenly spaced; not corrected, so that it sums to 1."""
    _, context, action = _some(log, displays)
    return _fit(context, action, log.n_actions, corrected=False)


def acceptance_of(log: Log, logger: FittedLogger, shown: npt.NDArray[np.bool_]) -> Acceptance:
    """Return c by the models' probabilities at evenly spaced displays, of the actions that were ever shown, (K,)."""
    number, context, _ = _some(log, max(_NUMBERS // log.n_actions**2, 2000))
    by_action, smallest = np.full(log.n_actions, np.nan), np.full(len(number), np.inf)
    lost = min(LOST, 1.0 / math.sqrt(len(log)))
    for k in np.flatnonzero(shown):
        p = logger.of(number, context, np.full(len(number), k))
        by_action[k] = largest_c(p, lost)
        smallest = np.minimum(smallest, p)
    return Acceptance(largest_c(smallest, lost), by_action, lost)


def largest_c(p: Floats, lost: float = LOST) -> float:
    """Return the largest c, at most the largest of p, for which the mean of (1 - p / c)+ is at most `lost`.

    Examples
    --------
    One p in four is smaller: the c above it that costs a hundredth of all; and one in a hundred decides nothing.

    >>> round(largest_c(np.array([0.2, 0.5, 0.5, 0.5])), 4)
    0.2083
    >>> largest_c(np.append(np.full(999, 0.5), 1e-9))
    0.5
    """
    p = np.sort(p)
    n, below = len(p), np.arange(1, len(p))
    sums = np.cumsum(p)[:-1]
    # With c at the next p, the m below it lose (m - sum p / c) / n: where that is too much, c is between two of them.
    over = np.flatnonzero((below - sums / p[1:]) / n > lost)
    if not len(over):
        return float(p[-1])
    m = over[0]
    return float(sums[m] / (below[m] - lost * n))


def _some(log: Log, displays: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.floating], npt.NDArray[np.int32]]:
    n = min(len(log), displays)
    number = np.arange(n) * len(log) // n
    some = log.take(number, ["context", "action"])
    return number, to_numpy(some["context"]), to_numpy(some["action"])


def _fit(
    context: npt.NDArray[np.floating], action: npt.NDArray[np.int32], n_actions: int, *, corrected: bool
) -> LoggerModel:
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise EvaluatorError(
            "A model of the logging policy given the context needs scikit-learn.",
            remedy="pip install scikit-learn, which the extra `propensity` of this package brings.",
        ) from error
    n, seen = len(action), np.unique(action).astype(np.int64)
    standard = standard_of(context)
    if len(seen) < 2:
        return LoggerModel(seen, standard, np.zeros((len(seen), context.shape[1] + 1)), None, n, n_actions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is said with the propensities
        fitted = LogisticRegression(max_iter=_STEPS).fit(standard.of(context), action)
    converged = bool(fitted.n_iter_.max() < _STEPS)
    scores = np.column_stack([fitted.coef_, fitted.intercept_]).astype(np.float64)
    if len(seen) == 2:
        scores = np.vstack([np.zeros(scores.shape[1]), scores])
    model = LoggerModel(seen, standard, scores, None, n, n_actions, converged=converged)
    if not corrected:
        return model
    some = np.arange(min(n, _INFORMATION)) * n // min(n, _INFORMATION)
    spread = _spread(standard.with_constant(context[some]), scores, n / len(some))
    least = some[:: max(len(some) // 2000, 1)]
    better = replace(model, spread=spread)
    moved = np.log(better.of(context[least], action[least]) / model.of(context[least], action[least]))
    correction = float(moved.mean())
    return replace(better if correction > _NEGLIGIBLE else model, correction=correction)


def _spread(x: Floats, scores: Floats, times: float) -> Floats:
    """Return the inverse of the penalised information of all scores' coefficients, shape (S, d, S, d)."""
    k, d = scores.shape
    p = np.exp((score := x @ scores.T) - score.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    information = np.empty((k, d, k, d))
    for i in range(k):
        for j in range(k):
            information[i, :, j, :] = x.T @ (x * (p[:, i] * ((i == j) - p[:, j]))[:, None])
    # The fit's own penalty, 1; next to none for the constants, whose common shift no probability shows.
    penalty = np.ones(d)
    penalty[-1] = 1e-6
    matrix = times * information.reshape(k * d, k * d) + np.diag(np.tile(penalty, k))
    return inverted(matrix).reshape(k, d, k, d)


def _variances(spread: Floats, x: Floats, k: int) -> Floats:
    """Return the variance of the score of each action less that of action k, shape (n, S)."""
    out = np.empty((len(x), len(spread)))
    for j in range(len(spread)):
        between = spread[j, :, j] + spread[k, :, k] - spread[j, :, k] - spread[k, :, j]
        out[:, j] = np.einsum("nd,nd->n", x @ between, x)
    return out


def choice_weights(log: Log) -> Floats:
    """Return the weights of the actions, shape (K,), with sum 1; 0 for actions never shown.

    Where no chain of shared sets connects two groups of actions, nothing tells how their weights compare, and nothing
    needs it. Cost: one pass over the sets and K numbers a distinct one, then little more a round.
    """
    shown = np.zeros(log.n_actions, np.int64)
    counts: dict[bytes, int] = {}
    for _, batch in log.batches(["action", ELIGIBLE], coded=True):
        shown += np.bincount(batch["action"], minlength=log.n_actions)
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        of_set = np.bincount(sets, minlength=len(sets.distinct))
        for at in np.flatnonzero(of_set):
            key = sets.distinct[at].tobytes()
            counts[key] = counts.get(key, 0) + int(of_set[at])
    bits = np.frombuffer(b"".join(counts), np.uint8).reshape(len(counts), -1)
    first, action = members(bits)
    n = np.fromiter(counts.values(), np.float64, len(counts))
    size = np.diff(first)
    w: Floats = shown / shown.sum()
    for _ in range(_ROUNDS):
        total = np.add.reduceat(w[action], first[:-1])
        expected = np.bincount(action, np.repeat(n / total, size), minlength=log.n_actions)
        new = np.divide(shown, expected, out=np.zeros_like(w), where=expected > 0.0)
        new /= new.sum()
        moved = float(np.abs(new - w).max())
        w = new
        if moved < _CLOSE:
            break
    return w


def chosen_with(weights: Floats, displays: Columns) -> Floats:
    """Return the propensities of some displays under such weights, shape (n,)."""
    sets = displays[ELIGIBLE]
    distinct, of = (sets.distinct, np.asarray(sets)) if isinstance(sets, SetCodes) else _plain(sets)
    first, action = members(distinct)
    total = np.add.reduceat(weights[action], first[:-1])
    found: Floats = weights[displays["action"]] / total[of]
    return found


def _plain(bits: Bits) -> tuple[Bits, npt.NDArray[np.int64]]:
    return bits, np.arange(len(bits))
