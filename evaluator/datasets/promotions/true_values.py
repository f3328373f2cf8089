"""What is true of a log of a shop's promotions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.datasets.delay_laws import scenario_laws
from evaluator.datasets.promotions.promotion_log import CUSTOMER, UNSUBSCRIBE
from evaluator.datasets.promotions.promotion_scenario import PromotionsScenario
from evaluator.log import Log
from evaluator.log.eligible import unpack
from evaluator.log.schema import ELIGIBLE, to_numpy

Floats = npt.NDArray[np.float64]


def true_values(scenario: PromotionsScenario, log: Log, folder: Path) -> list[dict[str, Any]]:
    """Return what each way to choose promotions brings a display on average, over the displays of a log drawn from it.

    Expected values given the customers, ages and eligible actions of these displays, so that a replay of the log
    differs from them by the luck of sales and of which displays it accepts, and by nothing else.

    Returns
    -------
    list of dict
        For each way: ``chooses`` in words, ``policy`` (what `evaluate replay` calls it; None where it has no such
        name), ``revenue`` less refunds, ``cost``, ``profit`` and ``unsubscribe`` a display, and ``profit_by``, its
        profit a display for each kind of customers.
    """
    revenue = to_numpy(log.displays["expected_reward"]).astype(np.float64)
    sets = unpack(log.displays[ELIGIBLE], log.n_actions)
    cost, weight, unsubscribes = (
        np.array([getattr(promotion, column) for promotion in scenario.promotions])
        for column in ("cost", "weight", "unsubscribes")
    )
    unsubscribes = unsubscribes * scenario_laws(scenario, folder)[2].reach
    kinds = {kind: np.asarray(log.column(CUSTOMER) == kind) for kind in scenario.customers}

    def values(chooses: str, policy: str | None, chance: Floats) -> dict[str, Any]:
        """Return the values of choosing each action with a chance, shape (n, K), that sums to 1 at each display."""
        earns = (chance * revenue).sum(axis=1)
        costs, leaves = chance @ cost, chance @ unsubscribes
        return {
            "chooses": chooses,
            "policy": policy,
            "revenue": float(earns.mean()),
            "cost": float(costs.mean()),
            "profit": float((earns - costs).mean()),
            UNSUBSCRIBE: float(leaves.mean()),
            "profit_by": {kind: float((earns - costs)[of].mean()) for kind, of in kinds.items() if of.any()},
        }

    evenly = _shares(sets.astype(np.float64))
    best = np.where(sets, revenue - cost, -np.inf).argmax(axis=1)
    return [
        values("as the log was written", None, _shares(weight * sets)),
        values("each eligible promotion alike", "random", evenly),
        *(
            values(
                f"{label} where it is eligible, else each alike",
                f"fixed:action={k}",
                np.where(sets[:, [k]], np.arange(log.n_actions) == k, evenly),
            )
            for k, label in enumerate(log.labels)
        ),
        values("the most profitable for each customer and age", None, np.eye(log.n_actions)[best]),
    ]


def _shares(weights: Floats) -> Floats:
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares
