"""Thinning by propensities: it turns any log with known propensities into one logged uniformly.

Accepting a display with probability c / propensity leaves every action shown with probability c whatever the context:
plain matching is exact on what remains. For contextual policies c must be one number for the whole log (a per-context
or per-action c tilts the contexts). For the others a c for each action is enough and keeps more; where an action's
propensity never changes it keeps everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.schema import Columns
from evaluator.replays.rounds.propensity import Propensities


@dataclass(frozen=True, eq=False)
class Thinning:
    """Keep each display with probability min(1, c / propensity).

    Parameters
    ----------
    propensities
        Propensities of the displays, known or estimated; when absent everything is kept.
    c
        Number c of each action, shape (K,): one number for all, or one an action.
    """

    propensities: Propensities
    c: npt.NDArray[np.float64]

    @property
    def keeps_all(self) -> bool:
        """Whether no display is ever left out: then no randomness is needed."""
        return self.propensities.rule is None or bool(np.all(~(self.propensities.largest > self.c)))

    @property
    def clips(self) -> bool:
        """Whether some propensity is below its c: the source of bias of `--accept-quantile`."""
        return self.propensities.rule is not None and bool(np.any(self.propensities.smallest < self.c))

    def kept(self, displays: Columns, draws: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return which displays are kept, shape (n,), given one uniform draw for each.

        The draws are the sampler's, one a display, so that they are the same for all policies.
        """
        kept: npt.NDArray[np.bool_] = draws * self.propensities.of(displays) < self.c[displays["action"]]
        return kept

    def weights(self, displays: Columns) -> npt.NDArray[np.float64]:
        """Return the residual importance weight of each display, shape (n,): 1 unless clipped."""
        return np.maximum(self.c[displays["action"]] / self.propensities.of(displays), 1.0)


def thinning(log: Log, propensities: Propensities, *, per_action: bool, quantile: float = 0.0) -> Thinning:
    """Return how a log is thinned.

    Parameters
    ----------
    log
        Log to thin.
    propensities
        Propensities of the log's displays.
    per_action
        Whether there is a c for each action (non-contextual policies) instead of one for all.
    quantile
        Quantile of the propensities that c is (Dudik et al. 2012): 0, the smallest, is exact; more keeps more rounds at
        the price of bias.
    """
    k = log.n_actions
    if propensities.rule is None:
        return Thinning(propensities, np.ones(k))
    if per_action:
        return Thinning(propensities, propensities.quantiles(log, quantile))
    return Thinning(propensities, np.full(k, propensities.quantile(log, quantile)))
