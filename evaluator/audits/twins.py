"""Twins: logs drawn from a truth, like the log it was fitted to, each from a stream of its own.

Displays are drawn some at a time, from streams that give the same numbers however many are taken at once; what is kept
of each is its action and its entry of the truth's pool (`evaluator.audits.twin_log`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.audits.display_column import DisplayColumn, spans
from evaluator.audits.truth import LogTruth
from evaluator.audits.twin_log import TwinCosts, TwinDisplays, TwinLog
from evaluator.audits.twin_money import draw_events
from evaluator.streams import Stream, child_streams, seed_sequence

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def replay_seed(seed: int, twin: int) -> int:
    """Return the seed of the replays of a twin: others for each, the same for every policy."""
    words = seed_sequence(Stream.AUDIT_SEED, seed, twin).generate_state(2, np.uint32)
    return int(words[0]) << 32 | int(words[1])


class _Streams(NamedTuple):
    """What displays of a twin are drawn from: its streams, a child each, and those of its refunds."""

    contexts: np.random.Generator
    logger: np.random.Generator
    rewards: np.random.Generator
    waits: np.random.Generator
    worths: np.random.Generator
    refunds: tuple[np.random.Generator, ...]


class _Events(NamedTuple):
    """Conversions of some displays of a twin, shape (c,)."""

    display_id: Ints
    time: Ints
    value: Floats


def draw_twin(truth: LogTruth, *, seed: int, twin: int, vectors: bool = True) -> TwinLog:
    """Return a twin.

    Parameters
    ----------
    truth
        Truth that the twin is drawn from.
    seed, twin
        Seed of the audit and number of the twin; together they fix its random streams.
    vectors
        Whether the twin holds contexts or action sets; it is the same otherwise.
    """
    refunds, comes_back, costs = child_streams(3, Stream.AUDIT_TWIN_MONEY, seed, twin)
    contexts, logger, rewards, waits, worths, arrivals = child_streams(6, Stream.AUDIT_TWIN, seed, twin)
    streams = _Streams(contexts, logger, rewards, waits, worths, (refunds, comes_back))
    n, traffic, money = truth.displays, truth.traffic, truth.money
    held = vectors and truth.pool is not None
    drawn = TwinDisplays(
        n=n,
        traffic=traffic,
        first=0 if traffic is None else traffic.stretch(n, arrivals),
        entry=DisplayColumn(n, np.int32) if truth.entries > 1 else None,
        action=DisplayColumn(n, np.int32),
        logger=None if truth.meta.propensity == "absent" else truth.logger,
        sets=truth.sets,
        vectors=truth.vectors if held else None,
        pool=truth.pool if held else None,
        costs=None if money is None or money.costing is None else TwinCosts(money.costing, costs),
    )
    until = None if truth.beyond is None else int(drawn.times(n - 1, n)[0]) + truth.beyond
    edges = _edges(truth.logger)
    parts = [_draw_part(truth, drawn, streams, edges, first, end) for first, end in spans(0, n)]
    display, when, value = (np.concatenate(of) for of in zip(*parts, strict=True))
    if until is not None:
        seen = when <= until
        display, when, value = display[seen], when[seen], value[seen]
    conversions = pa.table({"display_id": pa.array(display), "time": pa.array(when), "value": pa.array(value)})
    meta = replace(truth.meta, observed_until=until, attribution_window=truth.longest, outcomes=())
    return TwinLog(drawn, conversions=conversions, actions=truth.actions, meta=meta)


def _draw_part(truth: LogTruth, drawn: TwinDisplays, streams: _Streams, edges: Floats, first: int, end: int) -> _Events:
    """Draw some displays that follow those drawn before, and return their conversions."""
    n, m = truth.displays, end - first
    time = drawn.times(first, end)
    if truth.sets is not None:
        entry = truth.sets.entries(np.arange(first, end) / n, streams.contexts.random(m))
    else:
        entry = streams.contexts.integers(truth.entries, size=m) if truth.entries > 1 else np.zeros(m, np.int64)
    action = _logged(edges, entry, streams.logger.random(m))
    drawn.action.append(action)
    if drawn.entry is not None:
        drawn.entry.append(entry)
    converts = np.flatnonzero(streams.rewards.random(m) < truth.rates[entry, action] * truth.hours.factor(time))
    wait = truth.laws.drawn(action[converts], streams.waits.random(m)[converts])
    worth = streams.worths.random(m)
    if truth.money is None:
        value = truth.values[(worth[converts] * truth.values.size).astype(np.int64)]
        return _Events(first + converts, time[converts] + wait, value)
    events = draw_events(truth.money, action, converts, wait, worth, streams.refunds)
    return _Events(first + events.display, time[events.display] + events.wait, events.value)


def _edges(logger: Floats) -> Floats:
    """Return the sums of the probabilities of the actions up to each, by entry."""
    edges = np.cumsum(logger, axis=1)
    # Rounding must never reach an action of probability 0 at the end.
    edges /= edges[:, -1:]
    return edges


def _logged(edges: Floats, entry: Ints, uniform: Floats) -> Ints:
    """Return an action of each display by inversion."""
    if len(edges) == 1:
        return np.searchsorted(edges[0], uniform, side="right")
    found: Ints = (uniform[:, None] >= edges[entry]).sum(axis=1)
    return found
