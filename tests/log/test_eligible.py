"""Sets of eligible actions: their bits, their breaches, and a log that keeps them whatever it loses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.datasets import load
from evaluator.errors import LogError
from evaluator.log import Log, find_breaches, shuffle_ties
from evaluator.log import eligible as sets_of
from evaluator.log.eligible import SETS, chosen_sets, holds, members, pack, set_codes, sizes, to_bits, unpack, words
from evaluator.log.fingerprint import content_hash
from evaluator.log.schema import to_numpy, uneven_lists
from evaluator.log.vectors_of_displays import in_order
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.rounds import stream
from tests.logs import build_log

N = 300
SET_OF_11 = b"\xff\x07" + bytes(6)
WIDTHS = (2, 7, 8, 9, 64, 65, 200, 600, 1000)
Truths = npt.NDArray[np.bool_]


def random_sets(n: int, n_actions: int, *, seed: int = 0, distinct: int | None = None) -> Truths:
    """Return sets that are not empty, shape (n, K): so many different ones, or each its own."""
    rng = np.random.default_rng(seed)
    found = rng.random((distinct or n, n_actions)) < 0.3
    found[np.arange(len(found)), rng.integers(0, n_actions, len(found))] = True
    return found if distinct is None else found[rng.integers(0, distinct, n)]


def with_sets(n_actions: int = 11, *, distinct: int | None = 5, **given: Any) -> Log:
    rng = np.random.default_rng(1)
    truths = random_sets(N, n_actions, distinct=distinct)
    shown = np.array([rng.choice(np.flatnonzero(row)) for row in truths])
    of = np.sort(rng.choice(N, 40, replace=False))
    time = np.sort(rng.integers(0, 150, N))
    plain: dict[str, Any] = {
        "time": time, "action": shown, "conversion_display": of, "conversion_time": time[of] + 3,
        "n_actions": n_actions, "eligible": truths,
    }  # fmt: skip
    return build_log(**{**plain, **given})


@pytest.mark.parametrize("n_actions", WIDTHS)
@pytest.mark.parametrize("block", [1, 1000, 1 << 24])
def test_bits_say_what_truths_say(monkeypatch: pytest.MonkeyPatch, n_actions: int, block: int) -> None:
    monkeypatch.setattr(sets_of, "_BLOCK", block)
    truths = random_sets(N, n_actions)
    column = pack(truths)
    bits = to_bits(column)
    assert column.type == SETS
    assert bits.shape == (N, -(-n_actions // 64) * 8)
    np.testing.assert_array_equal(unpack(column, n_actions), truths)
    np.testing.assert_array_equal(sizes(bits), truths.sum(axis=1))
    np.testing.assert_array_equal(sizes(np.full_like(bits, 0xFF)), 8 * bits.shape[1])
    # By their numbers: of fewer displays than there are sets, and of more.
    for codes in (np.arange(N)[N - 2 :: -1], np.arange(2 * N) % N):
        np.testing.assert_array_equal(sizes(set_codes(codes, bits)), truths[codes].sum(axis=1))
        begin = np.zeros(len(codes) + 1, np.int64)
        stream.count_before(codes.astype(np.int32), words(bits), begin)
        np.testing.assert_array_equal(np.diff(begin), truths[codes].sum(axis=1))
    first, action = members(bits)
    display, expected = np.nonzero(truths)
    np.testing.assert_array_equal(action, expected)
    np.testing.assert_array_equal(np.repeat(np.arange(N), np.diff(first)), display)
    asked = np.arange(N) % n_actions
    np.testing.assert_array_equal(holds(bits, asked), truths[np.arange(N), asked])
    assert not holds(bits, np.full(N, -1)).any()
    assert not holds(bits, np.full(N, 8 * bits.shape[1])).any()
    kept = np.random.default_rng(2).permutation(n_actions)[: n_actions // 2 + 1]
    np.testing.assert_array_equal(unpack(chosen_sets(column, kept), len(kept)), truths[:, kept])


def test_equal_sets_share_their_bytes_in_and_across_chunks() -> None:
    truths = random_sets(N, 30, distinct=4)
    assert len(pack(truths).dictionary) == 4
    # Sets that differ only in what is left out are equal then.
    assert len(chosen_sets(pack(truths), np.array([3])).dictionary) <= 2
    column = pa.chunked_array([pack(truths[:100]), pack(truths[100:])])
    assert {len(chunk.dictionary) for chunk in sets_of.as_one(column).chunks} == {4}
    np.testing.assert_array_equal(unpack(column, 30), truths)


def test_no_display_has_no_sets() -> None:
    assert to_bits(pack(np.zeros((0, 9), np.bool_))).shape == (0, 0)
    first, action = members(np.zeros((0, 2), np.uint8))
    assert (first.tolist(), action.tolist()) == ([0], [])


def test_a_log_with_sets_is_sound() -> None:
    log = with_sets()
    assert log.validated() is log


def changed(log: Log, row: int, bits: list[int]) -> pa.Array:
    found = log.column("eligible").copy()
    found[row] = [*bits, *[0] * (found.shape[1] - len(bits))]
    return sets_of.packed(found)


@pytest.mark.parametrize(
    ("row", "problem", "value", "remedy"),
    [
        ([0, 0], "no action is eligible", 0, "give the actions that could have been shown"),
        ([255, 9], "a bit that is no action below 11", 11, "leave the bits beyond K unset"),
    ],
)
def test_a_set_that_is_none_is_found(row: list[int], problem: str, value: int, remedy: str) -> None:
    log = with_sets()
    at = log.displays.schema.get_field_index("eligible")
    (breach,) = find_breaches(replace(log, displays=log.displays.set_column(at, "eligible", changed(log, 7, row))))
    assert (breach.column, breach.rows.tolist(), breach.values) == ("eligible", [7], (value,))
    assert (breach.problem, breach.remedy[: len(remedy)]) == (problem, remedy)


def test_the_action_that_was_shown_is_eligible() -> None:
    log = with_sets(2, distinct=None, eligible=np.ones((N, 2), np.bool_), action=[0] * N)
    at = log.displays.schema.get_field_index("eligible")
    wrong = replace(log, displays=log.displays.set_column(at, "eligible", changed(log, 9, [2])))
    found = {b.column: b for b in find_breaches(wrong.with_meta(propensity="logged"))}
    assert found["eligible"].rows.tolist() == [9]
    with pytest.raises(LogError, match=r"eligible: the action that was shown is not eligible \(row 9: 0\)"):
        wrong.with_meta(propensity="logged").validated()


def test_uniform_propensities_are_of_the_display_s_own_set() -> None:
    log = with_sets()
    wrong = with_sets(propensity=np.full(N, 1 / 11), n_actions=11)
    assert [b.column for b in find_breaches(wrong)] == []  # logged as they are
    (breach,) = find_breaches(wrong.with_meta(propensity="uniform"))
    assert breach.column == "propensity"
    np.testing.assert_array_equal(breach.rows, np.flatnonzero(sizes(log.column("eligible")) != 11))
    assert "1 / |E|" in breach.remedy


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (lambda n: pa.array([b"\x01\x00"] * n), "column 'eligible' is binary"),
        (lambda n: pa.array([b"\xff\x07"] * (n - 1) + [None]).dictionary_encode(), r"missing \(row 299: None\)"),
        (
            lambda n: pa.array([SET_OF_11] * 4 + [b"\xff"] + [SET_OF_11] * (n - 5)).dictionary_encode(),
            r"not the 8 bytes of the log's actions \(row 4: 1 bytes\)",
        ),
    ],
)
def test_a_column_that_holds_no_sets_is_found(column: Any, said: str) -> None:
    log = with_sets()
    at = log.displays.schema.get_field_index("eligible")
    with pytest.raises(LogError, match=said):
        replace(log, displays=log.displays.set_column(at, "eligible", column(N))).validated()


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(("n_actions", "distinct"), [(11, 5), (200, None)])
def test_a_stored_log_has_the_sets_it_was_written_with(
    tmp_path: Path, size: int, n_actions: int, distinct: int | None
) -> None:
    log = with_sets(n_actions, distinct=distinct)
    write_canonical(log, tmp_path)
    stored = open_canonical(tmp_path)
    assert stored.schema.equals(log.schema)
    for source in (log, stored):
        found = np.concatenate([batch["eligible"] for _, batch in source.batches(["eligible"], size)])
        np.testing.assert_array_equal(found, log.column("eligible"))
    assert stored.validated() is stored
    assert content_hash(replace(log, displays=stored.displays)) == content_hash(log)
    some = np.array([299, 0, 7, 7])
    for source in (log, stored):
        np.testing.assert_array_equal(
            to_numpy(source.take(some, ["eligible"])["eligible"]), log.column("eligible")[some]
        )
        np.testing.assert_array_equal(source.after(20).column("eligible"), log.column("eligible")[20:])
        np.testing.assert_array_equal(source.until(30).column("eligible"), log.column("eligible")[:30])
        assert source.after(20).validated()


def test_a_stored_set_that_repeats_is_stored_once(tmp_path: Path) -> None:
    found = {}
    for distinct in (3, None):
        (folder := tmp_path / str(distinct)).mkdir()
        write_canonical(with_sets(800, distinct=distinct), folder)
        row_group = pq.read_metadata(folder / "displays.parquet").row_group(0)
        columns = [row_group.column(i) for i in range(row_group.num_columns)]
        found[distinct] = next(c.total_uncompressed_size for c in columns if c.path_in_schema == "eligible")
    assert found[3] < 4 * 100 + N < N * 100 < found[None]


@pytest.mark.parametrize("kind", ["uniform", "logged"])
def test_a_choice_of_actions_chooses_in_every_set(tmp_path: Path, kind: str) -> None:
    log = with_sets()
    log = log if kind == "uniform" else with_sets(propensity=np.full(N, 0.25))
    write_canonical(log, tmp_path)
    chosen = load(tmp_path, actions="a7,a2,a6,a0")
    old = np.array([7, 2, 6, 0])
    rows = np.flatnonzero(np.isin(log.column("action"), old))
    truths = unpack(log.displays["eligible"], 11)[rows][:, old]
    np.testing.assert_array_equal(unpack(chosen.displays["eligible"], 4), truths)
    p = log.column("propensity")[rows]
    np.testing.assert_array_equal(chosen.column("propensity"), p)
    np.testing.assert_array_equal(next(iter(chosen.batches(["propensity"])))[1]["propensity"], p)
    choosable = unpack(log.displays["eligible"], 11)[:, old].any(axis=1)
    assert len(rows) < choosable.sum() < N
    assert chosen.meta.kept_share == len(rows) / choosable.sum()
    assert chosen.meta.propensity == "logged"
    # Where none of them could be shown, no policy would have been asked: delays do not count such displays.
    np.testing.assert_array_equal(chosen.column("position"), np.cumsum(choosable)[rows] - 1)
    assert chosen.validated() is chosen


def test_another_order_of_the_actions_is_one_of_the_bits(tmp_path: Path) -> None:
    log = with_sets()
    write_canonical(log, tmp_path)
    labels = [f"a{k}" for k in (3, 1, 0, 2, 4, 10, 9, 8, 7, 6, 5)]
    old = [log.labels.index(label) for label in labels]
    for source in (log, open_canonical(tmp_path)):
        turned = in_order(source, labels)
        np.testing.assert_array_equal(
            unpack(turned.displays["eligible"], 11), unpack(log.displays["eligible"], 11)[:, old]
        )
        np.testing.assert_array_equal(turned.column("propensity"), log.column("propensity"))
        assert turned.with_meta(propensity="uniform").validated()


def test_a_set_follows_its_display_where_ties_are_shuffled() -> None:
    log = with_sets()
    shuffled = shuffle_ties(log)
    assert (shuffled.column("action") != log.column("action")).any()
    assert shuffled.validated() is shuffled


def test_a_bit_makes_another_log() -> None:
    log = with_sets()
    at = log.displays.schema.get_field_index("eligible")
    other = replace(log, displays=log.displays.set_column(at, "eligible", changed(log, 0, [1, 1])))
    assert content_hash(other) != content_hash(log)
    in_pieces = pa.concat_tables([log.displays.slice(0, 3), log.displays.slice(3)])
    assert content_hash(replace(log, displays=in_pieces)) == content_hash(log)


def with_vectors(counts: npt.NDArray[np.int64] | None = None, **bad: float) -> tuple[Log, npt.NDArray[np.float32]]:
    """Return a log whose eligible actions have vectors: action and display, if not `bad` says otherwise of a row."""
    log = with_sets()
    first, action = members(log.column("eligible"))
    vectors = np.stack([action, np.repeat(np.arange(N), np.diff(first))], axis=1).astype(np.float32)
    for row, value in bad.items():
        vectors[first[int(row[1:])] :, 1][0] = value
    lists = uneven_lists(vectors, np.diff(first) if counts is None else counts)
    return replace(log, displays=log.displays.append_column("action_set", lists)), vectors


def test_only_eligible_actions_have_vectors(tmp_path: Path) -> None:
    log, vectors = with_vectors()
    assert log.validated() is log
    write_canonical(log, tmp_path)
    stored = open_canonical(tmp_path)
    assert stored.displays.equals(log.displays)
    for source in (log, stored):
        np.testing.assert_array_equal(source.column("action_set"), vectors)
        parts = [batch for _, batch in source.batches(["action_set", "eligible"], 7)]
        np.testing.assert_array_equal(np.concatenate([batch["action_set"] for batch in parts]), vectors)
        assert all(len(batch["action_set"]) == sizes(batch["eligible"]).sum() for batch in parts)
    one = next(iter(load(tmp_path, actions="a7,a2,a6").batches(["action_set"])))[1]["action_set"]
    truths = unpack(log.displays["eligible"], 11)[np.isin(log.column("action"), [7, 2, 6])][:, [7, 2, 6]]
    np.testing.assert_array_equal(one[:, 0], np.array([7, 2, 6])[np.nonzero(truths)[1]])


def test_vectors_follow_another_order_of_the_actions(tmp_path: Path) -> None:
    log, _ = with_vectors()
    write_canonical(log, tmp_path)
    labels = log.labels[::-1]
    for source in (log, open_canonical(tmp_path)):
        turned = in_order(source, labels)
        display, action = np.nonzero(unpack(turned.displays["eligible"], 11))
        np.testing.assert_array_equal(turned.column("action_set"), np.stack([10 - action, display], axis=1))
        assert turned.validated()


def test_vectors_that_are_not_those_of_the_set_are_found() -> None:
    log, _ = with_vectors()
    counts = sizes(log.column("eligible"))
    counts[4], counts[5] = counts[4] + 1, counts[5] - 1
    (breach,) = find_breaches(with_vectors(counts)[0])
    assert (breach.column, breach.rows.tolist()) == ("action_set", [4, 5])
    assert breach.values == (f"{counts[4]} vectors", f"{counts[5]} vectors")
    assert breach.problem == "not a vector for each eligible action"
    (breach,) = find_breaches(with_vectors(d9=np.inf)[0])
    assert (breach.column, breach.rows.tolist(), breach.values) == ("action_set", [9], (np.inf,))
    one = replace(log, displays=log.displays.drop(["eligible"]))
    assert [b.column for b in find_breaches(one)] == ["action_set"]  # whose vectors they are, nobody knows


def test_sets_may_stand_before_other_columns(tmp_path: Path) -> None:
    log = with_sets()
    kept = pa.array([f"s{i % 3}" for i in range(N)])
    later = replace(log, displays=log.displays.append_column("shop", kept).append_column("age", pa.array(range(N))))
    write_canonical(later, tmp_path)
    assert open_canonical(tmp_path).displays.equals(later.displays)
