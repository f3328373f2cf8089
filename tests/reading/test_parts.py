"""Logs that hold a part of the traffic, as files and converted folders say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.datasets import convert, load
from evaluator.errors import LogError, SpecError, UsageError
from evaluator.log import Log
from tests.reading.sources import dataset

N, K = 400, 4


def rows(p: Any = None, w: Any = None, seed: int = 1) -> list[str]:
    """Displays a second apart; p and w give the propensity and the weight from row and action."""
    rng = np.random.default_rng(seed)
    lines = ["t,ad,sold,p,w"]
    for i in range(N):
        a = int(rng.integers(K))
        sold = i + int(rng.integers(50)) if rng.random() < 0.3 else ""
        lines.append(f"{i},{'abcd'[a]},{sold},{p(i, a) if p else ''},{w(i, a) if w else ''}")
    return lines


def both(tmp_path: Path, lines: list[str], display: dict[str, Any], actions: str, **sections: Any) -> tuple[Log, Log]:
    """The log of some actions, chosen while the file is read, and when a converted folder is."""
    spec = dataset(tmp_path, lines, display=display, **sections)
    convert(spec, tmp_path / "whole")
    return load(spec, actions=actions), load(tmp_path / "whole", actions=actions)


def same(one: Log, two: Log) -> None:
    assert one.displays.select(two.schema.names).equals(two.displays)
    assert sorted(one.schema.names) == sorted(two.schema.names)
    assert one.conversions.equals(two.conversions)
    assert (one.meta.kept_share, one.meta.notes) == (two.meta.kept_share, two.meta.notes)


def test_uniform_propensities_are_those_of_the_chosen_actions(tmp_path: Path) -> None:
    one, two = both(tmp_path, rows(), {"propensity_kind": "uniform"}, "b,d")
    same(one, two)
    assert set(one.column("propensity").tolist()) == {1 / 2}
    assert one.meta.kept_share == 1.0


def test_constant_propensities_are_made_to_sum_to_1(tmp_path: Path) -> None:
    logger = (0.1, 0.2, 0.3, 0.4)
    one, two = both(tmp_path, rows(lambda i, a: logger[a]), {"propensity": "p"}, "d,b")
    same(one, two)
    p = one.column("propensity")
    assert set(p[one.column("action") == 0].tolist()) == {0.4 / (0.4 + 0.2)}
    assert set(p[one.column("action") == 1].tolist()) == {0.2 / (0.4 + 0.2)}
    assert one.meta.kept_share == 1.0
    assert "sum to 1" in one.meta.notes[-1]


def test_propensities_that_depend_on_the_display_stay_and_the_log_says_so(tmp_path: Path) -> None:
    one, two = both(tmp_path, rows(lambda i, a: (0.1 + 0.2 * (i % 2), 0.2, 0.3, 0.4)[a]), {"propensity": "p"}, "a,b")
    same(one, two)
    assert set(one.column("propensity")[one.column("action") == 0].tolist()) == {0.1, 0.1 + 0.2}
    assert one.meta.kept_share == len(one) / N
    assert "depend on the display" in one.meta.notes[-1]
    # Actions whose propensities do not vary have a known sum, whatever the others do.
    assert load(tmp_path / "whole", actions="b,c").meta.kept_share == 1.0
    # Choosing again multiplies what was kept.
    written = convert(tmp_path / "whole", tmp_path / "three", actions="a,b,c").log
    assert load(tmp_path / "three", actions="a,b").meta.kept_share == pytest.approx(one.meta.kept_share)
    assert written.meta.kept_share > one.meta.kept_share


def test_positions_number_the_traffic(tmp_path: Path) -> None:
    one, two = both(tmp_path, rows(), {}, "c,a")
    same(one, two)
    assert one.column("position").tolist() == one.column("time").tolist()
    assert convert(tmp_path / "spec.toml", tmp_path / "some", actions="c,a").log.displays.equals(two.displays)
    assert "position" not in load(tmp_path / "spec.toml").schema.names


def test_weights_are_kept(tmp_path: Path) -> None:
    display = {"weight": "w", "propensity": "p"}
    one, two = both(tmp_path, rows(lambda i, a: 0.1 + 0.1 * (i % 2), lambda i, a: 1.5 + a), display, "a,b")
    same(one, two)
    whole = load(tmp_path / "whole")
    assert whole.column("weight").tolist() == (1.5 + whole.column("action")).tolist()
    assert whole.displays.select(["weight"]).equals(load(tmp_path / "spec.toml").displays.select(["weight"]))
    mine = whole.column("action") <= 1
    total = np.cumsum(whole.column("weight"))
    assert one.column("position").tolist() == (np.rint(total[mine]).astype(int) - 1).tolist()
    assert one.meta.kept_share == pytest.approx(whole.column("weight")[mine].sum() / total[-1])


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "", "inf", "many"])
def test_a_weight_that_is_none_is_named_by_line(tmp_path: Path, weight: str) -> None:
    spec = dataset(tmp_path, ["t,ad,sold,w", "1,a,,1", f"2,b,,{weight}"], display={"weight": "w"})
    with pytest.raises(LogError, match=r"Column 'w': .*log\.csv line 3:"):
        load(spec)


def test_what_decides_on_keeping_a_display_is_no_group(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="known only after the outcome"):
        load(dataset(tmp_path, rows(w=lambda i, a: 1), display={"weight": "w"}), keep=["w"])


def test_the_sampling_rate_is_said_in_the_spec_or_when_reading(tmp_path: Path) -> None:
    spec = dataset(tmp_path, rows(), log={"sampling_rate": 0.1})
    assert load(spec).meta.sampling_rate == 0.1
    assert load(spec, sampling_rate=0.5).meta.sampling_rate == 0.5
    assert convert(spec, tmp_path / "out", sampling_rate=0.25).log.meta.sampling_rate == 0.25
    assert load(tmp_path / "out").meta.sampling_rate == 0.25
    assert load(tmp_path / "out", sampling_rate=1).meta.sampling_rate == 1
    assert load("synthetic", limit=100, sampling_rate=0.5).meta.sampling_rate == 0.5
    for rate in (0, -1, 1e-320, 1.5, float("nan")):
        with pytest.raises(UsageError, match="sampling_rate="):
            load(spec, sampling_rate=rate)
    with pytest.raises(SpecError, match=r"log\.sampling_rate"):
        load(dataset(tmp_path, rows(), log={"sampling_rate": 2}))
