"""Every estimator of the value of a policy that does not learn. Adding one is its function and its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluator.estimates.weighted import WeightedValue, doubly_robust, ips, snips


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """An estimator as results name it.

    Parameters
    ----------
    name
        Key of the estimator in results.
    short
        Name of the estimator in sentences.
    title
        Name of the estimator in tables.
    estimate
        Function of the rewards, the target's probabilities and the propensities of the displays, each of shape (n,),
        and by name ``level`` and ``clusters``, such as `evaluator.estimates.weighted.ips`.
    models
        Whether it takes the model of the rewards too: its values of the actions shown, and of the target, shape (n,).
    """

    name: str
    short: str
    title: str
    estimate: Callable[..., WeightedValue]
    models: bool = False


# In the order of results; tables begin with the last.
ESTIMATORS = (
    Estimator(name="ips", short="IPS", title="inverse propensity (IPS)", estimate=ips),
    Estimator(name="snips", short="SNIPS", title="self-normalised (SNIPS)", estimate=snips),
    Estimator(name="dr", short="DR", title="doubly robust (DR)", estimate=doubly_robust, models=True),
)
