"""Value and uplift in groups: known truth, and who is named."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pyarrow as pa
import pytest

from evaluator import compare, replay
from evaluator.errors import ParameterError
from evaluator.estimates.paired import sums_of
from evaluator.estimates.simultaneous import mean_of, p_of_one_value
from evaluator.log import Log
from evaluator.log.splits import MISSING, read_split
from evaluator.report.comparison import print_comparison
from evaluator.report.console import ReportConsole
from tests.logs import build_log

N, MEANS = 20_000, {"a": (0.2, 0.7), "b": (0.6, 0.1)}


def segment_log(seed: int = 0, **columns: pa.Array) -> Log:
    """Return a log of two actions and two groups, in one of which the second action helps, in the other it harms."""
    rng = np.random.default_rng(seed)
    group, action = rng.integers(0, 2, N), rng.integers(0, 2, N)
    mean = np.array(list(MEANS.values()))[group, action]
    shown = np.flatnonzero(rng.random(N) < mean)
    log = build_log(time=np.arange(N), action=action, conversion_display=shown, conversion_time=shown, n_actions=2)
    displays = log.displays.append_column("kind", pa.array(np.array(list(MEANS))[group]))
    for name, values in columns.items():
        displays = displays.append_column(name, values)
    return replace(log, displays=displays)


def test_policy_that_helps_one_group_and_harms_another() -> None:
    result = replay(segment_log(), "fixed:action=1", by="kind")
    (split,) = result.segments
    uplift = {group.label: group.uplift for group in split.groups}
    for name, (first, second) in MEANS.items():
        assert uplift[name].low <= (second - first) / 2 <= uplift[name].high
    assert uplift["a"].low > 0 > uplift["b"].high
    assert split.test.differ
    assert split.test.p < 1e-6
    assert sum(group.value.n for group in split.groups) == result.rounds
    assert all(group.value.level == pytest.approx(0.95) for group in split.groups)
    assert result.segment_table.num_rows == 2


def test_comparison_shows_the_groups_of_every_line() -> None:
    found = compare(segment_log(), ["fixed:action=0", "fixed:action=1"], by="kind")
    output = StringIO()
    console = ReportConsole(file=output, width=80)
    print_comparison(console, found)
    printed = output.getvalue()
    assert "By kind" in printed
    assert "Line 2: The realised uplift differs between groups" in printed
    assert "Difference to line 1 by kind" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert [len(result.segments) for result in found.results] == [1, 1]


def test_groups_leave_the_replay_as_it_is() -> None:
    log = segment_log()
    plain, split = replay(log, "ucb1"), replay(log, "ucb1", by="kind")
    assert plain.value == split.value
    assert plain.trajectory.equals(split.trajectory)


def test_numbers_are_split_at_quartiles_whose_ties_are_merged() -> None:
    even = np.arange(N) % 1000
    log = segment_log(
        age=pa.array(even.astype(float)), tied=pa.array(np.where(even < 600, 0, even)),
        gaps=pa.array([None if i % 4 == 0 else 1.5 for i in range(N)], pa.float64()),
    )  # fmt: skip
    age = read_split(log, "age")
    assert age.labels == ("0 to 249", "250 to 499", "500 to 749", "750 to 999")
    assert np.bincount(age.code).tolist() == [N // 4] * 4
    assert read_split(log, "tied").labels == ("0", "600 to 749", "750 to 999")
    assert read_split(log, "gaps").labels == ("1.5", MISSING)


def test_words_that_are_numbers_are_cut_where_they_are_more_than_could_be_named() -> None:
    number = np.arange(N) % 100
    log = segment_log(
        age=pa.array(number.astype(str)), code=pa.array(np.char.zfill(number.astype(str), 3)),
        hour=pa.array((number % 10).astype(str)),
    )  # fmt: skip
    assert read_split(log, "age").labels == ("0 to 24", "25 to 49", "50 to 74", "75 to 99")
    assert read_split(log, "code").pooled == 80
    assert set(read_split(log, "hour").labels) == set("0123456789")


def test_small_groups_are_pooled_and_counted() -> None:
    words = np.char.add("w", (np.arange(N) % 1000).astype(str))
    words[: N // 2] = "large"
    split = read_split(segment_log(word=pa.array(words)), "word")
    assert split.labels == ("large", "other (1,000 groups)")
    assert (split.code == 0).sum() == N // 2
    assert split.pooled == 1000
    many = read_split(segment_log(word=pa.array(np.char.add("w", (np.arange(N) % 50).astype(str)))), "word")
    assert len(many.labels) == 21
    assert many.labels[-1] == "other (30 groups)"


def test_unknown_column_is_named() -> None:
    with pytest.raises(ParameterError, match="keeps no column 'city'"):
        replay(segment_log(), "ucb1", by="city")
    with pytest.raises(ParameterError, match="empty column"):
        replay(segment_log(), "ucb1", by="kind,")


def test_difference_keeps_its_level_while_a_policy_drifts() -> None:
    """Two groups of unlike size whose common mean drifts; a logged mean that does not."""
    rng, alpha, wrong, runs = np.random.default_rng(1), 0.05, 0, 200
    for _ in range(runs):
        drift = np.linspace(0.1, 0.6, 3000)
        small = rng.random(3000) < 0.2
        x, y = (rng.random(3000) < drift).astype(float), (rng.random(3000) < 0.1).astype(float)
        p = p_of_one_value(
            [[mean_of(sums_of(x[g], upper=1.0)), mean_of(sums_of(y[g], upper=1.0), sign=-1)] for g in (small, ~small)],
            tuned_at=alpha,
        )
        wrong += p <= alpha
    assert wrong <= runs * alpha + 3 * (runs * alpha * (1 - alpha)) ** 0.5
