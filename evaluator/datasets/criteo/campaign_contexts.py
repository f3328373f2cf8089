"""The truth: how likely each campaign is in each context, and how likely it converts there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.datasets.criteo.campaigns import CampaignTable, campaign_table
from evaluator.datasets.criteo.parameters import TwinParameters
from evaluator.datasets.criteo.quantiles import category_shares
from evaluator.errors import SpecError

Floats = npt.NDArray[np.float64]

GOLDEN = (5**0.5 - 1) / 2
PASSES = 200


class CampaignTruth(NamedTuple):
    """What the rows are drawn from; G contexts, K campaigns.

    Context g is the pair (cat1 = g // classes, class of cat4 = g % classes).
    """

    campaigns: CampaignTable
    context_share: Floats  # (G,)
    joint: Floats  # (G, K), sums to 1
    conversion_rate: Floats  # (G, K): P(the row converts | context, campaign)

    @property
    def propensity(self) -> Floats:
        """P(campaign | context), (G, K)."""
        return np.asarray(self.joint / self.context_share[:, None])


def truth(twin: TwinParameters, *, conversion_rate: float) -> CampaignTruth:
    """Return the truth of a twin of which `conversion_rate` of the rows convert.

    Raises
    ------
    SpecError
        The spec's rates are no probabilities once the effects of the context are applied.
    """
    campaigns = campaign_table(twin.campaigns, conversion_rate=conversion_rate)
    one = category_shares(twin.categories[0])
    four = _class_shares(twin)
    context_share = np.outer(one, four).ravel()
    effect = _effects(twin, len(campaigns.share))
    joint = _fit_margins(effect**twin.contexts.lean, context_share, campaigns.share)
    mean = (joint * effect).sum(axis=0) / campaigns.share
    rate = campaigns.conversion_rate * effect / mean
    if rate.max() >= 1 or (campaigns.click_rate <= campaigns.conversion_rate).any():
        raise SpecError(
            "twin: conversion rates reach 1 in some context, or exceed the click rate of a campaign.",
            hint="lower contexts.effect1, contexts.effect4 or the campaigns' conversion rates.",
        )
    return CampaignTruth(campaigns, context_share, joint, rate)


def class_bounds(twin: TwinParameters) -> list[int]:
    """Return where the classes of cat4 begin and end among its values, commonest first."""
    return [0, *np.cumsum(twin.contexts.classes).tolist()]


def _class_shares(twin: TwinParameters) -> Floats:
    return np.add.reduceat(category_shares(twin.categories[3]), class_bounds(twin)[:-1])


def _effects(twin: TwinParameters, n_campaigns: int) -> Floats:
    """Return 1 + a(cat1, campaign) + b(class of cat4, campaign), (G, K): additive, so that linear policies learn it.

    Cosines of phases that differ from campaign to campaign, so that their order changes with the context.
    """
    k = np.arange(n_campaigns)
    turns = 1 + k % 4
    cat1 = np.arange(twin.categories[0].values)[:, None] / twin.categories[0].values
    cat4 = np.arange(len(twin.contexts.classes))[:, None] / len(twin.contexts.classes)
    first = twin.contexts.effect1 * np.cos(2 * np.pi * (GOLDEN * k + turns * cat1))
    second = twin.contexts.effect4 * np.cos(2 * np.pi * (GOLDEN**2 * k + cat4))
    return np.asarray(1 + (first[:, None, :] + second[None, :, :]).reshape(-1, n_campaigns))


def _fit_margins(start: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the joint distribution nearest to `start` with these margins (iterative proportional fitting)."""
    joint = start * np.outer(rows, columns)
    for _ in range(PASSES):
        joint *= (columns / joint.sum(axis=0))[None, :]
        joint *= (rows / joint.sum(axis=1))[:, None]
    return joint
