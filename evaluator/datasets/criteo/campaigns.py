"""Sizes, rates and contexts of the campaigns, the largest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from evaluator.datasets.criteo.parameters import Campaigns, TwinParameters
from evaluator.datasets.criteo.quantiles import category_shares
from evaluator.errors import SpecError

Floats = npt.NDArray[np.float64]
GOLDEN = (5**0.5 - 1) / 2
PASSES = 200


class CampaignTable(NamedTuple):
    """Columns (K,): share of the displays, share of them clicked, share of them converted."""

    share: Floats
    click_rate: Floats
    conversion_rate: Floats


def campaign_table(spec: Campaigns, *, conversion_rate: float) -> CampaignTable:
    """Return the campaigns of a spec.

    Parameters
    ----------
    spec
        Section ``[twin.campaigns]`` of the spec.
    conversion_rate
        Share of all rows that convert; rates are scaled to give it (by 0.1 % with the bundled spec).
    """
    rank = np.arange(1, spec.ranks[-1] + 1)
    size = np.exp(np.interp(rank, spec.ranks, np.log(spec.sizes)))
    share = size / size.sum()
    listed = len(spec.conversion_rates)
    others = rank[listed:]
    converts = spec.conversion_logit_mean + spec.conversion_logit_sd * spread(others, spec.conversion_stride)
    clicks = (
        spec.click_logit_intercept
        + spec.click_logit_slope * converts
        + spec.click_logit_sd * spread(others, spec.click_stride)
    )
    rate = np.concatenate([spec.conversion_rates, expit(converts)])
    return CampaignTable(
        share=share,
        click_rate=np.concatenate([spec.click_rates, expit(clicks)]),
        conversion_rate=rate * (conversion_rate / (share @ rate)),
    )


def spread(rank: npt.NDArray[np.int64], stride: float) -> Floats:
    """Return normal quantiles at multiples of a stride modulo 1: even over the ranks, in no visible order.

    >>> bool(abs(spread(np.arange(1, 666), 0.591).mean()) < 0.02)
    True
    """
    return np.asarray(ndtri(0.001 + 0.998 * np.mod(stride * rank, 1)))


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
