"""Logs that are a part of their traffic: delays count all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import DataError, LogError
from evaluator.log import Log, StoredLog
from evaluator.log.delay_rows import delay_rows
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.clock import known_delays
from evaluator.replays.rounds.survey import position_of, survey, traffic_until
from tests.logs import bernoulli_log, build_log
from tests.parts import converted, part_of, stored

MEANS = (0.1, 0.2, 0.3, 0.4, 0.5)


@pytest.fixture
def whole() -> Log:
    return bernoulli_log(5_000, MEANS, mean_delay=200.0, seed=1)


def delays_of(log: Log, actions: list[int]) -> list[int]:
    """Delays of the conversions of some actions, in the displays of the log."""
    surveyed = survey(log)
    return surveyed.delay[np.isin(log.column("action")[surveyed.display], actions)].tolist()


@pytest.mark.parametrize("limit", [None, 3_000])
def test_chosen_actions_keep_the_delays_of_the_traffic(whole: Log, tmp_path: Path, limit: int | None) -> None:
    chosen = stored(whole, tmp_path / "whole", actions="a1,a4", limit=limit)
    known = stored(whole, tmp_path / "again", limit=limit)
    assert survey(chosen).delay.tolist() == delays_of(known, [1, 4])
    assert chosen.column("position").tolist() == np.flatnonzero(np.isin(known.column("action"), [1, 4])).tolist()
    assert chosen.validated() is chosen
    rate = len(chosen) / len(known)
    assert abs(survey(chosen).kept - rate) < 5 / len(known)
    # The tempting way, the displays of the log: delays shrink by the share that was kept.
    names = [name for name in chosen.schema.names if name != "position"]
    bare = Log(chosen.displays.select(names), chosen.conversions, chosen.actions, chosen.meta)
    assert np.mean(survey(bare).delay) < 1.2 * rate * np.mean(survey(chosen).delay)


def test_positions_are_kept_by_all_that_is_made_of_a_log(whole: Log, tmp_path: Path) -> None:
    chosen = stored(whole, tmp_path / "whole", actions="a1,a3,a4")
    written = stored(chosen, tmp_path / "written")
    assert written.column("position").tolist() == chosen.column("position").tolist()
    fewer = stored(chosen, tmp_path / "fewer", actions="a1,a4")
    assert survey(fewer).delay.tolist() == delays_of(whole, [1, 4])
    rest = chosen.after(700)
    assert rest.column("position").tolist() == chosen.column("position")[700:].tolist()
    mine = survey(chosen).display >= 700
    assert survey(rest).delay.tolist() == survey(chosen).delay[mine].tolist()
    some = np.array([900, 3, 41])
    assert to_numpy(chosen.take(some, ["position"])["position"]).tolist() == chosen.column("position")[some].tolist()


def test_all_actions_are_all_of_the_traffic(whole: Log, tmp_path: Path) -> None:
    assert "position" not in stored(whole, tmp_path / "all", actions="a4,a3,a2,a1,a0").schema.names


def test_delays_from_counts_the_traffic(whole: Log, tmp_path: Path) -> None:
    chosen = survey(stored(whole, tmp_path / "whole", actions="a1,a4"))
    known = known_delays(chosen, 0.5)
    last = position_of(chosen.log, known.displays - 1)
    follows = last - chosen.position
    seen = (chosen.display < known.displays) & (chosen.delay <= follows)
    assert known.delay.tolist() == chosen.delay[seen].tolist()
    assert known.limit.tolist() == follows[seen].tolist()


def test_between_two_displays_the_dropped_ones_come_at_an_even_pace() -> None:
    rng = np.random.default_rng(2)
    n, share = 40_000, 0.2
    time = np.sort(rng.integers(0, 10_000_000, n))
    keep = rng.random(n) < share
    log = part_of(build_log(time=time, action=np.arange(n) % 2, n_actions=2), keep, position=np.arange(n))
    asked = rng.integers(time[keep][0], time[keep][-1], 20_000)
    error = traffic_until(log, asked)[0] - np.searchsorted(time, asked, side="right")
    # A gap drops a geometric number of displays; up to some time it is binomial about its share of them.
    assert abs(error).max() < np.diff(np.flatnonzero(keep)).max()
    assert abs(error.mean()) < 0.5 + 4 * error.std() / np.sqrt(len(asked))
    # The last display kept before would be short by those dropped since: (1 - share) / share of them.
    last = np.flatnonzero(keep)[np.searchsorted(time[keep], asked, side="right") - 1] + 1
    short = np.searchsorted(time, asked, side="right") - last
    assert short.mean() > 0.8 * (1 - share) / share


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.booleans()), min_size=2, max_size=40),
    st.lists(st.integers(0, 50)),
    st.integers(1, 50),
    st.booleans(),
)
def test_counts_are_the_same_whatever_the_batches(
    shown: list[tuple[int, int, bool]], when: list[int], size: int, weighted: bool
) -> None:
    shown = sorted(shown)
    time = np.array([t for t, _, _ in shown])
    log = build_log(time=time, action=[i % 2 for i in range(len(shown))], n_actions=2)
    if weighted:
        log = part_of(log, np.ones(len(shown), bool), weight=np.array([w / 4 for _, w, _ in shown]))
    else:
        keep = np.array([k for _, _, k in shown])
        keep[[0, -1]] = True
        log = part_of(log, keep, position=np.arange(len(shown)))
    asked = np.array([max(w, time[0]) for w in when], np.int64)
    found = traffic_until(log, asked)[0]
    original = Log.batches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "batches", lambda self, columns: original(self, columns, size))
        assert traffic_until(log, asked)[0].tolist() == found.tolist()
        assert [position_of(log, i) for i in range(len(log))] == list(traffic_at_displays(log))
    if weighted:
        weight = log.column("weight")
        assert found.tolist() == [round(float(weight[time <= t].sum())) for t in asked.tolist()]
    else:
        position = log.column("position")
        after = np.searchsorted(log.column("time"), asked, side="right")
        last = position[np.maximum(after - 1, 0)]
        following = np.append(position, position[-1] + 1)[after]
        assert np.all(found > last)
        assert np.all(found <= following)


def traffic_at_displays(log: Log) -> list[int]:
    if "position" in log.schema.names:
        return log.column("position").tolist()
    return [round(float(total)) - 1 for total in np.cumsum(log.column("weight"))]


def test_weights_count_the_traffic(whole: Log, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    p = np.where(converted(whole), 1.0, 0.1)
    keep = rng.random(len(whole)) < p
    log = part_of(whole, keep, weight=1 / p)
    surveyed, full = survey(log), survey(whole)
    assert np.array_equal(surveyed.display, np.flatnonzero(converted(log)))  # every conversion was kept
    # A delay of D displays, of which a share q does not convert, is estimated with variance 9 q D at most.
    error = surveyed.delay - full.delay
    assert abs(error.mean()) < 4 * np.sqrt(9 * full.delay.mean())
    plain = survey(part_of(whole, keep)).delay
    assert plain.mean() < 0.5 * full.delay.mean()
    assert abs(surveyed.rate - 1.0) < 4 * np.sqrt(9 / len(whole))
    # Choosing actions counts the weights of those left out, too.
    chosen = stored(log, tmp_path / "weighted", actions="a1,a4")
    mine = np.isin(log.column("action")[surveyed.display], [1, 4])
    assert np.abs(survey(chosen).delay - surveyed.delay[mine]).max() <= 10 * np.diff(chosen.column("position")).max()
    assert abs(np.mean(survey(chosen).delay - surveyed.delay[mine])) < 0.1 * full.delay.mean()
    assert (
        chosen.column("position").tolist()
        == (np.rint(np.cumsum(log.column("weight")))[np.isin(log.column("action"), [1, 4])] - 1).tolist()
    )


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("weight", [1.0, 0.0, 2.0, 3.0], r"displays.weight: no weight above 0 \(row 1: 0"),
        ("weight", [1.0, 2.0, np.nan, 3.0], r"displays.weight: no weight above 0 \(row 2: nan"),
        ("weight", [1.0, 2.0, 3.0, np.inf], r"row 3: inf"),
        ("weight", [1, 2, 3, 4], "cast it to double"),
        ("position", [0, 5, 3, 9], r"displays.position: below 0 or the row before \(row 2: 3"),
        ("position", [-2, 5, 7, 9], r"row 0: -2"),
    ],
)
def test_breaches_are_named(column: str, values: list[float], said: str) -> None:
    log = part_of(
        build_log(time=range(4), action=[0, 1, 0, 1], n_actions=2), np.ones(4, bool), **{column: np.array(values)}
    )
    with pytest.raises(LogError, match=said):
        log.validated()


@pytest.mark.parametrize("rate", [0.0, 1e-320, 7.0, float("nan")])
def test_an_impossible_share_of_the_traffic_is_a_breach(rate: float) -> None:
    log = build_log(time=range(4), action=[0, 1, 0, 1], n_actions=2, sampling_rate=rate)
    with pytest.raises(LogError, match=r"sampling_rate = .* is no share"):
        log.validated()


def test_rates_and_delays_of_a_study_are_those_of_the_traffic(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    whole = bernoulli_log(50_000, MEANS, mean_delay=200.0, seed=5)
    full = delay_rows(whole)
    assert delay_rows(whole.with_meta(sampling_rate=0.1)).rate == pytest.approx(10 * full.rate)
    assert delay_rows(stored(whole, tmp_path / "whole", actions="a1,a4")).rate == pytest.approx(full.rate, rel=1e-3)
    p = np.where(converted(whole), 1.0, 0.1)
    keep = rng.random(len(whole)) < p
    weighted = delay_rows(part_of(whole, keep, weight=1 / p))
    assert weighted.rate == pytest.approx(full.rate, rel=0.02)
    error = 4 * np.sqrt(9 * len(whole))  # a display that does not convert counts as 0 or 10, with variance 9
    assert weighted.displays is not None
    assert weighted.periods is not None
    assert abs(weighted.displays - len(whole)) < error
    assert abs(int(weighted.periods.displays.sum()) - len(whole)) < error
    uneven = part_of(whole, keep, weight=np.where(whole.column("action") == 1, 3.0, 1 / p))
    with pytest.raises(DataError, match="conversions with display weights from 1 to 3"):
        delay_rows(uneven)


def test_a_selection_that_drops_nothing_is_the_file(whole: Log, tmp_path: Path) -> None:
    log = stored(whole, tmp_path / "whole")
    assert not log.selection.drops
    assert replace(log.selection, kept=3, passed=2, rows=6).drops
    assert isinstance(log, StoredLog)
