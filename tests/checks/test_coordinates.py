"""What coordinates of contexts are called, and that the tests by context run whatever that is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluator import check, load
from evaluator.checks.coordinates import cut_contexts
from evaluator.log import Log
from evaluator.log.encoder import ContextEncoder, token_slot

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
    assert "Furthest off: action" in independence.what
    # Groups by a column called day are not the periods, nor is a delay that goes with it a change with time.
    delays = report["delays of young displays"]
    assert (delays.verdict, delays.numbers["by"]) == ("warn", "day = holiday")
    assert "keep the column day and correct by it: `immature='correct:day'`" in delays.remedy


def test_they_bear_the_names_and_values_of_columns(shop: Path, log: Log) -> None:
    cut = cut_contexts(log)
    bins = {cut.name(j): [cut.bin_name(j, b) for b in range(len(cut.edges[j]) + 1)] for j in range(len(cut))}
    assert bins == {
        "day = holiday": ["day != holiday", "day = holiday"],
        "day = workday": ["day != workday", "day = workday"],
        "price": ["price < 6", "6 <= price < 7", "7 <= price < 9", "9 <= price < 10", "price >= 10"],
    }
    nameless = cut_contexts(replace(log, meta=replace(log.meta, encoder=None)))
    assert [nameless.name(j) for j in range(3)] == ["context[0]", "context[1]", "context[2]"]
    hashed = load(shop, features="day:hash=4")
    names = [cut_contexts(hashed).name(j) for j in range(len(cut_contexts(hashed)))]
    places = sorted({token_slot("day", label, 4)[0] for label in ("holiday", "workday")})
    assert names == [f"hash bucket {place} of day" for place in places]


def test_no_two_coordinates_share_a_name(log: Log) -> None:
    labels = tuple("x" * 40 + middle + "y" * 40 for middle in "ab")  # alike once shortened
    day, price = log.meta.encoder.columns if log.meta.encoder is not None else ()
    encoder = ContextEncoder((replace(day, labels=labels), price), 0, intercept=True)
    cut = cut_contexts(replace(log, meta=replace(log.meta, encoder=encoder)))
    assert [cut.name(j) for j in range(3)] == ["context[0]", "context[1]", "price"]


def test_the_one_value_of_most_displays_is_a_group(log: Log) -> None:
    cut = replace(cut_contexts(log), edges=(np.array([]), np.array([]), np.array([0.0, np.nextafter(0.0, 1.0)])))
    assert [cut.bin_name(2, b) for b in range(3)] == ["price < 0", "price = 0", "price > 0"]
