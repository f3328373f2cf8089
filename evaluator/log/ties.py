"""Displays that share one time: their order means nothing, so it is drawn, by a rule that needs no memory.

A file sorted by action inside its time stamps shows a replay each action in a block; a policy that changes its mind
once a round then hardly ever meets the action it wants. Which of two displays of one time comes first is therefore
decided by a hash of (seed, place in the order of the file), which depends on nothing else: not on how a file is cut
into chunks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.contract import Log
from evaluator.log.schema import to_numpy
from evaluator.streams import STEP, mixed

Ints = npt.NDArray[np.int64]

# Of the order that every reader gives a log.
SEED = 0


def tied(time: Ints) -> npt.NDArray[np.bool_]:
    """Return which displays have the time of the one before them, shape (n,)."""
    same = np.zeros(len(time), np.bool_)
    np.equal(time[1:], time[:-1], out=same[1:])
    return same


def tie_order(time: Ints, *, first: int = 0, seed: int = SEED) -> Ints | None:
    """Return the places of the displays in their new order, shape (n,); None where no two share a time.

    Parameters
    ----------
    time
        Times of the displays in ticks, sorted, shape (n,); groups of equal times are whole.
    first
        Number, in the whole log, of the first of these displays.
    seed
        Seed of the order: another seed, another order.
    """
    same = tied(time)
    if not same.any():
        return None
    # Only displays that share their time move; the key is their group, then 32 bits of the hash.
    moving = np.flatnonzero(same | np.append(same[1:], False))
    group = np.cumsum(~same[moving]).astype(np.uint64)
    key = group << np.uint64(32) | tie_keys(moving + first, seed=seed)
    order = np.arange(len(time))
    order[moving] = moving[np.argsort(key, kind="stable")]
    return order


def tie_keys(place: Ints, *, seed: int = SEED) -> npt.NDArray[np.uint64]:
    """Return the 32 bits by which displays of one time are ordered, shape (n,), equal ones by their place in the log.

    Parameters
    ----------
    place
        Numbers of the displays in the whole log, in the order of its source, shape (n,).
    seed
        Seed of the order.
    """
    with np.errstate(over="ignore"):
        return mixed(place.astype(np.uint64) + mixed(np.array([seed], np.uint64) + STEP) + STEP) >> np.uint64(32)


def shuffle_ties(log: Log, *, seed: int = SEED) -> Log:
    """Return a log in memory with displays of equal times in random order, the same order as in logs that are read.

    Parameters
    ----------
    log
        Log made by hand, sorted by time.
    seed
        Seed of the order; the reader's is 0. The same log and seed give the same order.

    Examples
    --------
    >>> from evaluator import load
    >>> log = load("synthetic", limit=1000)
    >>> shuffle_ties(log) is log  # every display has a time of its own
    True
    """
    order = tie_order(log.column("time"), seed=seed)
    if order is None:
        return log
    new = np.empty_like(order)
    new[order] = np.arange(len(order))
    displays = log.displays.take(pa.array(order))
    at = displays.schema.get_field_index("display_id")
    display = new[to_numpy(log.events["display_id"])]
    # Stable: the events of a display keep their order.
    rows = np.argsort(display, kind="stable")
    place = log.events.schema.get_field_index("display_id")
    events = log.events.take(pa.array(rows)).set_column(place, "display_id", pa.array(display[rows]))
    displays = displays.set_column(at, "display_id", pa.array(np.arange(len(order))))
    return Log(displays, events, log.actions, log.meta)
