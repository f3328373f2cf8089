"""The made-up shop: small, always the same, and as its truth says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

from evaluator import Log, load
from evaluator.datasets import make
from evaluator.errors import OutputExistsError, UnknownNameError, UsageError
from evaluator.worlds import shop as shop_world
from tests.cli.runs import evaluate, validate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("shop", tmp_path_factory.mktemp("made") / "shop").path


@pytest.fixture(scope="module")
def log(shop: Path) -> Log:
    return load(shop / "spec.toml")


def test_it_is_small_and_the_same_to_the_byte(shop: Path, tmp_path: Path) -> None:
    files = {file.name: file.read_bytes() for file in shop.iterdir()}
    assert sum(map(len, files.values())) < 1_500_000
    again = make("shop", tmp_path / "shop").path
    told = {"study.toml", "README.md"}  # they name the folder as it was given
    for name in set(files) - told:
        assert (again / name).read_bytes() == files[name], name
    for name in told:
        assert (again / name).read_text().replace(str(again), "") == files[name].decode().replace(str(shop), "")


def test_nothing_of_it_has_changed(shop: Path) -> None:
    """What pages print rests on these rows; whoever changes them prints the pages anew."""
    displays, sales = (pl.read_csv(shop / f"{name}.csv") for name in ("displays", "sales"))
    assert (len(displays), len(sales), round(sales["revenue"].sum(), 2)) == (20_000, 3_520, 44_258.85)
    assert displays.row(0) == ("d1", "2026-03-01 00:00:40", "blue", 0.25, "phone", "de")
    assert sales.row(0) == ("d13", "2026-03-01 03:10:52", 8.97)


def test_sales_follow_the_truth(shop: Path) -> None:
    rows = shop_world.draw()
    n = len(rows.shown_at)
    old = rows.shown_at < shop_world.START + (shop_world.DAYS - shop_world.FOLLOWED_DAYS) * shop_world.DAY_S
    sold = np.zeros(n, bool)
    sold[rows.of] = True
    truth = pl.read_csv(shop / "truth.csv")
    assert len(truth) == 24
    off = []
    for device, country, banner, share, chance in truth.iter_rows():
        d, c = list(shop_world.DEVICES).index(device), list(shop_world.COUNTRIES).index(country)
        here = (rows.device == d) & (rows.country == c) & (rows.banner == shop_world.BANNERS.index(banner))
        off.append((here.sum() - n * share) / np.sqrt(n * share * (1 - share)))
        judged = here & old
        off.append((sold[judged].sum() - judged.sum() * chance) / np.sqrt(judged.sum() * chance * (1 - chance)))
    # The largest of 48 deviations in standard errors: 4 with a probability of .003.
    assert np.abs(off).max() < 4


def test_delays_and_revenue_follow_the_truth(shop: Path) -> None:
    rows, truth = shop_world.draw(), json.loads((shop / "truth.json").read_text())
    delays = pl.read_csv(shop / "delays.csv")
    assert (delays["delay_s"] <= delays["followed_s"]).all()
    old = rows.shown_at[rows.of] < shop_world.START + (shop_world.DAYS - shop_world.FOLLOWED_DAYS) * shop_world.DAY_S
    days = (rows.sold_at - rows.shown_at[rows.of])[old] / shop_world.DAY_S
    mean = truth["delays"]["mean_days"]  # an exponential law's standard deviation is its mean
    assert abs(days.mean() - mean) < 4 * mean / np.sqrt(len(days))
    low, high = truth["revenue"]["low"], truth["revenue"]["high"]
    assert low <= rows.revenue.min()
    assert rows.revenue.max() <= high
    assert abs(rows.revenue.mean() - (low + high) / 2) < 4 * (high - low) / np.sqrt(12 * len(rows.revenue))


def test_values_follow_from_the_table(shop: Path) -> None:
    truth, table = json.loads((shop / "truth.json").read_text()), pl.read_csv(shop / "truth.csv")
    revenue = (truth["revenue"]["low"] + truth["revenue"]["high"]) / 2
    earns = table.with_columns(earned=pl.col("chance_of_sale") * 4 * pl.col("share_of_displays") * revenue)
    values = truth["value_per_display"]
    for banner in shop_world.BANNERS:
        assert values[f"always {banner}"] == pytest.approx(earns.filter(banner=banner)["earned"].sum())
    best = earns.group_by("device", "country").agg(pl.col("earned").max(), pl.col("banner").sort_by("earned").last())
    assert values["the best banner of each device and country"] == pytest.approx(best["earned"].sum())
    assert {(d, c): b for d, c, b in best.select("device", "country", "banner").iter_rows()} == {
        (d, c): b for d, of in truth["best_banner"].items() for c, b in of.items()
    }
    # The README says the same numbers.
    readme = (shop / "README.md").read_text()
    shown = [float(number) for number in re.findall(r"^\| [a-z ]+ \| ([\d.]+) \|$", readme, re.M)]
    assert shown == [round(value, 3) for value in values.values()]
    rates = [
        int(rate) / 100
        for row in re.findall(r"^\| (?:phone|desktop) .*", readme, re.M)
        for rate in re.findall(r"(\d+)%", row)[1:]
    ]
    assert rates == table["chance_of_sale"].to_list()


def test_its_log_is_read_with_its_contexts(log: Log, shop: Path) -> None:
    assert (len(log), log.conversions.num_rows, sorted(log.labels)) == (20_000, 3_520, sorted(shop_world.BANNERS))
    study = tomllib.loads((shop / "study.toml").read_text())
    assert study["dataset"] == str(shop / "spec.toml")


def test_the_page_on_ones_own_log_shows_the_spec_that_is_written(shop: Path) -> None:
    page = (ROOT / "docs" / "start" / "own-log.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n# shop/spec.toml\n(.*?)```", page, re.DOTALL)
    assert shown == (shop / "spec.toml").read_text(encoding="utf-8")


def test_what_is_there_is_kept(shop: Path) -> None:
    with pytest.raises(OutputExistsError, match="exists"):
        make("shop", shop)


def test_names_and_options_that_do_not_fit_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean shop\?"):
        make("sohp", tmp_path / "x")
    with pytest.raises(UsageError, match="`rows=2000` is of twins"):
        make("shop", tmp_path / "x", rows=2000)
    run = evaluate("datasets", "make", "shop", "-o", str(tmp_path / "x"), "--seed", "1")
    assert (run.code, run.out) == (2, "")
    assert "--seed 1 is of twins" in run.err
    assert list(tmp_path.iterdir()) == []


def test_who_looks_for_it_is_told_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError, match="make it: evaluate datasets make shop -o shop"):
        load("shop")
    assert "evaluate datasets make shop -o shop" in evaluate("datasets", "list").err
    make("shop", "shop")
    assert len(load("shop")) == 20_000  # its folder, in the working folder


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    out = tmp_path / "shop"
    run = evaluate("datasets", "make", "shop", "-o", str(out), "--json")
    assert run.code == 0, run.err
    assert run.json == {
        "schema": "evaluate.made/1", "out": str(out), "truth": str(out / "truth.json"),
        "table": str(out / "truth.csv"), "displays": 20_000, "sales": 3_520, "delays": 3_520,
    }  # fmt: skip
    validate(run.json)
    with pytest.raises(jsonschema.ValidationError):
        validate({**run.json, "rows": 1})
