"""Which actions of a source a log keeps, and which propensities the displays of these then have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.errors import PropensityError, UnknownNameError, UsageError, nearest
from evaluator.log import PropensityKind
from evaluator.log.encoder import value_text

RENORMALISED = (
    "Actions were filtered: logged propensities, the same at every display of an action, were made to sum to 1 over "
    "the kept ones."
)
NOT_RENORMALISED = (
    "Actions were filtered, and the logged propensities depend on the display: they stay those of the full action set. "
    "A replay's value is for the contexts of all displays; the logging policy's value is on the displays where it "
    "showed a kept action, so the uplift over it is not known."
)
OF_SETS = (
    "Actions were filtered, and displays have eligible actions of their own: the logged propensities stay those of all "
    "that were eligible. A replay's value, and that of the best order, are of the displays at which a kept action was "
    "eligible; the logging policy's value is on those where it showed one, so the uplift over it is not known."
)

# Chance below which no action of a design is taken to have been missed by all displays.
UNSEEN = 1e-6
Floats = npt.NDArray[np.float64]
# Keeps the actions with displays that were followed long enough to be judged.
USED = "used"


def choose_actions(
    labels: Sequence[str], shown: npt.NDArray[np.integer], wanted: str | Sequence[str] | None
) -> list[int]:
    """Return which of the labels are kept, as positions, in the order of their index.

    `shown` (K,) are the displays of each label, for ``used`` those that can be judged; labels never shown are not kept.
    None, and ``used``, keep all (numeric labels in numeric order, others alphabetically); ``top:n`` keeps the n most
    shown, most shown first; a list, or a text with commas, keeps those labels in that order. Raises UsageError unless
    the number in ``top:n`` is a whole one of at least 2, and UnknownNameError if a wanted label was never shown.
    """
    order = sorted(np.flatnonzero(shown).tolist(), key=lambda i: _label_order(labels[i]))
    if isinstance(wanted, str) and wanted.startswith("top"):
        n = re.fullmatch(r"top:([0-9]{1,18})", wanted)
        if n is None or int(n[1]) < 2:
            raise UsageError(f"actions={wanted!r}.", remedy="write top:10, with at least 2 actions.")
        return sorted(order, key=lambda i: -shown[i])[: int(n[1])]
    if wanted is None or wanted == USED:
        return order
    names = [value_text(str(w)) for w in (wanted.split(",") if isinstance(wanted, str) else wanted)]
    where = {labels[i]: i for i in order}
    for name in names:
        if name not in where:
            raise UnknownNameError(f"No action {name!r} in the log.", remedy=nearest(name, where))
    return [where[name] for name in dict.fromkeys(names)]


def _label_order(label: str) -> tuple[int, int, str]:
    # str.isdigit would take superscripts, which int() refuses, as it does numbers of more than 4,300 digits.
    return (0, int(label), label) if re.fullmatch(r"-?[0-9]{1,4000}", label) else (1, 0, label)


def by_design(design: float | Mapping[str, float], labels: Sequence[str]) -> Floats:
    """Return the propensity that a design gives each label, shape (n,).

    Raises PropensityError if the design does not name one of them.
    """
    of = {value_text(str(label)): p for label, p in design.items()} if isinstance(design, Mapping) else dict.fromkeys(
        labels, design
    )  # fmt: skip
    for label in labels:
        if label not in of:
            hint = f"name each, as the log writes it; {nearest(label, of)}"
            raise PropensityError(f"display.propensity gives action {label!r} none, and the log has it.", remedy=hint)
    return np.array([of[label] for label in labels], np.float64)


def check_design(propensity: Floats, shown: npt.NDArray[np.integer]) -> None:
    """Refuse a design whose propensities (K,) cannot be those of displays that showed each action so often, (K,).

    Raises PropensityError if the propensities of the actions that were shown sum to more than 1; or to so little that
    some of the others would have been shown, but for a chance of `UNSEEN`.
    """
    total, n = float(propensity[shown > 0].sum()), int(shown.sum())
    # One number for all may be rounded, 0.33 for a third: it accepts the same share of every action's displays.
    if not n or abs(total - 1) <= (1e-2 if np.ptp(propensity) == 0 else 1e-6):
        return
    said = f"display.propensity: those of the {np.count_nonzero(shown):,} actions that were shown sum to {total:g}"
    if total > 1:
        raise PropensityError(f"{said}, not to 1.", remedy="give each action its own, or propensity_kind = 'uniform'.")
    if n * math.log(total) < math.log(UNSEEN):
        raise PropensityError(
            f"{said}, yet all {n:,} displays show one of these.",
            remedy="read the displays of the others too, or give the propensities among those that were shown.",
        )


class ShownActions:
    """What a pass over the displays finds of each action of a source."""

    def __init__(self, n: int) -> None:
        self.shown = np.zeros(n, np.int64)
        self.weight = np.zeros(n)
        self.smallest, self.largest = np.full(n, np.inf), np.full(n, -np.inf)

    def read(
        self,
        action: npt.NDArray[np.integer],
        propensity: npt.NDArray[np.float64] | None,
        weight: npt.NDArray[np.float64] | None,
    ) -> None:
        """Take in some displays, shape (n,) each; without weights all weigh 1."""
        self.shown += np.bincount(action, minlength=len(self.shown))
        self.weight += np.bincount(action, weight, minlength=len(self.shown))
        if propensity is not None:
            np.minimum.at(self.smallest, action, propensity)
            np.maximum.at(self.largest, action, propensity)


class KeptPropensities(NamedTuple):
    """Propensities of the displays that stay.

    Displays of each kept action get the propensity `of_action` (K,), or keep what was logged where it is None.
    `kept_share` is the share of the displays that were kept, of those at which a kept action was eligible, as in
    `evaluator.log.LogMeta`.
    """

    kind: PropensityKind
    of_action: npt.NDArray[np.float64] | None = None
    kept_share: float = 1.0
    notes: tuple[str, ...] = ()


def kept_propensities(
    kind: PropensityKind, seen: ShownActions, kept: npt.NDArray[np.integer], *, choosable: float | None
) -> KeptPropensities:
    """Return the propensities of the displays that stay when some actions are kept.

    Uniform ones become 1/K. Logged ones that never change within a kept action have a known sum over the kept ones, by
    which they are divided. Others have not: the log holds the propensity of the shown action only. They stay, and a
    rejection replay is exact for the contexts of all displays, for given its context a display is accepted with the
    same probability whatever the action; what averages over the displays that stay is not. Where displays have sets of
    their own, no action knows the sum over a set. Uniform ones stay too, and are logged ones then: the fewer of a set
    are kept, the fewer of its displays stay, so that one over how many are kept would be right given the displays that
    stay, and these no even sample of the traffic. `kept` (K,) are the numbers of the kept actions among those of
    `seen`. `choosable` is the weight of the displays at which a kept action was eligible: no policy has a choice at the
    others, which are not among those that a value is of. None where every action always is.
    """
    whole = float(seen.weight.sum()) if choosable is None else choosable
    share = min(float(seen.weight[kept].sum()) / max(whole, 1e-300), 1.0)
    if kind == "uniform" and choosable is None:
        return KeptPropensities(kind, np.full(len(kept), 1.0 / max(len(kept), 1)))
    if kind == "absent" or share == 1.0:
        return KeptPropensities(kind)
    low, high = seen.smallest[kept], seen.largest[kept]
    if choosable is None and np.all(high - low <= 1e-9 * high):
        return KeptPropensities(kind, low / low.sum(), 1.0, (RENORMALISED,))
    kind = "logged" if kind == "uniform" else kind
    return KeptPropensities(kind, None, share, (NOT_RENORMALISED if choosable is None else OF_SETS,))
