"""Write the made-up shop: its tables, how to read and what to compare on them, and what is true."""

from __future__ import annotations

import importlib.resources
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evaluator.datasets.made_files import MadeFiles
from evaluator.datasets.shop import world
from evaluator.outputs.atomic import whole_folder
from evaluator.outputs.failures import writing

# What a person would have written; their texts are files of this package.
WRITTEN = ("spec.toml", "study.toml", "README.md")


def make_shop(out: Path) -> MadeFiles:
    """Write the shop's folder; errors as of `evaluator.datasets.make`."""
    rows = world.draw()
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
    counts = {name: len(table) for name, table in tables.items()}
    return MadeFiles(out, out / "truth.json", out / "truth.csv", counts)


def truth() -> dict[str, Any]:
    """Return what is true of the shop: laws, and what each way to choose banners earns a display on average."""
    mean = sum(world.REVENUE) / 2
    earns = mean * (world.rates() * world.shares()[:, :, None])
    fixed = dict(zip(world.BANNERS, earns.sum(axis=(0, 1)).round(6).tolist(), strict=True))
    best = world.rates().argmax(axis=2)
    return {
        "schema": "evaluate.shop_truth/1",
        "delays": {
            "law": "exponential", "mean_days": world.MEAN_DELAY_DAYS, "at_most_days": world.FOLLOWED_DAYS,
            "same_for_all": True,
        },
        "revenue": {"law": "uniform", "low": world.REVENUE[0], "high": world.REVENUE[1], "same_for_all": True},
        "value_per_display": {
            "logging policy (each banner with probability 0.25)": round(float(earns.mean(axis=2).sum()), 6),
            **{f"always {banner}": value for banner, value in fixed.items()},
            "the best banner of each device and country": round(float(earns.max(axis=2).sum()), 6),
        },
        "best_banner": {
            device: {country: world.BANNERS[best[d, c]] for c, country in enumerate(world.COUNTRIES)}
            for d, device in enumerate(world.DEVICES)
        },
    }  # fmt: skip


def truth_table() -> pl.DataFrame:
    """Return the share of the displays and the chance of a sale by device, country and banner."""
    devices, countries, banners = map(list, (world.DEVICES, world.COUNTRIES, world.BANNERS))
    d, c, b = (place.ravel() for place in np.indices((len(devices), len(countries), len(banners))))
    return pl.DataFrame(
        {
            "device": np.array(devices)[d],
            "country": np.array(countries)[c],
            "banner": np.array(banners)[b],
            "share_of_displays": (world.shares()[d, c] / len(banners)).round(6),
            "chance_of_sale": world.rates()[d, c, b].round(6),
        }
    )


def _displays(rows: world.ShopRows) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "display_id": _ids(np.arange(len(rows.shown_at))),
            "shown_at": _times(rows.shown_at),
            "banner": np.array(world.BANNERS)[rows.banner],
            "probability": np.full(len(rows.banner), 1 / len(world.BANNERS)),
            "device": np.array(list(world.DEVICES))[rows.device],
            "country": np.array(list(world.COUNTRIES))[rows.country],
        }
    )


def _sales(rows: world.ShopRows) -> pl.DataFrame:
    return pl.DataFrame({"display_id": _ids(rows.of), "sold_at": _times(rows.sold_at), "revenue": rows.revenue})


def _delays(rows: world.ShopRows) -> pl.DataFrame:
    shown_at = rows.shown_at[rows.of]
    left = world.START + world.DAYS * world.DAY_S - shown_at
    return pl.DataFrame(
        {
            "banner": np.array(world.BANNERS)[rows.banner[rows.of]],
            "delay_s": rows.sold_at - shown_at,
            "followed_s": np.minimum(left, world.FOLLOWED_DAYS * world.DAY_S),
        }
    )


def _ids(places: world.Places) -> list[str]:
    return [f"d{place + 1}" for place in places.tolist()]


def _times(seconds: np.ndarray[Any, np.dtype[np.int64]]) -> pl.Series:
    return pl.from_epoch(pl.Series(seconds)).dt.strftime("%Y-%m-%d %H:%M:%S")


def _rates_as_rows() -> str:
    """Return a row for each device and country, as Markdown."""
    names = [(device, country) for device in world.DEVICES for country in world.COUNTRIES]
    of_names = world.rates().reshape(len(names), -1)
    return "\n".join(
        f"| {device} | {country} | {share:.0%} | " + " | ".join(f"{rate:.0%}" for rate in of_banners) + " |"
        for (device, country), share, of_banners in zip(names, world.shares().ravel(), of_names, strict=True)
    )


def _said() -> dict[str, Any]:
    """Return the numbers of the README."""
    low, high = world.REVENUE
    values = {name.split(" (")[0]: f"{value:.3f}" for name, value in truth()["value_per_display"].items()}
    return {
        "displays": f"{world.DISPLAYS:,}",
        "days": world.DAYS,
        "mean_delay": world.MEAN_DELAY_DAYS,
        "followed": world.FOLLOWED_DAYS,
        "low": low,
        "high": high,
        "banners": " | ".join(world.BANNERS),
        "values": "\n".join(f"| {name} | {value} |" for name, value in values.items()),
    }
