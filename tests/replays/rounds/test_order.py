"""Other orders of a log: whole, roughly in time, and with each display all that belongs to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.log.schema import to_numpy
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.rounds.stream import BLOCK, LogOrder
from tests.logs import bernoulli_log, linear_log
from tests.replays.test_scan import same, softmax_log

N = 5 * BLOCK + 300
ARMS = bernoulli_log(N, [0.5, 0.3, 0.2], mean_delay=40.0, seed=1, logger=[0.5, 0.3, 0.2])
ACTIONS = linear_log(N, n_actions=3, dimension=5, mean_delay=40.0, seed=1, temperature=0.5)


def test_an_order_is_whole_within_blocks_and_the_same_however_it_is_read() -> None:
    whole = LogOrder.of_repeat(3, 1).next(N)
    np.testing.assert_array_equal(whole // BLOCK, np.arange(N) // BLOCK)
    np.testing.assert_array_equal(np.sort(whole), np.arange(N))
    parts = LogOrder.of_repeat(3, 1)
    read = [parts.next(2 * BLOCK), 2 * BLOCK + parts.next(BLOCK), 3 * BLOCK + parts.next(N - 3 * BLOCK)]
    np.testing.assert_array_equal(np.concatenate(read), whole)


def test_places_within_a_block_are_evenly_spread() -> None:
    places = LogOrder.of_repeat(0, 1).next(2000 * BLOCK).reshape(-1, BLOCK) % BLOCK
    # The mean place of where display 0 of a block goes, and of its last one, is the middle.
    error = BLOCK / 12**0.5 / 2000**0.5
    for display in (0, BLOCK - 1):
        assert abs((places == display).argmax(axis=1).mean() - (BLOCK - 1) / 2) < 4 * error


def test_repeats_and_seeds_have_orders_of_their_own() -> None:
    orders = [LogOrder.of_repeat(seed, repeat).next(BLOCK) for seed in (1, 2) for repeat in (1, 2)]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            # Of a block as many displays keep their place as of a random order: one on average.
            assert (one == other).sum() < 8


@pytest.mark.parametrize(
    ("log", "policy", "options"),
    [
        (ARMS, "thompson", {"sampler": "keep"}),
        (ARMS, "ucb1", {"sampler": "rejection"}),
        (ARMS, "delayed-klucb", {"sampler": "queue"}),
        (ARMS, "logging", {}),
        (ACTIONS, "otflints", {}),
        (ACTIONS, "otflinucb", {"reward": "observed"}),
        (ARMS, "ucb1", {"immature": "correct"}),
    ],
)
def test_displays_take_along_what_belongs_to_them(log: Any, policy: str, options: dict[str, Any]) -> None:
    found = replay(log, policy, window=60, repeats=3, seed=5, **options)
    table = found.trajectory
    repeat, display, action = (table[name].to_numpy() for name in ("repeat", "display_id", "action"))
    np.testing.assert_array_equal(action, log.column("action")[display])
    np.testing.assert_array_equal(table["time"].to_numpy(), log.column("time")[display])
    earned = np.bincount(to_numpy(log.conversions["display_id"]), minlength=len(log))
    if not options.get("reward"):
        np.testing.assert_array_equal(table["reward"].to_numpy(), earned[display])
    assert found.generated == earned[display].sum() == found.delivered + found.pending + found.expired
    for r in range(3):
        own = display[repeat == r]
        assert len(np.unique(own)) == len(own)
        if options.get("sampler") != "queue":
            # In time but for the block; only the first repeat in the log's own order.
            assert (np.diff(own // BLOCK) >= 0).all()
            assert (np.diff(own) > 0).all() == (r == 0)
    assert found.value.n == len(np.unique(display))
    # Several orders use more of the log than one, unless one uses all.
    assert found.value.n > found.rounds or policy == "logging"
    assert "displays within a block of 1,024 could have come in any order" in " ".join(found.assumptions)


def test_delays_are_told_as_they_were() -> None:
    told: list[int] = []

    class Listener:
        """A policy that writes down which delays it is told."""

        contextual = False

        def __init__(self, setting: Any) -> None:
            pass

        def choose(self, vectors: Any, rng: np.random.Generator) -> int:
            return 0

        def displayed(self, vectors: Any, action: int) -> None:
            pass

        def converted(self, vector: Any, action: int, delay: int, value: float) -> None:
            told.append(delay)

    found = replay(ARMS, Listener, repeats=2, sampler="keep")
    repeat, display = found.trajectory["repeat"].to_numpy(), found.trajectory["display_id"].to_numpy()
    of = to_numpy(ARMS.conversions["display_id"])
    delay = dict(zip(of, (to_numpy(ARMS.conversions["time"]) - of).tolist(), strict=True))
    left = [delay[d] for r in (0, 1) for d in display[repeat == r] if d in delay]
    # All but those still to come: in the log's time, in which a display is a round.
    assert len(told) == found.delivered > 100
    for d in told:
        left.remove(d)
    assert len(left) == found.pending


def test_a_log_on_disk_is_put_in_the_same_orders(tmp_path: Path) -> None:
    log = softmax_log()
    write_canonical(log, tmp_path, fingerprint=log.meta.fingerprint)
    stored = open_canonical(tmp_path)
    for policy in ("otflinucb", "ucb1"):
        one, other = (replay(of, policy, window=40, repeats=3) for of in (log, stored))
        assert same(one, other)


def test_policies_that_are_compared_read_the_same_orders() -> None:
    found = compare(ACTIONS, ["otflinucb", "linucb"], baseline="otflinucb", windows=[60], repeats=2, seed=3)
    alone = replay(ACTIONS, "linucb", window=60, repeats=2, seed=3)
    assert same(found.results[1], alone)
    # A policy that never looks at the window shows the same displays in every repeat, and does not differ.
    (twice,) = compare(ARMS, ["random"], baseline="random", windows=[40, 400], repeats=3).differences
    assert (twice.realised.estimate, twice.realised.n, twice.p) == (0.0, 0, 1.0)


def test_what_is_learned_and_judged_is_that_of_the_first_repeat_and_of_any(tmp_path: Path) -> None:
    options: dict[str, Any] = {"window": 60, "seed": 3, "sampler": "rejection"}
    one, three = (replay(ACTIONS, "otflinucb", repeats=r, doubly_robust=True, **options) for r in (1, 3))
    # The saved policy and the doubly robust value are those of the log as it stands.
    for name, result in (("one", one), ("three", three)):
        assert result.learned is not None
        result.learned.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    contexts = np.random.default_rng(0).random((50, 3, 5))
    assert [one.learned.choose(c) for c in contexts] == [three.learned.choose(c) for c in contexts]
    assert one.doubly_robust == three.doubly_robust
    # The frozen policy is any of the three; none of them has read what it is judged on.
    judged = replay(ACTIONS, "otflinucb", repeats=3, final="last:30%", **options)
    assert judged.final is not None
    assert judged.trajectory["display_id"].to_numpy().max() < N - judged.final.displays
