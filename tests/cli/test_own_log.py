"""The walk with one's own log of docs/start/own-log.md: spec, validate, convert, dry run, replay."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from evaluator import Log, load, replay
from evaluator.datasets import make
from tests.cli.runs import evaluate, sentences

PAGE = Path(__file__).parents[2] / "docs" / "start" / "own-log.md"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Every fifth display of the bundled shop, with its sales: 60 days, four banners, sales within 30 days."""
    folder = make("shop", tmp_path / "shop").path
    displays = pl.read_csv(folder / "displays.csv").gather_every(5)
    displays.write_csv(folder / "displays.csv")
    kept = pl.col("display_id").is_in(displays["display_id"].implode())
    pl.read_csv(folder / "sales.csv").filter(kept).write_csv(folder / "sales.csv")
    return folder


def test_the_frames_of_the_page_are_the_log_of_its_spec(shop: Path) -> None:
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    made: dict[str, object] = {}
    exec(block[1].replace('"shop/', f'"{shop}/'), made)
    log, same = made["log"], load(shop / "spec.toml")
    assert isinstance(log, Log)
    assert log.displays.equals(same.displays)
    assert log.conversions.equals(same.conversions)
    assert log.actions.equals(same.actions)


def test_the_walk(shop: Path) -> None:
    spec, log = str(shop / "spec.toml"), str(shop / "shop-log")
    assert evaluate("datasets", "validate", spec).code == 0
    assert evaluate("datasets", "convert", spec, log).code == 0
    words = ("replay", "--dataset", log, "--policy", "delayed-klucb", "--window", "7d")
    plan = evaluate(*words, "--dry-run").json
    # 4,000 displays in 60 days: seven days bring about 467.
    assert 420 < plan["window_rounds"] < 510
    # Half of the log is younger than the attribution window and cannot be judged yet.
    assert 0.4 < plan["displays_immature"] / plan["displays"] < 0.6
    run = evaluate(*words, "--out", str(shop / "run1"), "--json")
    assert run.code == 0, run.err
    assert run.json["live_days"] > 0
    assert any("largest reward seen" in w for w in sentences(run.json))
    assert (shop / "run1" / "trajectory.parquet").exists()


def test_the_unit_of_revenue_does_not_matter(shop: Path) -> None:
    words = ("replay", "-d", str(shop / "spec.toml"), "-p", "klucb", "-w", "7d", "--json")
    euros = evaluate(*words).json
    assert any("as shares of" in said and "hindsight" in said for said in sentences(euros))
    file = shop / "sales.csv"
    pl.read_csv(file).with_columns(pl.col("revenue") * 64).write_csv(file)
    other = evaluate(*words).json
    assert other["action_share"] == euros["action_share"]
    for end in ("estimate", "low", "high"):
        assert other["value"][end] == pytest.approx(64 * euros["value"][end], rel=1e-9)


def test_bad_rows_stop_or_go_to_quarantine(shop: Path) -> None:
    file = shop / "displays.csv"
    frame = pl.read_csv(file)
    frame.with_columns(
        probability=pl.when(pl.int_range(pl.len()) == 17).then(0.0).otherwise(pl.col("probability"))
    ).write_csv(file)
    words = ("replay", "-d", str(shop / "spec.toml"), "-p", "ucb1", "-w", "7d")
    stopped = evaluate(*words)
    assert stopped.code == 3
    assert "propensity 0" in stopped.err
    assert "displays.csv" in stopped.err
    assert stopped.out == ""
    left_out = evaluate(*words, "--on-error", "quarantine", "--out", str(shop / "run"), "--json")
    assert left_out.code == 0, left_out.err
    assert left_out.json["plan"]["counts"]["quarantined"] == 1
    quarantine = pl.read_parquet(shop / "run" / "quarantine.parquet")
    assert quarantine.height == 1
    assert evaluate("datasets", "validate", str(shop / "spec.toml"), "--on-error", "quarantine").code == 3


def test_contextual_policy_without_propensities_is_refused_with_the_choices(shop: Path) -> None:
    spec = shop / "spec.toml"
    spec.write_text(spec.read_text().replace('propensity = "probability"\n', ""))
    refused = evaluate("replay", "-d", str(spec), "-p", "otflinucb", "-w", "7d")
    assert refused.code == 3
    for choice in ("uniform", "estimate", "estimate:context"):
        assert choice in refused.err
    for choice in ("uniform", "estimate"):
        run = evaluate("replay", "-d", str(spec), "-p", "otflinucb", "-w", "7d", "--propensity", choice, "--json")
        assert run.code == 0, run.err
        kind = {"uniform": "uniform", "estimate": "estimated"}[choice]
        assert run.json["plan"]["propensity"] == kind
        assert any(kind in a or "uniformly" in a for a in sentences(run.json))


def test_young_displays_are_corrected_by_a_column_of_the_source(shop: Path) -> None:
    spec, log = str(shop / "spec.toml"), str(shop / "shop-log")
    words = ("--policy", "random", "--immature", "correct:device", "--json")
    run = evaluate("replay", "--dataset", spec, *words)
    assert run.code == 0, run.err
    assert any("depends on its action and device" in said for said in sentences(run.json))
    in_python = replay(spec, "random", immature="correct:device")
    assert in_python.value.estimate == run.json["value"]["estimate"]
    compared = evaluate("compare", "--dataset", spec, "-p", "fixed", *words)
    assert compared.code == 0, compared.err
    # A converted log has the columns that it was told to keep.
    assert evaluate("datasets", "convert", spec, log).code == 0
    refused = evaluate("replay", "--dataset", log, *words)
    assert refused.code != 0
    assert "--keep device" in refused.err
    other = str(shop / "shop-log-2")
    assert evaluate("datasets", "convert", spec, other, "--keep", "device").code == 0
    assert evaluate("replay", "--dataset", other, *words).json["value"] == run.json["value"]
