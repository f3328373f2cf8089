"""Sizes and rates of the campaigns, the largest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from evaluator.datasets.criteo.parameters import Campaigns

Floats = npt.NDArray[np.float64]


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
