"""Probabilities with which the logging policy showed what it showed, and thinning by them.

Accepting a display with probability c / propensity turns any log with known propensities into one in which every
action is shown with probability c whatever the context: plain matching is exact on what remains. For contextual
policies c must be one number for the whole log (a per-context or per-action c tilts the contexts). For the others a c
for each action is enough and keeps more; where an action's propensity never changes it keeps everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.errors import EvaluatorError, ParameterError, PropensityError, nearest
from evaluator.log import Log
from evaluator.log.contract import PropensityKind

PropensityMode = Literal["column", "uniform", "estimate", "estimate:context"]
MODES: tuple[PropensityMode, ...] = ("column", "uniform", "estimate", "estimate:context")


@dataclass(frozen=True)
class Propensities:
    """Propensity of each logged action.

    Parameters
    ----------
    kind
        logged, uniform (by design), estimated or absent.
    p
        Shape (n,), in (0, 1]; None when absent.
    assumption
        What an estimate that uses them rests on.
    """

    kind: PropensityKind
    p: npt.NDArray[np.float64] | None
    assumption: str


@dataclass(frozen=True)
class Thinning:
    """Which displays a sampler may accept.

    Parameters
    ----------
    kept
        Shape (n,), bool.
    c
        Acceptance constant: one for all actions, or the smallest over the actions.
    clipped
        Share of the displays whose propensity is below their c: the source of bias of `--accept-quantile`.
    weight
        Residual importance weight of each display, shape (n,): 1 unless clipped.
    """

    kept: npt.NDArray[np.bool_]
    c: float
    clipped: float
    weight: npt.NDArray[np.float64]


def resolve_propensities(log: Log, mode: PropensityMode | None) -> Propensities:
    """Return the log's propensities as the user wants them read.

    Parameters
    ----------
    log
        The log.
    mode
        ``column`` (the logged ones), ``uniform`` (1/K by design), ``estimate`` (frequencies: the logger ignored the
        context), ``estimate:context`` (multinomial logistic model; extra ``propensity``), or None: the logged ones,
        if any.

    Raises
    ------
    PropensityError
        ``column`` on a log without propensities.
    """
    n, k = len(log), log.n_actions
    if mode is None:
        mode = "column" if log.meta.propensity != "absent" else None
    if mode is None:
        return Propensities("absent", None, "the logging policy ignored contexts and outcomes (no propensities given)")
    if mode == "column":
        if log.meta.propensity == "absent":
            raise PropensityError(
                f"Log {log.meta.name!r} has no propensity column.",
                hint="use --propensity uniform or --propensity estimate.",
            )
        p = log.column("propensity").astype(np.float64)
        word = {
            "logged": "the logged propensities are right",
            "uniform": "actions were logged uniformly at random",
        }
        return Propensities(
            log.meta.propensity, p, word.get(log.meta.propensity, "the estimated propensities are right")
        )
    if mode == "uniform":
        return Propensities("uniform", np.full(n, 1.0 / k), "actions were logged uniformly at random")
    if mode == "estimate":
        action = log.column("action")
        share = np.bincount(action, minlength=k) / n
        return Propensities(
            "estimated",
            share[action],
            "propensities estimated by frequencies: the logger ignored the context",
        )
    if mode == "estimate:context":
        return Propensities(
            "estimated",
            _multinomial(log),
            "propensities estimated by a multinomial logistic model: no unmeasured confounding",
        )
    raise ParameterError(f"--propensity {mode!r} is not a choice.", hint=nearest(mode, MODES))


def _multinomial(log: Log) -> npt.NDArray[np.float64]:
    if "context" not in log.displays.column_names:
        raise ParameterError(
            "--propensity estimate:context needs a context, and the log has none.",
            hint="use --propensity estimate.",
        )
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise EvaluatorError(
            "--propensity estimate:context needs scikit-learn.",
            hint="pip install 'delayed-replay[propensity]'",
        ) from error
    context, action = log.column("context"), log.column("action")
    model = LogisticRegression(max_iter=1000).fit(context, action)
    table = model.predict_proba(context)
    of_class = np.searchsorted(model.classes_, action)
    p: npt.NDArray[np.float64] = table[np.arange(len(action)), of_class].astype(np.float64)
    return p


def thin(
    propensities: Propensities,
    action: npt.NDArray[np.int32],
    *,
    per_action: bool,
    quantile: float,
    rng: np.random.Generator,
) -> Thinning:
    """Keep each display with probability min(1, c / propensity).

    Parameters
    ----------
    propensities
        Known or estimated; when absent everything is kept.
    action
        Logged actions, shape (n,).
    per_action
        A c for each action (non-contextual policies) instead of one for all.
    quantile
        c is this quantile of the propensities (Dudik et al. 2012): 0, the smallest, is exact; more keeps more rounds at
        the price of bias.
    rng
        Stream of the sampler: one draw a display, whatever the propensities, so that it is the same for all policies.
    """
    n = len(action)
    if propensities.p is None:
        return Thinning(np.ones(n, dtype=bool), float("nan"), 0.0, np.ones(n))
    p = propensities.p
    if per_action:
        c = np.array(
            [np.quantile(p[action == k], quantile) if (action == k).any() else 1.0 for k in range(action.max() + 1)]
        )
        of = c[action]
    else:
        of = np.full(n, np.quantile(p, quantile))
    weight = np.maximum(of / p, 1.0)
    kept = rng.random(n) * p < of
    return Thinning(kept, float(of.min()), float(np.mean(weight > 1.0)), weight)
