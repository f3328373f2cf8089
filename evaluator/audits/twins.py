"""Twins: logs drawn from a truth, like the log it was fitted to, each from a stream of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.audits.truth import LogTruth
from evaluator.audits.twin_money import draw_events
from evaluator.audits.twin_sets import TwinSets
from evaluator.log import Log
from evaluator.log.eligible import members
from evaluator.log.schema import COST, ELIGIBLE, fixed_size_lists
from evaluator.log.uneven import uneven_lists
from evaluator.streams import Stream, child_streams, seed_sequence

# Displays drawn at a time where actions have probabilities of their own in each context.
_AT_ONCE = 65_536


class TwinLog(NamedTuple):
    """A twin: the log, and the truth's entry of each display, shape (n,)."""

    log: Log
    entry: npt.NDArray[np.int64]


def replay_seed(seed: int, twin: int) -> int:
    """Return the seed of the replays of a twin: others for each, the same for every policy."""
    words = seed_sequence(Stream.AUDIT_SEED, seed, twin).generate_state(2, np.uint32)
    return int(words[0]) << 32 | int(words[1])


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
    contexts, logger, rewards, waits, worths, arrivals = child_streams(6, Stream.AUDIT_TWIN, seed, twin)
    n = truth.displays
    time = np.arange(n) if truth.traffic is None else truth.traffic.stretch(n, arrivals)
    if truth.sets is not None:
        entry = truth.sets.entries(np.arange(n) / n, contexts.random(n))
    else:
        entry = contexts.integers(truth.entries, size=n) if truth.entries > 1 else np.zeros(n, np.int64)
    action, propensity = _logged(truth.logger, entry, logger.random(n))
    converts = np.flatnonzero(rewards.random(n) < truth.rates[entry, action] * truth.hours.factor(time))
    wait = truth.laws.drawn(action[converts], waits.random(n)[converts])
    until = None if truth.beyond is None else int(time[-1]) + truth.beyond
    when = time[converts] + wait
    if truth.money is None:
        value = truth.values[(worths.random(n)[converts] * truth.values.size).astype(np.int64)]
        cost = None
    else:
        luck = child_streams(3, Stream.AUDIT_TWIN_MONEY, seed, twin)
        drawn = draw_events(truth.money, action, converts, wait, worths.random(n), luck)
        converts, when, value, cost = drawn.display, time[drawn.display] + drawn.wait, drawn.value, drawn.cost
    if until is not None:
        seen = when <= until
        converts, when, value = converts[seen], when[seen], value[seen]
    columns = {
        "display_id": pa.array(np.arange(n)),
        "time": pa.array(time),
        "action": pa.array(action.astype(np.int32)),
        "propensity": pa.nulls(n, pa.float64()) if truth.meta.propensity == "absent" else pa.array(propensity),
    }
    if cost is not None:
        columns[COST] = pa.array(cost)
    if truth.sets is not None:
        columns[ELIGIBLE] = truth.sets.of_displays(entry)
    if vectors and truth.pool is not None and truth.vectors is not None:
        columns[truth.vectors] = _vectors_of(truth.pool, truth.sets, entry)
    conversions = {"display_id": pa.array(converts), "time": pa.array(when), "value": pa.array(value)}
    log = Log(pa.table(columns), pa.table(conversions), truth.actions, truth.meta)
    return TwinLog(log.with_meta(observed_until=until, attribution_window=truth.longest, outcomes=()), entry)


def _vectors_of(pool: npt.NDArray[np.floating], sets: TwinSets | None, entry: npt.NDArray[np.int64]) -> pa.Array:
    """Return the vectors of displays with these entries as a column; of actions, of the eligible alone."""
    if sets is None or pool.ndim == 2:
        return fixed_size_lists(np.take(pool, entry, axis=0))
    size = sets.truths.sum(axis=1)
    first, action = members(sets.bits)
    flat = pool[np.repeat(np.arange(len(pool)), size), action]
    own = size[entry]
    at = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own - first[entry], own)
    return uneven_lists(flat[at], own)


def _logged(
    logger: npt.NDArray[np.float64], entry: npt.NDArray[np.int64], uniform: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return an action of each display by inversion, and its probability."""
    edges = np.cumsum(logger, axis=1)
    # Rounding must never reach an action of probability 0 at the end.
    edges /= edges[:, -1:]
    if len(logger) == 1:
        action = np.searchsorted(edges[0], uniform, side="right")
        return action, logger[0, action]
    action = np.empty(len(uniform), np.int64)
    for first in range(0, len(uniform), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        action[part] = (uniform[part, None] >= edges[entry[part]]).sum(axis=1)
    return action, logger[entry, action]
