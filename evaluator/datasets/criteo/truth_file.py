"""What the file of a twin was drawn from, for whoever wants to know how far off an estimate is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.criteo.campaign_contexts import CampaignTruth
from evaluator.datasets.criteo.ids import ids
from evaluator.datasets.criteo.journeys import Journeys
from evaluator.datasets.criteo.parameters import TwinParameters
from evaluator.datasets.criteo.text_columns import Categories

SCHEMA = "evaluate.twin_truth/1"
TOP = 10

Floats = npt.NDArray[np.float64]


def truth_document(
    twin: TwinParameters, truth: CampaignTruth, journeys: Journeys, categories: Categories
) -> dict[str, Any]:
    """Return the truth but for its table, ready for JSON.

    Rates: ``conversion_rate`` is P(the row converts); ``reward_rate`` is P(the row carries the conversion) once each
    conversion counts on one row only (`deduplicate` last_click, first_click; or its mean value under share).
    """
    n_rows = len(journeys.row_time)
    once = len(journeys.rows) / n_rows
    t = truth.campaigns
    label = ids("campaign", np.arange(len(t.share)))
    reward = truth.conversion_rate * once
    logged = (truth.joint * reward).sum(axis=1) / truth.context_share
    classes = len(twin.contexts.classes)
    contexts = [
        {
            "context": g,
            "cat1": int(categories.ids[0][g // classes]),
            "cat4": categories.of_class(g % classes).tolist(),
            "share": truth.context_share[g],
            "conversion_rate": logged[g] / once,
            "reward_rate": logged[g],
            "best_campaign": int(label[reward[g].argmax()]),
            "best_reward_rate": reward[g].max(),
            "best_of_top": int(label[reward[g, :TOP].argmax()]),
            "best_of_top_reward_rate": reward[g, :TOP].max(),
        }
        for g in range(len(reward))
    ]
    return {
        "realised": _realised(journeys),
        "rewards_per_converted_row": once,
        "delay": _delay(twin, journeys),
        "top": _top(truth.joint[:, :TOP], reward[:, :TOP], label[:TOP]),
        "campaigns": [
            {"campaign": int(c), "share": s, "click_rate": k, "conversion_rate": q, "reward_rate": q * once}
            for c, s, k, q in zip(label, t.share, t.click_rate, t.conversion_rate, strict=True)
        ],
        "contexts": contexts,
    }


def truth_table(truth: CampaignTruth, *, once: float) -> pl.DataFrame:
    """Return one row per context and campaign: propensity given the context, and rates."""
    contexts, campaigns = truth.joint.shape
    return pl.DataFrame(
        {
            "context": np.repeat(np.arange(contexts), campaigns),
            "campaign": np.tile(ids("campaign", np.arange(campaigns)), contexts),
            "propensity": truth.propensity.ravel(),
            "conversion_rate": truth.conversion_rate.ravel(),
            "reward_rate": truth.conversion_rate.ravel() * once,
        }
    )


def _realised(journeys: Journeys) -> dict[str, int]:
    return {
        "conversion_rows": len(journeys.row_time),
        "conversions": len(journeys.rows),
        "shared_conversions": int((journeys.rows > 1).sum()),
        "attributed_conversions": int(journeys.attributed.sum()),
        "colliding_ids": len(journeys.rows) - len(np.unique(journeys.identity)),
    }


def _delay(twin: TwinParameters, journeys: Journeys) -> dict[str, list[float]]:
    """Return the law of the rows' delays, and how the delays of last clicks came out at its knots."""
    last = journeys.row_position == journeys.rows[journeys.row_journey] - 1
    waited = np.sort((journeys.conversion_time[journeys.row_journey] - journeys.row_time)[last])
    below = np.searchsorted(waited, twin.delays.seconds, side="right") / len(waited)
    return {"seconds": list(twin.delays.seconds), "cdf": list(twin.delays.cdf), "last_click_cdf": below.tolist()}


def _top(joint: Floats, reward: Floats, label: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return values, in rewards per display, on the displays of the largest campaigns (``actions="top:10"``)."""
    share = joint.sum(axis=1) / joint.sum()
    fixed = share @ reward
    return {
        "campaigns": label.tolist(),
        "logged_value": (joint * reward).sum() / joint.sum(),
        "fixed_values": fixed.tolist(),
        "best_fixed_campaign": int(label[fixed.argmax()]),
        "best_fixed_value": fixed.max(),
        "best_by_context_value": share @ reward.max(axis=1),
    }
