"""How often each action converts, fitted to a log and drawn together where the log cannot tell actions apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from evaluator.engine.kernels.solving import solved, standard_of, varying
from evaluator.worlds.disk_column import mean_of_columns

Floats = npt.NDArray[np.float64]

# Variances of the actions' own coefficients, on standardised contexts, of which held-out displays choose one.
_VARIANCES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
# Of all other coefficients: weak.
_WEAK = 25.0
_STEPS = 25
_CLIP = 1e-6


class Rates(NamedTuple):
    """Conversion probability of each action in each context asked about, shape (P, K), and how it was found."""

    table: Floats
    said: str


def rates_by_action(converted: Floats, shown: Floats) -> Rates:
    """Return one rate an action, so that their spread is that of the true rates.

    Given are the numbers of displays of each action that converted, and of all its displays, shape (K,). Raw rates are
    spread more widely than the truth, by their own errors: the best of many rare actions would look far better in a
    twin than any is, and policies further apart. Posterior means are spread too little. With p_a the raw rate, mu that
    of all, tau² the moment estimate of the true rates' variance (DerSimonian and Laird 1986) and w_a = tau² / (tau² +
    mu(1-mu)/n_a),

        rate_a = mu + sqrt(w_a) (p_a - mu)

    has variance tau²: constrained empirical Bayes (Louis 1984, JASA 79; Ghosh 1992, JASA 87).

    >>> rates_by_action(np.array([10.0, 12.0]), np.array([100.0, 100.0])).table  # no further apart than by chance
    array([[0.11, 0.11]])
    """
    n = shown.sum()
    mu = converted.sum() / n
    noise = mu * (1 - mu)
    raw = np.where(shown > 0, converted / np.maximum(shown, 1), mu)
    k = int((shown > 0).sum())
    # E[sum n_a (p_a - mu)²] = (K - 1) noise + tau² (n - sum n_a²/n).
    excess = float((shown * (raw - mu) ** 2).sum() - (k - 1) * noise)
    between = max(excess / max(n - float((shown**2).sum()) / n, 1.0), 0.0)
    weight = between / (between + noise / np.maximum(shown, 1)) if between > 0 else np.zeros(len(shown))
    rates = np.clip(mu + np.sqrt(weight) * (raw - mu), 0.0, 1.0)
    said = (
        f"conversion rates by action, drawn towards their mean {mu:.4g} so that they are spread as the true rates are "
        f"(standard deviation {between**0.5:.2g}), not as their estimates"
        if between > 0
        else f"one conversion rate {mu:.4g} for all actions: the log shows no more spread among them than chance"
    )
    return Rates(rates[None], said)


def rates_by_vector(vectors: Floats, converted: npt.NDArray[np.bool_], asked: Floats) -> Rates:
    """Return rates from the actions' own vectors, one model for all actions: linear or logistic, whichever fits better.

    Displays showed actions with these `vectors`, shape (n, d), and `converted` or not, shape (n,); rates are `asked` of
    the vectors of all actions in some contexts, shape (P, K, d).
    """
    standard = standard_of(vectors)
    x, y = standard.with_constant(vectors), converted.astype(np.float64)
    asked = standard.of(asked)
    linear = solved(x.T @ x + np.eye(x.shape[1]) * 1e-6 * len(x), x.T @ y)
    logistic = _logistic(x, y, np.zeros(len(y)), _penalty(x.shape[1], _WEAK))
    fitted = np.clip(x @ linear, _CLIP, 1 - _CLIP)
    score = x @ logistic
    by_linear = float((y * np.log(fitted) + (1 - y) * np.log1p(-fitted)).sum())
    by_logistic = float((y * log_expit(score) + (1 - y) * log_expit(-score)).sum())
    if by_linear >= by_logistic:
        return Rates(
            np.clip(asked @ linear[:-1] + linear[-1], 0.0, 1.0),
            "conversion rates by a linear model of the actions' vectors (likelier here than a logistic one)",
        )
    return Rates(
        expit(asked @ logistic[:-1] + logistic[-1]),
        "conversion rates by a logistic model of the actions' vectors (likelier here than a linear one)",
    )


def rates_by_context(
    context: npt.NDArray[np.floating],
    action: npt.NDArray[np.int32],
    converted: npt.NDArray[np.bool_],
    asked: npt.NDArray[np.floating],
    *,
    n_actions: int,
) -> Rates:
    """Return rates by context and action: a logistic model of the context, and each action's own departure from it.

    The departures have a normal prior whose variance is chosen on held-out displays, every second one: at 0 all actions
    are alike. Differences that the log cannot tell from chance are therefore small in the truth, and what there is to
    learn about actions is understated rather than invented.

    Each display has a context, shape (n, d), an action and an outcome, shape (n,); rates are `asked` of contexts, (P,
    d).
    """
    centre, scale = _centre_and_scale(context)
    varies = np.flatnonzero(np.isfinite(scale))

    def standard(c: npt.NDArray[np.floating]) -> Floats:
        found = np.ones((len(c), len(varies) + 1), order="F")  # column after column, as it is read
        for at, column in enumerate(varies):
            found[:, at] = c[:, column]
            found[:, at] -= centre[column]
            found[:, at] /= scale[column]
        return found

    x, y = standard(context), converted.astype(np.float64)
    del context  # a million of them, where nobody else holds it
    fitting, checking = slice(0, None, 2), slice(1, None, 2)
    common = _common(x[fitting], y[fitting])
    scores = [
        _likelihood(x[checking], action[checking], y[checking], common + own)
        for variance in _VARIANCES
        for own in [_departures(x[fitting], action[fitting], y[fitting], common, variance, n_actions)]
    ]
    variance = _VARIANCES[int(np.argmax(scores))]
    common = _common(x, y)
    theta = common + _departures(x, action, y, common, variance, n_actions)
    said = (
        "conversion rates by a logistic model of the context, with each action's own departures "
        f"(prior variance {variance:g}, chosen on held-out displays)"
        if variance
        else "conversion rates by a logistic model of the context, the same for all actions: on held-out displays no "
        "difference between actions could be told from chance"
    )
    return Rates(expit(standard(asked) @ theta.T), said)


def _centre_and_scale(context: npt.NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column, as NumPy's, without a copy of all."""

    def squares(first: int, end: int) -> Floats:
        off = context[first:end] - centre
        return np.multiply(off, off, out=off).T

    centre = mean_of_columns(len(context), lambda first, end: context[first:end].astype(np.float64).T)
    return centre, varying(np.sqrt(mean_of_columns(len(context), squares)), centre)


