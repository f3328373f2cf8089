"""Resampled logs drawn by clusters: whole users come together, keep their distances, and copies come apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator import compare, replay
from evaluator.errors import ParameterError
from evaluator.estimates.standard_errors import clustered_error
from evaluator.log import Log
from evaluator.log.column import Column
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.values import resampled as bootstrap
from evaluator.replays.values.resampled import ClusterDraws, expected_differences
from tests.logs import bernoulli_log

N = 6000


def clusters_of(code: np.ndarray) -> Column:
    return Column("user", code.astype(np.int32), int(code.max()) + 1, 0)


def in_blocks(code: np.ndarray, block: int, seed: int) -> list[np.ndarray]:
    draw = ClusterDraws(clusters_of(code), np.random.default_rng(seed))
    return [at + draw(at, min(block, len(code) - at)) for at in range(0, len(code), block)]


def with_users(log: Log, code: np.ndarray) -> Log:
    return replace(log, displays=log.displays.append_column("user", pa.array(code.astype(str))))


@pytest.mark.parametrize("block", [N, 1000, 700])
def test_all_displays_of_a_cluster_come_equally_often_and_in_their_blocks(block: int) -> None:
    code = np.random.default_rng(0).permutation(np.arange(N) % 300)
    blocks = in_blocks(code, block, seed=1)
    for i, drawn in enumerate(blocks):
        assert drawn.size == 0 or (drawn.min() >= i * block and drawn.max() < (i + 1) * block)
    times = np.bincount(np.concatenate(blocks), minlength=N)
    assert all(len(set(times[code == g].tolist())) == 1 for g in range(300))
    assert times.sum() == N  # 300 clusters of 20 displays are drawn 300 times
    assert times.max() > 1


def test_a_copy_of_a_cluster_moves_as_a_whole() -> None:
    code = np.arange(N) // 20
    drawn = in_blocks(code, N, seed=2)[0]
    alone = np.flatnonzero(np.bincount(code[drawn], minlength=300) == 20)
    assert len(alone) > 50
    for g in alone:
        at = np.flatnonzero(code[drawn] == g)
        order = drawn[at] - 20 * g
        # In their order, but for the one cluster that the end of the block may cut.
        start = int(np.argmin(order))
        assert np.roll(order, -start).tolist() == list(range(20))
    # Each with the few others that came to the same place: far from spread over the block.
    spans = [np.ptp(np.flatnonzero(code[drawn] == g)) for g in alone]
    assert np.median(spans) < 100


def test_copies_do_not_follow_one_another() -> None:
    drawn = in_blocks(np.arange(N) // 20, N, seed=3)[0]
    # Of displays in random order a neighbour is a copy with a probability of 1 / N.
    assert (np.diff(drawn) == 0).sum() <= 1 + 4


def test_clusters_of_one_display_are_drawn_as_single_displays_are() -> None:
    logs = [in_blocks(np.arange(500), 500, seed=s)[0] for s in range(400)]
    place = np.concatenate([np.arange(len(d)) for d in logs])
    assert all(len(d) == 500 for d in logs)
    # Order and display have nothing to do with one another: correlation 0 with an error of 1 / sqrt(n).
    assert abs(np.corrcoef(place, np.concatenate(logs))[0, 1]) < 4 / len(place) ** 0.5
    times = np.array([np.bincount(d, minlength=500) for d in logs])
    assert times.var() == pytest.approx(1 - 1 / 500, abs=4 * (3 / times.size) ** 0.5)


def test_the_spread_is_that_of_clusters() -> None:
    rng = np.random.default_rng(5)
    log = bernoulli_log(N, (0.5, 0.5), mean_delay=5.0, seed=1)
    # Users who convert always or never: with 20 displays each, the design effect of the mean is 20.
    user = rng.permutation(np.arange(N) // 20)
    converts = (rng.random(300) < 0.5)[user]
    kept = np.flatnonzero(converts)
    conversions = pa.table({"display_id": kept, "time": kept, "value": np.ones(len(kept))})
    log = with_users(replace(log, events=conversions), user)
    found = {by: replay(log, "logging", bootstrap=200, cluster_by=by) for by in (None, "user")}
    spread = {by: np.std(result.resampled, ddof=1) for by, result in found.items()}
    true = clustered_error(converts.astype(float), user)
    error = 4 / (2 * 199) ** 0.5
    assert spread["user"] / true == pytest.approx(1, abs=error)
    assert spread[None] / true == pytest.approx(20**-0.5, abs=error * 20**-0.5)


def test_disk_threads_and_company_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "BLOCK", 600)
    monkeypatch.setattr(bootstrap, "TOGETHER", 7)
    log = with_users(bernoulli_log(2000, (0.2, 0.6), mean_delay=5.0, seed=1), np.arange(2000) // 10)
    asked = {"windows": [50], "bootstrap": 20, "cluster_by": "user", "repeats": 2, "propensity": "estimate"}
    write_canonical(log, tmp_path)
    both = compare(log, ["ucb1", "thompson"], baseline="ucb1", **asked)
    stored = compare(open_canonical(tmp_path), ["ucb1", "thompson"], baseline="ucb1", jobs=3, **asked)
    alone = replay(log, "thompson", window=50, **{k: v for k, v in asked.items() if k != "windows"})
    assert both.results[1].resampled == stored.results[1].resampled == alone.resampled
    assert alone.expected_value == stored.results[1].expected_value
    assert "clusters drawn whole" in alone.expected_value.kind


def test_few_clusters_are_refused_or_give_no_interval() -> None:
    log = bernoulli_log(2000, (0.2, 0.6), mean_delay=5.0, seed=1)
    with pytest.raises(ParameterError, match="makes 9 clusters, worth"):
        replay(log, "ucb1", bootstrap=20, cluster_by="every:223")
    # The log has enough of them, but the first rounds are of two.
    results = compare(
        log, ["ucb1", "random"], baseline="ucb1", horizon=60, bootstrap=20, cluster_by="every:100"
    ).results
    assert results[0].clusters is not None
    assert results[0].clusters < 4
    assert np.isnan(results[0].expected_value.low)
    assert any("No interval for the expected value" in line for line in results[0].warnings)
    assert np.isnan(expected_differences(results)[1].low)


def test_a_cluster_column_that_nothing_uses_is_said() -> None:
    log = bernoulli_log(2000, (0.2, 0.6), mean_delay=5.0, seed=1)
    plain, clustered = replay(log, "ucb1"), replay(log, "ucb1", cluster_by="every:10")
    assert clustered.value == plain.value
    assert any("changes no number here" in line for line in clustered.warnings)
    assert any("different clusters (200 by every:10)" in line for line in clustered.assumptions)
    assert plain.plan["clusters"] is None
    assert clustered.plan["clusters"]["count"] == 200
