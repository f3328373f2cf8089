"""Which actions of a source are kept, and their index."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluator.errors import UnknownNameError, UsageError, nearest

# Keeps the actions with displays that were followed long enough to be judged.
USED = "used"


def choose_actions(
    labels: Sequence[str], shown: npt.NDArray[np.integer], wanted: str | Sequence[str] | None
) -> list[int]:
    """Return which of the labels are kept, as positions, in the order of their index.

    Parameters
    ----------
    labels
        Distinct labels.
    shown
        Displays of each; those never shown are not kept. For ``used``, its displays that can be judged.
    wanted
        None, and ``used``, keep all (numeric labels in numeric order, others alphabetically); ``top:n`` keeps the n
        most shown, most shown first; a list, or a text with commas, keeps those labels in that order.

    Raises
    ------
    UsageError
        ``top:n`` without a whole n of at least 2.
    UnknownNameError
        A wanted label was never shown.
    """
    order = sorted(np.flatnonzero(shown).tolist(), key=lambda i: _label_order(labels[i]))
    if isinstance(wanted, str) and wanted.startswith("top"):
        n = re.fullmatch(r"top:(\d+)", wanted)
        if n is None or int(n[1]) < 2:
            raise UsageError(f"actions={wanted!r}.", hint="write top:10, with at least 2 actions.")
        return sorted(order, key=lambda i: -shown[i])[: int(n[1])]
    if wanted is None or wanted == USED:
        return order
    names = [w.strip() for w in wanted.split(",")] if isinstance(wanted, str) else [str(w) for w in wanted]
    where = {labels[i]: i for i in order}
    for name in names:
        if name not in where:
            raise UnknownNameError(f"No action {name!r} in the log.", hint=nearest(name, where))
    return [where[name] for name in dict.fromkeys(names)]


def _label_order(label: str) -> tuple[int, int, str]:
    # str.isdigit would take superscripts, which int() refuses.
    return (0, int(label), label) if re.fullmatch(r"-?[0-9]+", label) else (1, 0, label)
