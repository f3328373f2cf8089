"""How the eligible actions of a log vary from display to display."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from evaluator.log import Log
from evaluator.log.eligible import distinct_bits, members, packed
from evaluator.log.schema import ELIGIBLE

# An action is hardly ever eligible at less than this share of the displays.
HARDLY = 1e-3
# Labels of a list that are named.
NAMED = 10


def set_facts(log: Log) -> dict[str, Any] | None:
    """Return how the sets of a log vary, None where every action always is eligible.

    One pass. Memory: 8 bytes for each distinct set, and some numbers for each action; a set that repeats within a batch
    is looked at once.

    Returns
    -------
    dict
        ``distinct`` (number of different sets), ``mean``, ``smallest`` and ``largest`` (their sizes over the displays),
        ``changes`` (displays whose set is another than the one before), ``vary``: ``never`` (one set), ``with time``
        (each action is eligible at all displays from its first to its last, and at no other) or ``otherwise``; and the
        actions ``never_eligible``, ``never_logged`` and ``hardly_eligible`` (at fewer than one display in a thousand,
        but at some), each with ``count`` and the first ``labels``.
    """
    if ELIGIBLE not in log.schema.names:
        return None
    n, k = len(log), log.n_actions
    seen: set[bytes] = set()
    offered, logged = np.zeros(k, np.int64), np.zeros(k, np.int64)
    first, last = np.full(k, n), np.full(k, -1)
    total, smallest, largest, changes = 0, k, 0, 0
    before = b""
    for start, batch in log.batches([ELIGIBLE, "action"]):
        sets = packed(batch[ELIGIBLE])
        bits, of = distinct_bits(sets), sets.indices.to_numpy()
        seen.update(hashlib.blake2b(row, digest_size=8).digest() for row in sets.dictionary.to_pylist())
        displays = np.bincount(of, minlength=len(bits))
        # Of each distinct set, its first and its last display.
        early = np.full(len(bits), n)
        late = np.full(len(bits), -1)
        place = start + np.arange(len(of))
        np.minimum.at(early, of, place)
        np.maximum.at(late, of, place)
        begin, action = members(bits)
        size = np.diff(begin)
        offered += np.bincount(action, np.repeat(displays, size), minlength=k).astype(np.int64)
        np.minimum.at(first, action, np.repeat(early, size))
        np.maximum.at(last, action, np.repeat(late, size))
        logged += np.bincount(batch["action"], minlength=k)
        total += int((size * displays).sum())
        smallest, largest = min(smallest, int(size.min())), max(largest, int(size.max()))
        changes += int((np.diff(of) != 0).sum()) + (before not in (b"", sets.dictionary[int(of[0])].as_py()))
        before = sets.dictionary[int(of[-1])].as_py()
    whole = (offered == 0) | (offered == last - first + 1)
    return {
        "distinct": len(seen),
        "mean": total / n,
        "smallest": smallest,
        "largest": largest,
        "changes": changes,
        "vary": "never" if len(seen) == 1 else "with time" if whole.all() else "otherwise",
        "never_eligible": _named(log, offered == 0),
        "never_logged": _named(log, (offered > 0) & (logged == 0)),
        "hardly_eligible": _named(log, (offered > 0) & (offered < HARDLY * n)),
    }


def _named(log: Log, which: Any) -> dict[str, Any]:
    found = np.flatnonzero(which)
    labels = log.labels
    return {"count": len(found), "labels": [labels[i] for i in found[:NAMED].tolist()]}