def _common(x: Floats, y: Floats) -> Floats:
    return _logistic(x, y, np.zeros(len(y)), _penalty(x.shape[1], _WEAK))


def _departures(
    x: Floats, action: npt.NDArray[np.int32], y: Floats, common: Floats, variance: float, n_actions: int
) -> Floats:
    """Return each action's departure from the common coefficients, shape (K, p)."""
    own = np.zeros((n_actions, x.shape[1]))
    if variance == 0.0:
        return own
    order = np.argsort(action, kind="stable")
    bounds = np.searchsorted(action[order], np.arange(n_actions + 1))
    penalty = np.full(x.shape[1], 1.0 / variance)
    for k in range(n_actions):
        mine = order[bounds[k] : bounds[k + 1]]
        if len(mine):
            own[k] = _logistic(x[mine], y[mine], x[mine] @ common, penalty)
    return own


def _likelihood(x: Floats, action: npt.NDArray[np.int32], y: Floats, theta: Floats) -> float:
    score = np.einsum("ij,ij->i", x, theta[action])
    return float((y * log_expit(score) + (1 - y) * log_expit(-score)).sum())


def _logistic(x: Floats, y: Floats, offset: Floats, penalty: Floats) -> Floats:
    """Return the posterior mode of a logistic model with this offset and prior precision, by Newton's method."""
    theta = np.zeros(x.shape[1])
    value = -np.inf
    step = theta
    for _ in range(_STEPS):
        score = offset + x @ theta
        now = float((y * log_expit(score) + (1 - y) * log_expit(-score)).sum() - 0.5 * penalty @ theta**2)
        if now < value - 1e-9 * abs(value):  # too far: half the way
            step = step / 2
            theta = theta - step
            continue
        if now - value <= 1e-9 * abs(now):
            break
        value = now
        p = expit(score)
        slope = x.T @ (y - p) - penalty * theta
        bend = (x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = solved(bend, slope)
        theta = theta + step
    return theta


def _penalty(p: int, variance: float) -> Floats:
    penalty = np.full(p, 1.0 / variance)
    penalty[-1] = 1e-6  # the last coefficient is the constant's
    return penalty
