"""What coordinates of contexts are called, and that the tests by context run whatever that is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator import check, load
from evaluator.log import Log

SPEC = """
name = "shop"
title = "Made"
licence = "internal"
[source]
files = "log.csv"
[time]
unit = "s"
[display]
time = "shown"
action = "banner"
propensity_kind = "uniform"
[conversion]
time = "sold"
[context]
columns = { day = "category", price = "number" }
encoding = "one-hot"
"""
START, N = 1_767_225_600, 6000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the spec of a shop whose logger chose by the kind of day, and whose buyers of workdays take longer."""
    folder, rng = tmp_path_factory.mktemp("shop"), np.random.default_rng(1)
    day = rng.integers(0, 2, N)
    banner = (rng.random(N) < 0.35 + 0.3 * day).astype(int)
    delay = np.where(rng.random(N) < 0.3, rng.exponential(20_000 * (1 + day)), np.inf)
    rows = ["shown,banner,sold,day,price"]
    for i, at in enumerate(np.sort(rng.integers(START, START + 8 * 86_400, N)).tolist()):
        sold = int(at + delay[i]) if at + delay[i] < START + 8 * 86_400 else ""
        rows.append(f"{at},{'ab'[banner[i]]},{sold},{('holiday', 'workday')[day[i]]},{5 + i % 7}")
    (folder / "log.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
    return folder / "spec.toml"


@pytest.fixture(scope="module")
def log(shop: Path) -> Log:
    return load(shop)


def test_the_tests_by_context_run_on_columns_of_any_name(log: Log) -> None:
    report = check(log)
    independence = report["independence"]
    assert independence.verdict == "fail"
    assert independence.numbers["tests"] == 2 * 3  # two kinds of day and the price: by group, and a trend
    assert "Furthest off: action" in independence.means
    # Groups by a column called day are not the periods, nor is a delay that goes with it a change with time.
    delays = report["delays of young displays"]
    assert (delays.verdict, "correct:COLUMN" in delays.do) == ("warn", True)
