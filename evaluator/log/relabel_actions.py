"""A log with its actions in another order, as what learned from another log numbers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.eligible import chosen_sets
from evaluator.log.ragged_vectors import chosen_lists, is_uneven
from evaluator.log.schema import ELIGIBLE, fixed_size_lists, per_action, to_numpy
from evaluator.log.stored import StoredLog


def in_order(log: Log, labels: Sequence[str]) -> Log:
    """Return a log whose actions are numbered in the order of these labels.

    Parameters
    ----------
    log
        Log with just these actions, in any order.
    labels
        Labels of all K actions.

    Raises
    ------
    ParameterError
        The log has another action, or lacks one; names it.
    """
    own = log.labels
    if own == list(labels):
        return log
    for here, there, what in ((own, set(labels), "has"), (labels, set(own), "lacks")):
        others = [label for label in here if label not in there]
        if others:
            more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
            raise ParameterError(
                f"Log {log.meta.name!r} {what} action {others[0]}{more}, and the policy learned of "
                f"{len(labels):,} actions: {', '.join(labels[:8])}{'...' if len(labels) > 8 else ''}.",
                remedy="read the same actions of both logs (`actions`).",
            )
    old = np.array([own.index(label) for label in labels])
    new = np.empty(len(old), np.int32)
    new[old] = np.arange(len(old), dtype=np.int32)
    actions = log.actions.take(pa.array(old))
    actions = actions.set_column(actions.schema.get_field_index("action"), "action", log.actions["action"])
    if isinstance(log, StoredLog):
        chosen = log.selection
        was, propensity = chosen.new_action, chosen.propensity
        composed = new if was is None else np.where(was >= 0, new[was], np.int32(-1))
        selection = replace(chosen, new_action=composed, propensity=None if propensity is None else propensity[old])
        return log.changed(selection=selection, actions=actions).as_sound_as(log)
    displays = log.displays
    changed = {"action": pa.array(new[to_numpy(displays["action"])])}
    for name in per_action(displays.schema):
        if is_uneven(displays[name].type):
            lists, bits = displays[name].combine_chunks(), to_numpy(displays[ELIGIBLE])
            changed[name] = chosen_lists(lists, bits, old)
        else:
            changed[name] = fixed_size_lists(to_numpy(displays[name])[:, old])
    if ELIGIBLE in displays.column_names:
        chunks = displays[ELIGIBLE].chunks
        changed[ELIGIBLE] = pa.chunked_array([chosen_sets(chunk, old) for chunk in chunks], displays[ELIGIBLE].type)
    for name, column in changed.items():
        displays = displays.set_column(displays.schema.get_field_index(name), name, column)
    return replace(log, displays=displays, actions=actions).as_sound_as(log)
