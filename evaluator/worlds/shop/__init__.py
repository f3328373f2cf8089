"""Draw the made-up shop and write it: its tables, how to read and what to compare on them, and what is true."""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.outputs.atomic import whole_folder
from evaluator.outputs.staging import writing
from evaluator.streams import Stream, random_stream

# What a person would have written; their texts are files of this package.
WRITTEN = ("spec.toml", "study.toml", "README.md")
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


def make_shop(out: Path) -> dict[str, int]:
    """Write the shop's folder; return numbers of rows by name; errors as of `evaluator.datasets.make`."""
    rows = draw()
    texts = {name: importlib.resources.files(__package__).joinpath(name).read_text("utf-8") for name in WRITTEN}
    texts["README.md"] = texts["README.md"].format(folder=out.as_posix(), rates=_rates_as_rows(), **_said())
    texts["study.toml"] = texts["study.toml"].format(spec=json.dumps((out / "spec.toml").as_posix()))
    texts["truth.json"] = json.dumps(truth(), indent=1) + "\n"
    tables = {"displays": _displays(rows), "sales": _sales(rows), "delays": _delays(rows)}
    with whole_folder(out) as folder, writing(out):
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        for name, table in {**tables, "truth": truth_table()}.items():
            # By way of memory: what Polars says of a full disk is no OSError.
            table.write_csv(csv := BytesIO())
            (folder / f"{name}.csv").write_bytes(csv.getvalue())
    return {name: len(table) for name, table in tables.items()}


def truth() -> dict[str, Any]:
    """Return what is true of the shop: laws, and what each way to choose banners earns a display on average."""
    mean = sum(REVENUE) / 2
    earns = mean * (rates() * shares()[:, :, None])
    fixed = dict(zip(BANNERS, earns.sum(axis=(0, 1)).round(6).tolist(), strict=True))
    best = rates().argmax(axis=2)
    return {
        "schema": "evaluate.shop_truth/1",
        "delays": {
            "law": "exponential", "mean_days": MEAN_DELAY_DAYS, "at_most_days": FOLLOWED_DAYS,
            "same_for_all": True,
        },
        "revenue": {"law": "uniform", "low": REVENUE[0], "high": REVENUE[1], "same_for_all": True},
        "value_per_display": {
            "logging policy (each banner with probability 0.25)": round(float(earns.mean(axis=2).sum()), 6),
            **{f"always {banner}": value for banner, value in fixed.items()},
            "the best banner of each device and country": round(float(earns.max(axis=2).sum()), 6),
        },
        "best_banner": {
            device: {country: BANNERS[best[d, c]] for c, country in enumerate(COUNTRIES)}
            for d, device in enumerate(DEVICES)
        },
    }  # fmt: skip


def truth_table() -> pl.DataFrame:
    """Return the share of the displays and the chance of a sale by device, country and banner."""
    devices, countries, banners = map(list, (DEVICES, COUNTRIES, BANNERS))
    d, c, b = (place.ravel() for place in np.indices((len(devices), len(countries), len(banners))))
    return pl.DataFrame(
        {
            "device": np.array(devices)[d],
            "country": np.array(countries)[c],
            "banner": np.array(banners)[b],
            "share_of_displays": (shares()[d, c] / len(banners)).round(6),
            "chance_of_sale": rates()[d, c, b].round(6),
        }
    )


def _displays(rows: ShopRows) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "display_id": _ids(np.arange(len(rows.shown_at))),
            "shown_at": _times(rows.shown_at),
            "banner": np.array(BANNERS)[rows.banner],
            "probability": np.full(len(rows.banner), 1 / len(BANNERS)),
            "device": np.array(list(DEVICES))[rows.device],
            "country": np.array(list(COUNTRIES))[rows.country],
        }
    )


def _sales(rows: ShopRows) -> pl.DataFrame:
    return pl.DataFrame({"display_id": _ids(rows.of), "sold_at": _times(rows.sold_at), "revenue": rows.revenue})


def _delays(rows: ShopRows) -> pl.DataFrame:
    shown_at = rows.shown_at[rows.of]
    left = START + DAYS * DAY_S - shown_at
    return pl.DataFrame(
        {
            "banner": np.array(BANNERS)[rows.banner[rows.of]],
            "delay_s": rows.sold_at - shown_at,
            "followed_s": np.minimum(left, FOLLOWED_DAYS * DAY_S),
        }
    )


def _ids(places: Places) -> list[str]:
    return [f"d{place + 1}" for place in places.tolist()]


def _times(seconds: np.ndarray[Any, np.dtype[np.int64]]) -> pl.Series:
    return pl.from_epoch(pl.Series(seconds)).dt.strftime("%Y-%m-%d %H:%M:%S")


def _rates_as_rows() -> str:
    """Return a row for each device and country, as Markdown."""
    names = [(device, country) for device in DEVICES for country in COUNTRIES]
    of_names = rates().reshape(len(names), -1)
    return "\n".join(
        f"| {device} | {country} | {share:.0%} | " + " | ".join(f"{rate:.0%}" for rate in of_banners) + " |"
        for (device, country), share, of_banners in zip(names, shares().ravel(), of_names, strict=True)
    )


def _said() -> dict[str, Any]:
    """Return the numbers of the README."""
    low, high = REVENUE
    values = {name.split(" (")[0]: f"{value:.3f}" for name, value in truth()["value_per_display"].items()}
    return {
        "displays": f"{DISPLAYS:,}",
        "days": DAYS,
        "mean_delay": MEAN_DELAY_DAYS,
        "followed": FOLLOWED_DAYS,
        "low": low,
        "high": high,
        "banners": " | ".join(BANNERS),
        "values": "\n".join(f"| {name} | {value} |" for name, value in values.items()),
    }


@dataclass(frozen=True)
class ShopRows:
    """Displays in the order of their times, shape (n,) each, and sales in the order of theirs, shape (s,) each.

    Times are seconds since 1970, devices, countries and banners places in the tables above; `of` is the row of the
    display that each sale follows.
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
