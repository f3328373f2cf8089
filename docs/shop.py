"""Write the log of a made-up shop: ``python docs/shop.py shop``, on which the pages' commands run.

Sixty days, four banners shown at random, and what was sold within 30 days of a display; one banner sells more.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import polars as pl

PAGE = Path(__file__).parent / "start" / "own-log.md"
DAY = 86_400
RATES = {"red": 0.15, "green": 0.15, "blue": 0.25, "grey": 0.15}
DISPLAYS = 20_000


def spec() -> str:
    """Return the `spec.toml` that the page on one's own log shows."""
    shown = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    return shown[1]


def write_shop(folder: Path) -> None:
    """Write the spec, the displays and the sales into a new folder."""
    rng = np.random.default_rng(0)
    shown_at = np.sort(rng.integers(0, 60 * DAY, DISPLAYS))
    banner = rng.choice(list(RATES), DISPLAYS)
    device = rng.choice(["phone", "desktop"], DISPLAYS, p=[0.7, 0.3])
    ids = np.array([f"d{i}" for i in range(DISPLAYS)])
    displays = {"display_id": ids, "shown_at": shown_at, "banner": banner, "probability": np.full(DISPLAYS, 0.25)}
    sold = np.flatnonzero(rng.random(DISPLAYS) < np.array([RATES[b] for b in banner]))
    delay = (rng.exponential(2 * DAY, len(sold)) % (30 * DAY)).astype(np.int64)
    sales = pl.DataFrame(
        {"display_id": ids[sold], "sold_at": shown_at[sold] + delay, "revenue": rng.uniform(5, 20, len(sold)).round(2)}
    )
    for name, table in (
        ("displays", pl.DataFrame({**displays, "device": device})),
        ("sales", sales.filter(pl.col("sold_at") < 60 * DAY)),
    ):
        (folder / name).mkdir(parents=True)
        table.write_parquet(folder / name / "part-0.parquet")
    (folder / "spec.toml").write_text(spec(), encoding="utf-8")


if __name__ == "__main__":
    write_shop(Path(sys.argv[1]))
