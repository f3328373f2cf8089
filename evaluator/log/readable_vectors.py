"""Which vectors a log has for a policy or a model to read: those of each display, or those of the actions."""

from __future__ import annotations

from typing import Literal

from evaluator.log.contract import Log
from evaluator.log.schema import FEATURES


def display_vectors(log: Log, *, first: Literal["action_set", "context"] = "action_set") -> str | None:
    """Return the column with the vectors of each display, ``action_set`` or ``context``; None where there is none.

    Parameters
    ----------
    log
        Log whose vectors are wanted.
    first
        Column to prefer where there are both: a policy tells actions apart by their vectors; what a logger looked at is
        best told by the context.
    """
    second = "context" if first == "action_set" else "action_set"
    return next((name for name in (first, second) if name in log.schema.names), None)


def readable_vectors(log: Log) -> str | None:
    """Return the vectors that a policy or a model can read: a display's, else ``features`` of the actions; or None."""
    return display_vectors(log) or (FEATURES if FEATURES in log.actions.column_names else None)
