"""What is true of the made-up shop, and the displays and sales that it brings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from evaluator.streams import Stream, random_stream

DISPLAYS = 20_000
DAYS = 60
FOLLOWED_DAYS = 30
MEAN_DELAY_DAYS = 2
REVENUE = (5, 20)  # uniform, in cents; the same for all
DAY_S = 86_400
START = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
BANNERS = ("red", "green", "blue", "grey")
DEVICES = {"phone": 0.7, "desktop": 0.3}  # shares of the displays
COUNTRIES = {"de": 0.5, "fr": 0.3, "it": 0.2}
# Chance of a sale: of a banner on a device, and what the country adds.
RATES = {"phone": (0.16, 0.12, 0.28, 0.12), "desktop": (0.16, 0.36, 0.16, 0.12)}
ADDED = {"de": 0.02, "fr": -0.01, "it": -0.04}

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ShopRows:
    """Displays in the order of their times, and sales; places are those of the tables above.

    Parameters
    ----------
    shown_at, device, country, banner
        Seconds since 1970 and places, one a display: shape (n,).
    of
        Display of each sale, by its row: shape (s,), in the order of the sales' times.
    sold_at, revenue
        Seconds since 1970, and revenue: shape (s,).
    """

    shown_at: npt.NDArray[np.int64]
    device: Places
    country: Places
    banner: Places
    of: Places
    sold_at: npt.NDArray[np.int64]
    revenue: Floats


def rates() -> Floats:
    """Return the chance of a sale by device, country and banner, shape (2, 3, 4)."""
    of_device = np.array([RATES[device] for device in DEVICES])
    found: Floats = of_device[:, None, :] + np.array([ADDED[country] for country in COUNTRIES])[None, :, None]
    return found


def shares() -> Floats:
    """Return the shares of the displays by device and country, shape (2, 3)."""
    return np.outer(list(DEVICES.values()), list(COUNTRIES.values()))


def draw() -> ShopRows:
    """Return the displays and the sales that came before the log ends; always the same.

    All is drawn as uniform numbers, whose sequence no version of NumPy changes.
    """
    uniform = random_stream(Stream.SHOP, 0).random
    shown_at = START + np.sort((uniform(DISPLAYS) * DAYS * DAY_S).astype(np.int64))
    device = _choose(uniform(DISPLAYS), list(DEVICES.values()))
    country = _choose(uniform(DISPLAYS), list(COUNTRIES.values()))
    banner = _choose(uniform(DISPLAYS), [1 / len(BANNERS)] * len(BANNERS))
    sold = np.flatnonzero(uniform(DISPLAYS) < rates()[device, country, banner])
    # An exponential law within the days that sales are followed for.
    share = -np.expm1(-FOLLOWED_DAYS / MEAN_DELAY_DAYS)
    delay = (-np.log1p(-uniform(len(sold)) * share) * MEAN_DELAY_DAYS * DAY_S).astype(np.int64)
    low, high = REVENUE
    revenue = np.round(low + uniform(len(sold)) * (high - low), 2)
    sold_at = shown_at[sold] + delay
    order = np.argsort(sold_at, kind="stable")
    order = order[sold_at[order] < START + DAYS * DAY_S]
    return ShopRows(shown_at, device, country, banner, sold[order], sold_at[order], revenue[order])


def _choose(uniform: Floats, shares: list[float]) -> Places:
    return np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")
