"""How the eligible actions of a log vary from display to display."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from evaluator.log import Log
from evaluator.log.eligible import distinct_bits, members, packed
from evaluator.log.schema import ELIGIBLE
from evaluator.log.set_kinds import EligibleByPart

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
        (some action is eligible much more at some times than at others: the judgement of replays) or ``otherwise``;
        and the actions ``never_eligible``, ``never_logged`` and ``hardly_eligible`` (at fewer than one display in a
        thousand, but at some), each with ``count`` and the first ``labels``.
    """
    if ELIGIBLE not in log.schema.names:
        return None
    n, k = len(log), log.n_actions
    seen: set[bytes] = set()
    by_part, logged = EligibleByPart(n, k), np.zeros(k, np.int64)
    total, smallest, largest, changes = 0, k, 0, 0
    before = b""
    for start, batch in log.batches([ELIGIBLE, "action"]):
        sets = packed(batch[ELIGIBLE])
        bits, of = distinct_bits(sets), sets.indices.to_numpy()
        seen.update(hashlib.blake2b(row, digest_size=8).digest() for row in sets.dictionary.to_pylist())
        displays = np.bincount(of, minlength=len(bits))
        begin, action = members(bits)
        size = np.diff(begin)
        by_part.add(start, of, begin, action)
        logged += np.bincount(batch["action"], minlength=k)
        total += int((size * displays).sum())
        smallest, largest = min(smallest, int(size.min())), max(largest, int(size.max()))
        changes += int((np.diff(of) != 0).sum()) + (before not in (b"", sets.dictionary[int(of[0])].as_py()))
        before = sets.dictionary[int(of[-1])].as_py()
    offered = by_part.displays
    return {
        "distinct": len(seen),
        "mean": total / n,
        "smallest": smallest,
        "largest": largest,
        "changes": changes,
        "vary": "never" if len(seen) == 1 else "with time" if by_part.moving() >= 0 else "otherwise",
        "never_eligible": _named(log, offered == 0),
        "never_logged": _named(log, (offered > 0) & (logged == 0)),
        "hardly_eligible": _named(log, (offered > 0) & (offered < HARDLY * n)),
    }


def _named(log: Log, which: Any) -> dict[str, Any]:
    found = np.flatnonzero(which)
    labels = log.labels
    return {"count": len(found), "labels": [labels[i] for i in found[:NAMED].tolist()]}
