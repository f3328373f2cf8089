"""Whose rows they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.datasets.criteo.parameters import TwinParameters
from evaluator.datasets.criteo.quantiles import sizes

Ints = npt.NDArray[np.int64]
SmallInts = npt.NDArray[np.int32]


class Users(NamedTuple):
    """Users of the conversions and of all other rows."""

    of_journey: Ints  # (J,), all different
    of_others: SmallInts  # (rows - converted rows,) in random order
    total: int


def plan_users(twin: TwinParameters, rows: int, per_journey: Ints, rng: np.random.Generator) -> Users:
    """Deal the rows out to users.

    Parameters
    ----------
    twin, rows
        Parameters of the twin, and its number of rows.
    per_journey
        Number of rows of each conversion, shape (J,); one user has them all.
    rng
        Source of randomness.
    """
    per_user = _rows_per_user(twin, rows)
    of_journey = _choose(per_user, per_journey, rng)
    per_user[of_journey] -= per_journey.astype(np.int32)
    others = np.repeat(np.arange(len(per_user), dtype=np.int32), per_user)
    rng.shuffle(others)
    return Users(of_journey, others, len(per_user))


def _rows_per_user(twin: TwinParameters, rows: int) -> SmallInts:
    """Return rows per user, descending; they add up to `rows`, and the share of users with one row is the law's."""
    per_user = sizes(twin.user_rows, round(twin.users * rows / twin.rows))[::-1].astype(np.int32)
    missing = rows - int(per_user.sum())
    # Quantiles at finitely many levels miss the mean by a little: users with several rows make up for it.
    while missing:
        able = int((per_user > (1 if missing > 0 else 2)).sum())
        chosen = np.linspace(0, able - 1, min(abs(missing), able)).astype(np.int64)
        per_user[chosen] += np.sign(missing)
        per_user = np.sort(per_user)[::-1]
        missing = rows - int(per_user.sum())
    return per_user


def _choose(per_user: SmallInts, per_journey: Ints, rng: np.random.Generator) -> Ints:
    """Return a user with enough rows for each journey, at random; the longest journeys choose first."""
    user = np.empty(len(per_journey), dtype=np.int64)
    free = np.ones(len(per_user), dtype=np.bool_)
    for size in np.unique(per_journey)[::-1]:
        journeys = np.flatnonzero(per_journey == size)
        enough = int((per_user >= size).sum())  # a prefix at first; taken users are not free
        pool = np.flatnonzero(free[:enough])
        user[journeys] = rng.choice(pool, size=len(journeys), replace=False)
        free[user[journeys]] = False
    return user
