"""Displays of one time are shuffled by a stated rule, unless the file's order is said to be theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator import replay
from evaluator.datasets import convert, load, read
from evaluator.errors import LogError
from evaluator.log import shuffle_ties
from evaluator.log.contract import tie_order
from evaluator.reading import frames as scan
from evaluator.reading import sorting
from evaluator.reading.sorting import TieShuffler, spools
from tests.logs import build_log
from tests.reading.sources import dataset, write_rows

K, DAYS, A_DAY = 4, 30, 200


def day_stamped(folder: Path, ties: str) -> Path:
    """Uniform displays in day stamps, the file sorted by action within each; conversions half a day later or more."""
    rng = np.random.default_rng(4)
    rows = []
    for day in range(DAYS):
        action = np.sort(rng.integers(0, K, A_DAY))
        sold = rng.random(A_DAY) < 0.2
        rows += [f"{day},{a},{day + rng.integers(1, 4) if s else ''}" for a, s in zip(action, sold, strict=True)]
    return dataset(
        folder, ["t,ad,sold", *rows], time={"unit": "d", "ties": ties}, display={"propensity_kind": "uniform"},
        log={"observed_until": "complete"},
    )  # fmt: skip


def test_a_file_sorted_by_action_within_its_stamps_gives_all_its_rounds(tmp_path: Path) -> None:
    n = DAYS * A_DAY
    # A policy that holds its choice until it matches accepts binomially: 1/K of the displays.
    bound = 4 * np.sqrt(n * (1 / K) * (1 - 1 / K))
    rounds = {}
    for ties in ("shuffle", "file"):
        log = load(day_stamped(tmp_path, ties))
        rounds[ties] = replay(log, "random", window=A_DAY, sampler="keep", seed=1).rounds
        assert log.meta.counts["ties_shuffled" if ties == "shuffle" else "ties_in_file_order"] == n
    assert abs(rounds["shuffle"] - n / K) < bound
    assert rounds["file"] < n / K - 5 * bound


def test_places_within_a_stamp_are_those_of_no_action(tmp_path: Path) -> None:
    place = np.tile(np.arange(A_DAY), DAYS)
    # Variance of a uniform place, over the displays of one action.
    found = {}
    for ties in ("shuffle", "file"):
        action = load(day_stamped(tmp_path, ties)).column("action")
        mean = [place[action == k].mean() for k in range(K)]
        error = [np.sqrt((A_DAY**2 - 1) / 12 / (action == k).sum()) for k in range(K)]
        found[ties] = np.abs(np.array(mean) - (A_DAY - 1) / 2) / error
    assert found["shuffle"].max() < 4
    assert found["file"].max() > 20


def test_delays_in_displays_do_not_depend_on_the_action(tmp_path: Path) -> None:
    # Actions are alike, so that displays between a display and its conversion are too.
    far = {}
    for ties in ("shuffle", "file"):
        log = load(day_stamped(tmp_path, ties))
        of, when = log.conversions["display_id"].to_numpy(), log.conversions["time"].to_numpy()
        between = np.searchsorted(log.column("time"), when) - of
        between, action = between[when < DAYS], log.column("action")[of][when < DAYS]
        error = between.std() * np.sqrt([1 / (action == k).sum() for k in range(K)])
        far[ties] = np.abs([between[action == k].mean() - between.mean() for k in range(K)]) / error
    assert far["shuffle"].max() < 4
    assert far["file"].max() > 4


def test_the_order_within_a_group_is_uniform() -> None:
    # All orders of three displays, over many groups: chi-square with 5 degrees of freedom, mean 5, variance 10.
    groups = 12_000
    order = tie_order(np.repeat(np.arange(groups), 3))
    assert order is not None
    seen = np.unique(order.reshape(groups, 3) - 3 * np.arange(groups)[:, None], axis=0, return_counts=True)[1]
    assert len(seen) == 6
    assert ((seen - groups / 6) ** 2 / (groups / 6)).sum() < 5 + 4 * np.sqrt(10)


TIMES = st.lists(st.integers(0, 4), min_size=2, max_size=40)
OPTIONS = st.fixed_dictionaries({}, optional={"sort": st.just(True), "limit": st.integers(1, 30)})


@settings(max_examples=30, deadline=None)
@given(TIMES, st.integers(1, 9), st.integers(1, 9), OPTIONS, st.integers(0, 3))
def test_the_order_depends_on_nothing_but_the_displays(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[int],
    size: int,
    sorted_in_memory: int,
    options: dict[str, Any],
    margin: int,
) -> None:
    folder = tmp_path_factory.mktemp("ties")
    times = sorted(times)
    lines = [f"{t},{i % 3},{t + i if i % 2 else ''}" for i, t in enumerate(times)]
    spec = dataset(folder, ["t,ad,sold", *lines], log={"observed_until": "complete"})
    whole = outcome(lambda: load(spec))
    expected = outcome(lambda: load(spec, **options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK_ROWS", size)
        patch.setattr(sorting, "RANGE_ROWS", sorted_in_memory)
        patch.setattr("evaluator.reading.reading_plan.MARGIN", margin)
        patch.setattr("evaluator.reading.sorting.HELD_RANGES", 1)
        assert outcome(lambda: convert(spec, folder / "out", **options).log) == expected
    if expected is None:
        return  # refused, so that nothing was written
    if options.get("limit", 0) > 1:
        # The first displays of the log, not those of the file that happen to come first.
        assert outcome(lambda: load(folder / "out", limit=options["limit"])) == expected
        assert whole is None or expected[0] == whole[0][: options["limit"]]
    else:
        assert options.get("limit") or expected == whole


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 15)), min_size=1, max_size=6), st.integers(1, 20),
    st.integers(1, 6), st.none() | st.integers(1, 40), st.randoms(use_true_random=False),
)  # fmt: skip
def test_a_group_too_large_for_memory_is_shuffled_as_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[tuple[int, int]],
    size: int,
    held: int,
    limit: int | None,
    luck: Any,
) -> None:
    # Times are in any order here: rows out of order are refused later, and may not stop the pass.
    times = [time for time, rows in groups for _ in range(rows)]
    frame = pl.DataFrame({"t": times, "row": range(len(times))}, schema={"t": pl.Int64, "row": pl.Int64})
    asked = np.sort(np.array(luck.choices(range(len(times)), k=10)))

    def shuffled(folder: Path | None) -> tuple[list[Any], list[int], int, int]:
        handed: list[pl.DataFrame] = []
        ties = TieShuffler(handed.append, "t", shuffle=True, new_spool=spools(folder), limit=limit)
        for low in range(0, len(times), size):
            ties.add(frame.slice(low, size), asked[(asked >= low) & (asked < low + size)])
        ties.close()
        rows = [row for part in handed for row in part.rows()]
        largest = max(part.height for part in handed)
        return rows, ties.numbers().tolist(), ties.sharing, largest

    *expected, _ = shuffled(None)
    folder = tmp_path_factory.mktemp("group")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "RANGE_ROWS", held)
        patch.setattr(scan, "CHUNK_ROWS", held)
        patch.setattr("evaluator.reading.sorting.HELD_RANGES", 1)
        *found, largest = shuffled(folder)
    assert found == expected
    # What is handed on at a time is a chunk, a group that is held, or what of them is known at once.
    assert largest <= size + held
    assert not list(folder.iterdir())


def outcome(how: Any) -> Any:
    """The displays and conversions of a log, None where it is refused (a single action)."""
    try:
        log = how()
    except LogError:
        return None
    displays = log.displays.select(["time", "action"]).to_pylist()
    return [(d["time"], log.labels[d["action"]]) for d in displays], log.conversions.to_pylist()


def test_a_conversion_follows_its_display(tmp_path: Path) -> None:
    rows = [f"1,{'ab'[i % 2]},{100 + i},{i},{i}" for i in range(50)]
    spec = dataset(
        tmp_path, ["t,ad,sold,gain,id", *rows], conversion={"value": "gain"}, display={"id": "id"}
    )  # fmt: skip
    log = load(spec, keep=["id"])
    of = log.conversions["display_id"].to_numpy()
    kept = np.array(log.displays["id"].to_pylist(), np.int64)
    assert kept.tolist() != list(range(50))
    assert kept[of].tolist() == log.conversions["value"].to_pylist()
    write_rows(tmp_path / "sales.csv", ["id,sold,gain", *[f"{i},{100 + i},{i}" for i in range(50)]])
    source = {"value": "gain", "source": {"files": "sales.csv", "display": "id"}}
    joined = load(dataset(tmp_path, ["t,ad,id", *[f"1,{'ab'[i % 2]},{i}" for i in range(50)]],
                          conversion=source, display={"id": "id"}))  # fmt: skip
    assert joined.conversions.equals(log.conversions)


def test_errors_and_quarantine_name_the_lines_of_the_file(tmp_path: Path) -> None:
    rows = ["t,ad,sold", *["1,a,", "1,b,", "1,a,0", "1,b,0", "1,,"], *["1,a,"] * 5, "0,b,"]
    spec = dataset(tmp_path, rows)
    with pytest.raises(LogError, match=r"'ad': missing \(.*line 6: None\).*line 4: '0', .*line 5: '0'\)"):
        load(spec)
    spec = dataset(tmp_path, [*rows[:-1], "2,b,"])
    left_out = read(spec, on_error="quarantine", quarantine_at_most=1).quarantine.to_pylist()
    assert [(row["line"], row["column"]) for row in left_out] == [(4, "sold"), (5, "sold"), (6, "ad")]
    with pytest.raises(LogError, match=r"line 12: time 0 is earlier than 1"):
        load(dataset(tmp_path, ["t,ad,sold", *["1,a,", "1,b,"] * 5, "0,b,", "0,a,", "0,a,"]))


def test_tidy_logs_say_nothing_of_ties(tmp_path: Path) -> None:
    counts = load(dataset(tmp_path, ["t,ad,sold", "1,a,4", "2,b,", "3,a,9"])).meta.counts
    assert not [name for name in counts if "ties" in name]


def test_a_log_made_by_hand_is_shuffled_on_request() -> None:
    rng = np.random.default_rng(0)
    action, of = np.sort(rng.integers(0, 3, 300)), np.arange(0, 300, 3)
    log = build_log(
        time=np.repeat([1, 5, 9], 100), action=action, conversion_display=of, conversion_time=of + 10, n_actions=3
    )
    shuffled = shuffle_ties(log).validated()
    order = tie_order(log.column("time"))
    assert order is not None
    assert shuffled.column("action").tolist() == action[order].tolist()
    assert sorted(order.tolist()) == list(range(300))
    # Each conversion (its time says of which display) is still that display's.
    time = shuffled.conversions["time"].to_numpy()
    assert (order[shuffled.conversions["display_id"].to_numpy()] == time - 10).all()
    assert shuffle_ties(log, seed=1).column("action").tolist() != shuffled.column("action").tolist()
    alone = build_log(time=[1, 2], action=[0, 1], n_actions=2)
    assert shuffle_ties(alone) is alone


def test_a_log_by_hand_and_the_same_log_from_a_file_have_one_order(tmp_path: Path) -> None:
    log = load(day_stamped(tmp_path, "shuffle"))
    by_hand = shuffle_ties(load(day_stamped(tmp_path, "file")))
    assert by_hand.displays.equals(log.displays)
    assert by_hand.conversions.equals(log.conversions)
