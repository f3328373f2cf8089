"""Twins are drawn and read a batch at a time: the same as drawn at once, in memory that does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaluator.arguments import as_description
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import Fitted, fit, replay_twin
from evaluator.errors import OutputError
from evaluator.log import Log
from evaluator.streams import Stream, child_streams
from evaluator.worlds import disk_column
from evaluator.worlds.truth import LogTruth
from evaluator.worlds.twin_log import draw_twin
from tests.audits.test_truth import logistic_log, truth_of
from tests.audits.test_twins import entries_of, rhythmic
from tests.logs import bernoulli_log
from tests.shops import World, make_shop

# More than two batches, and no whole number of them.
LONG = 150_001


def drawn_at_once(truth: LogTruth, *, seed: int, twin: int) -> dict[str, np.ndarray]:
    """Return a twin without eligible sets and money in plain NumPy, each stream asked for all its numbers at once."""
    contexts, logger, rewards, waits, worths, arrivals = child_streams(6, Stream.AUDIT_TWIN, seed, twin)
    n = truth.displays
    time = np.arange(n)
    if truth.traffic is not None:
        times = truth.traffic.times.read(0, len(truth.traffic))
        first = int(arrivals.integers(len(times) - n + 1))
        time = times[first : first + n]
    entry = contexts.integers(truth.entries, size=n) if truth.entries > 1 else np.zeros(n, np.int64)
    edges = np.cumsum(truth.logger, axis=1)
    edges /= edges[:, -1:]
    uniform = logger.random(n)
    action = (uniform[:, None] >= np.broadcast_to(edges, (truth.entries, edges.shape[1]))[entry]).sum(axis=1)
    rate = truth.rates[entry, action] * truth.hours.factor(time)
    converts = np.flatnonzero(rewards.random(n) < rate)
    when = time[converts] + truth.laws.drawn(action[converts], waits.random(n)[converts])
    value = truth.values[(worths.random(n)[converts] * truth.values.size).astype(np.int64)]
    if truth.beyond is not None:
        seen = when <= time[-1] + truth.beyond
        converts, when, value = converts[seen], when[seen], value[seen]
    columns = {"time": time, "action": action, "display_id": converts, "when": when, "value": value, "entry": entry}
    return columns if truth.pool is None else columns | {"vectors": truth.pool[entry]}


TRUTHS: dict[str, Callable[[], LogTruth]] = {
    "one entry": lambda: truth_of(bernoulli_log(5_000, [0.2, 0.5], mean_delay=30.0, seed=1), displays=LONG),
    "contexts": lambda: truth_of(logistic_log(4_000, seed=2)[0], displays=LONG),
    "hours": lambda: truth_of(rhythmic(8_000, seed=3), displays=LONG, window="1h"),
    "a stretch": lambda: truth_of(rhythmic(200_000, seed=4), displays=LONG, window="1h"),
}


@pytest.mark.parametrize("kept", ["in memory", "in files"])
@pytest.mark.parametrize("name", TRUTHS)
def test_batches_are_the_twin_drawn_at_once(name: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kept == "in files":
        monkeypatch.setattr(disk_column, "IN_MEMORY", 0)
    truth = TRUTHS[name]()
    twin, expected = draw_twin(truth, seed=1, twin=2), drawn_at_once(truth, seed=1, twin=2)
    assert len(twin) == LONG
    np.testing.assert_array_equal(entries_of(twin), expected["entry"])
    for column in ("time", "action", *([truth.vectors] if truth.pool is not None and truth.vectors else [])):
        of = expected["vectors" if column == truth.vectors else column]
        for size in (LONG, 10_007):
            parts = list(twin.batches([column], size))
            assert [first for first, _ in parts] == list(range(0, LONG, size))
            np.testing.assert_array_equal(np.concatenate([batch[column] for _, batch in parts]), of)
        some = np.array([LONG - 1, 5, 5, 70_000])
        np.testing.assert_array_equal(twin.column(column)[some], of[some])
    for column, of in (("display_id", "display_id"), ("time", "when"), ("value", "value")):
        np.testing.assert_array_equal(twin.conversions[column].to_numpy(), expected[of])
    some = np.array([LONG - 1, 5, 5, 70_000])
    rows = twin.take(some, ["display_id", "time", "propensity"])
    assert rows["display_id"].to_pylist() == some.tolist()
    assert rows["time"].to_pylist() == expected["time"][some].tolist()
    assert rows["propensity"].to_pylist() == twin.column("propensity")[some].tolist()


def test_a_part_of_a_twin_is_that_of_its_table() -> None:
    twin = draw_twin(TRUTHS["hours"](), seed=1, twin=0)
    whole = Log(twin.displays, twin.conversions, twin.actions, twin.meta)
    for part in (lambda log: log.after(70_003), lambda log: log.until(90_000), lambda log: log.after(10).until(65_540)):
        of_twin, of_table = part(twin), part(whole)
        assert of_twin.displays.equals(of_table.displays)
        assert of_twin.conversions.equals(of_table.conversions)
        assert of_twin.meta == of_table.meta
        for (first, one), (other, batch) in zip(of_twin.arrays("time"), of_table.arrays("time"), strict=True):
            assert (first, one.to_pylist()) == (other, batch.to_pylist())


def test_costs_are_drawn_once_asked_for_and_from_a_stream_of_their_own() -> None:
    log = make_shop(3_000, seed=5, world=World()).log
    truth = truth_of(log, displays=LONG)
    assert truth.money is not None
    twin, again = (draw_twin(truth, seed=3, twin=1) for _ in range(2))
    assert "cost" in twin.schema.names
    luck = child_streams(3, Stream.AUDIT_TWIN_MONEY, 3, 1)[2].random(LONG)
    assert truth.money.costs is not None
    expected = truth.money.costs.drawn(twin.column("action"), luck)
    np.testing.assert_array_equal(twin.column("cost"), expected)
    some = np.array([0, 140_000])  # asked for first
    assert again.take(some, ["cost"])["cost"].to_pylist() == expected[some].tolist()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is Linux's")
def test_a_full_disk_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_column, "IN_MEMORY", 0)
    monkeypatch.setattr(disk_column.tempfile, "TemporaryFile", lambda prefix: Path("/dev/full").open("r+b"))  # noqa: SIM115
    column = disk_column.DisplayColumn(10, np.int64)
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)"):
        column.append(np.arange(10))


def fitted(displays: int) -> tuple[Fitted, list[object], AuditOptions]:
    """Return what twins of so many displays are drawn from: in time, with contexts, few of which convert."""
    rng = np.random.default_rng(6)
    log, _ = logistic_log(6_000, seed=6)
    time = np.sort(rng.integers(0, 10**6, len(log)))
    of = log.conversions["display_id"].to_numpy()
    rare = np.arange(len(of)) % 40 == 0
    events = log.conversions.filter(rare).set_column(1, "time", [time[of[rare]] + rng.integers(0, 5_000, rare.sum())])
    log = log.changed(displays=log.displays.set_column(1, "time", [time]), events=events).with_meta(tick="s")
    policies, options = (
        [as_description(spec) for spec in ("linucb", "ucb1")],
        AuditOptions(window="1h", twins=10, displays=displays, horizon=1_000),
    )
    return fit(log, policies, options), policies, options


def test_memory_does_not_grow_with_a_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_column, "IN_MEMORY", 0)
    peaks, small = [], 200_000
    for displays in (1_000, small, 4 * small):
        found, policies, options = fitted(displays)
        if displays >= small:  # compiling takes three times as long where memory is traced
            tracemalloc.start()
        replay_twin(found.truth, policies, options, found.claimed, 0, horizon=None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # One number a display, of 8 bytes, would be 8; conversions, one in 150 displays, are some hundred bytes each.
    assert (peaks[2] - peaks[1]) / (3 * small) < 2.5
