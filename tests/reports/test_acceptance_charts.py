"""What the numbers rest on: the displays read, accepted and worth, as the result counts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.log import Log
from evaluator.reports.curve_charts import Spec
from evaluator.reports.interval_charts import acceptance_chart
from tests.logs import build_log

N = 3_000


@pytest.fixture(scope="module")
def log() -> Log:
    rng = np.random.default_rng(4)
    of = np.flatnonzero(rng.random(N) < 0.3)
    return build_log(time=np.arange(N), action=rng.integers(0, 3, N), conversion_display=of,
                     conversion_time=of + 5, n_actions=3)  # fmt: skip


def rows(chart: Spec | None) -> list[dict[str, Any]]:
    assert chart is not None
    (found,) = chart["datasets"].values()
    return list(found)


def test_a_replay_accepts_of_what_it_read(log: Log) -> None:
    found = replay(log, "ucb1", horizon=200)
    (row,) = rows(acceptance_chart([found]))
    assert row["accepted"] == found.rounds == 200
    # It read no further than its horizon.
    assert 3 * 200 * 0.8 < row["read"] < 3 * 200 * 1.2
    assert row["said"] == f"200 of {row['read']:,.0f} ({found.acceptance_rate:.1%}), worth 200"
    assert "were to be expected" in row["told"]


def test_a_final_policy_has_the_weights_of_its_own_displays(log: Log) -> None:
    found = replay(log, "ucb1", final="last:20%")
    assert found.final is not None
    _, row = rows(acceptance_chart([found]))
    assert (row["of"], row["read"]) == ("final policy", N // 5)
    assert row["worth"] == found.final.weights.effective_sample_size < N // 5


def test_lines_of_a_comparison_stand_below_each_other(log: Log) -> None:
    found = compare(log, ["ucb1", "random"], baseline="ucb1")
    drawn = rows(acceptance_chart(found.results))
    assert [row["accepted"] for row in drawn] == [of.rounds for of in found.results]
    assert [row["read"] for row in drawn] == pytest.approx([N, N])


def test_repeats_count_as_their_mean(log: Log) -> None:
    found = replay(log, "random", repeats=3)
    (row,) = rows(acceptance_chart([found]))
    assert row["accepted"] == found.trajectory.num_rows / 3
    assert row["read"] == pytest.approx(N, rel=0.01)
