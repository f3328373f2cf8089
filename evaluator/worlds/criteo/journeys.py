"""Plan of the converted rows: users, times, delays and groups. The package's docstring explains the construction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.worlds.criteo.parameters import TwinParameters
from evaluator.worlds.criteo.quantiles import ArrivalQuantiles, draw, durations, sizes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SmallInts = npt.NDArray[np.int32]


class Journeys(NamedTuple):
    """J conversions on C rows; rows are sorted by time."""

    rows: Ints  # (J,) number of displays of the conversion
    conversion_time: Ints  # (J,) seconds
    identity: Ints  # (J,) index of its conversion id; some are shared
    attributed: npt.NDArray[np.bool_]  # (J,)
    cell: Ints  # (J,) context * K + campaign
    row_journey: Ints  # (C,)
    row_time: Ints  # (C,) seconds, ascending
    row_position: Ints  # (C,) 0 for the first display of the journey


def journey_sizes(twin: TwinParameters, rows: int) -> Ints:
    """Return the numbers of displays per conversion, ascending, of a twin with so many rows."""
    return sizes(twin.journey_rows, max(1, round(twin.conversions * rows / twin.rows)))


def plan_journeys(
    twin: TwinParameters, clock: ArrivalQuantiles, per_journey: Ints, cell_weights: Floats, rng: np.random.Generator
) -> Journeys:
    """Return the converted rows of a twin.

    Parameters
    ----------
    twin, clock
        Parameters of the twin, and the arrival times of its rows.
    per_journey
        Number of rows of each conversion, shape (J,), from `journey_sizes`.
    cell_weights
        Probability that a converted row is of each context and campaign, shape (G * K,).
    rng
        Source of randomness.
    """
    n_journeys, n_rows = len(per_journey), int(per_journey.sum())
    per_journey = rng.permutation(per_journey)
    start = np.cumsum(per_journey) - per_journey
    shown = clock.times(rng.random(n_rows))
    # Stratified: one draw from each of C equal parts of the law.
    delay = durations(twin.delays, (rng.permutation(n_rows) + rng.random(n_rows)) / n_rows)
    order = np.argsort(shown + delay, kind="stable")
    shown, delay = shown[order], delay[order]
    middle = start + per_journey // 2
    # Every display must stay inside the log; the longest delay is shorter than it, so the bounds never cross.
    earliest = np.maximum.reduceat(delay, start)
    latest = np.minimum.reduceat(delay, start) + clock.seconds - 1
    conversion_time = np.clip((shown + delay)[middle], earliest, latest)
    journey = np.repeat(np.arange(n_journeys), per_journey)
    shown = conversion_time[journey] - delay

    in_journey = np.lexsort((shown, journey))
    position = np.empty(n_rows, dtype=np.int64)
    position[in_journey] = np.arange(n_rows) - start[journey]
    by_time = np.argsort(shown, kind="stable")
    chance = np.where(per_journey == 1, twin.attributed_single, twin.attributed_shared)
    return Journeys(
        rows=per_journey,
        conversion_time=conversion_time,
        identity=_identities(n_journeys, twin.colliding_ids / twin.conversions, rng),
        attributed=rng.random(n_journeys) < chance,
        cell=draw(np.cumsum(cell_weights), rng.random(n_journeys)),
        row_journey=journey[by_time],
        row_time=shown[by_time],
        row_position=position[by_time],
    )


def _identities(count: int, colliding: float, rng: np.random.Generator) -> Ints:
    """Return an id per journey, `colliding * count` of which serve two journeys."""
    identity = rng.permutation(count)
    pairs = round(colliding * count)
    chosen = rng.permutation(count)[: 2 * pairs]
    identity[chosen[:pairs]] = identity[chosen[pairs:]]
    return identity


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
