"""When the actions of a scenario come and go: each between rounds, any number of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Flight(NamedTuple):
    """A stretch of rounds in which an action is eligible; an action without any always is.

    Parameters
    ----------
    action
        Index of the action.
    start
        Number of rounds that are over when it arrives: 0 has it there from the first.
    until
        Number of rounds that are over when it retires; None for never.
    """

    action: int
    start: int = 0
    until: int | None = None


# Actions among which flights are told apart.
_MOST = 100_000


class Part(NamedTuple):
    """Rounds with the same eligible actions: from after `start` rounds on, until the next part; actions increasing."""

    start: int
    eligible: tuple[int, ...]


def flight_parts(flights: Sequence[Flight], n_actions: int) -> list[Part]:
    """Return the parts that flights divide the rounds into, the first from the first round on, the last without end.

    Raises
    ------
    ValueError
        A flight is of no action or ends before it begins, or no action is left; the message says which.

    Examples
    --------
    >>> [tuple(part) for part in flight_parts([Flight(1, 10, 20)], 2)]
    [(0, (0,)), (10, (0, 1)), (20, (0,))]
    """
    if flights and n_actions > _MOST:
        raise ValueError(f"flights among {n_actions:,} actions: {_MOST:,} at most")
    changes: dict[int, list[tuple[int, int]]] = {0: []}
    for action, start, until in flights:
        if not 0 <= action < n_actions:
            raise ValueError(f"a flight of action {action}: actions go from 0 to {n_actions - 1}")
        if start < 0 or (until is not None and until <= start):
            raise ValueError(f"a flight of action {action} from {start} until {until}: it ends before it begins")
        changes.setdefault(start, []).append((action, 1))
        if until is not None:
            changes.setdefault(until, []).append((action, -1))
    flying = {flight.action for flight in flights}
    # How many flights each action is on: those of one action may overlap.
    on = [0 if action in flying else 1 for action in range(n_actions)]
    parts: list[Part] = []
    for start in sorted(changes):
        for action, more in changes[start]:
            on[action] += more
        eligible = tuple(action for action in range(n_actions) if on[action] > 0)
        if not eligible:
            raise ValueError(f"no action is eligible after {start:,} rounds")
        if not parts or parts[-1].eligible != eligible:
            parts.append(Part(start, eligible))
    return parts
