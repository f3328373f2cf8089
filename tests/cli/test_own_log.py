"""The walk with one's own log of docs/start/own-log.md: spec, validate, convert, dry run, replay."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evaluator import Log, load, replay
from tests.cli.runs import evaluate

PAGE = Path(__file__).parents[2] / "docs" / "start" / "own-log.md"
DAY = 86_400


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The page's spec beside files of its layout: 60 days, four banners, sales within 30 days."""
    spec = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert spec is not None
    (tmp_path / "spec.toml").write_text(spec[1], encoding="utf-8")
    rng = np.random.default_rng(0)
    n = 4000
    shown_at = np.sort(rng.integers(0, 60 * DAY, n))
    displays = pl.DataFrame(
        {
            "display_id": [f"d{i}" for i in range(n)],
            "shown_at": shown_at,
            "banner": rng.choice(["red", "green", "blue", "grey"], n),
            "probability": np.full(n, 0.25),
        }
    )
    bought = np.flatnonzero(rng.random(n) < 0.2)
    sold_at = shown_at[bought] + (rng.exponential(2 * DAY, len(bought)) % (30 * DAY)).astype(np.int64)
    sales = pl.DataFrame(
        {"display_id": [f"d{i}" for i in bought], "sold_at": sold_at, "revenue": rng.uniform(0.5, 2, len(bought))}
    ).filter(pl.col("sold_at") < 60 * DAY)
    for name, frame in (("displays", displays), ("sales", sales)):
        (tmp_path / name).mkdir()
        frame.write_parquet(tmp_path / name / "part-0.parquet")
    return tmp_path


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
    assert any("largest reward seen" in w for w in run.json["warnings"])
    assert (shop / "run1" / "trajectory.parquet").exists()


def test_the_unit_of_revenue_does_not_matter(shop: Path) -> None:
    words = ("replay", "-d", str(shop / "spec.toml"), "-p", "klucb", "-w", "7d", "--json")
    euros = evaluate(*words).json
    assert any("as shares of" in said and "hindsight" in said for said in euros["assumptions"])
    file = shop / "sales" / "part-0.parquet"
    pl.read_parquet(file).with_columns(pl.col("revenue") * 64).write_parquet(file)
    other = evaluate(*words).json
    assert other["action_share"] == euros["action_share"]
    for end in ("estimate", "low", "high"):
        assert other["value"][end] == pytest.approx(64 * euros["value"][end], rel=1e-9)


def test_bad_rows_stop_or_go_to_quarantine(shop: Path) -> None:
    file = shop / "displays" / "part-0.parquet"
    frame = pl.read_parquet(file)
    frame.with_columns(
        probability=pl.when(pl.int_range(pl.len()) == 17).then(0.0).otherwise(pl.col("probability"))
    ).write_parquet(file)
    words = ("replay", "-d", str(shop / "spec.toml"), "-p", "ucb1", "-w", "7d")
    stopped = evaluate(*words)
    assert stopped.code == 3
    assert "propensity 0" in stopped.err
    assert "part-0.parquet" in stopped.err
    assert stopped.out == ""
    left_out = evaluate(*words, "--on-error", "quarantine", "--out", str(shop / "run"), "--json")
    assert left_out.code == 0, left_out.err
    assert left_out.json["plan"]["counts"]["quarantined"] == 1
    quarantine = pl.read_parquet(shop / "run" / "quarantine.parquet")
    assert quarantine.height == 1
    assert evaluate("datasets", "validate", str(shop / "spec.toml"), "--on-error", "quarantine").code == 3


def test_contextual_policy_without_propensities_is_refused_with_the_choices(shop: Path) -> None:
    spec = shop / "spec.toml"
    words = spec.read_text().replace('propensity = "probability"\n', "")
    spec.write_text(words + '\n[context]\ncolumns = ["probability"]\nencoding = "number"\n')
    refused = evaluate("replay", "-d", str(spec), "-p", "otflinucb", "-w", "7d")
    assert refused.code == 3
    for choice in ("uniform", "estimate", "estimate:context"):
        assert choice in refused.err
    for choice in ("uniform", "estimate"):
        run = evaluate("replay", "-d", str(spec), "-p", "otflinucb", "-w", "7d", "--propensity", choice, "--json")
        assert run.code == 0, run.err
        kind = {"uniform": "uniform", "estimate": "estimated"}[choice]
        assert run.json["plan"]["propensity"] == kind
        assert any(kind in a or "uniformly" in a for a in run.json["assumptions"])


def test_young_displays_are_corrected_by_a_column_of_the_source(shop: Path) -> None:
    part = shop / "displays" / "part-0.parquet"
    displays = pl.read_parquet(part)
    displays.with_columns(device=pl.Series(["phone", "desktop"] * (len(displays) // 2))).write_parquet(part)
    spec, log = str(shop / "spec.toml"), str(shop / "shop-log")
    words = ("--policy", "random", "--immature", "correct:device", "--json")
    run = evaluate("replay", "--dataset", spec, *words)
    assert run.code == 0, run.err
    assert any("depends on its action and device" in said for said in run.json["assumptions"])
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
