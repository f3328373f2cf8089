"""Logs of clicks that foretell sales, that say nothing of them, and of clickbait, with their true shares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from tests.logs import build_log, with_outcome

Floats = npt.NDArray[np.float64]
DAY, HOUR = 86_400, 3_600
# Days of the log, and how long a display is followed for clicks and for sales.
DAYS, CLICK_WINDOW, SALE_WINDOW = 14, 6 * HOUR, 7 * DAY


class World(NamedTuple):
    """Probabilities of each action: of a click, of a sale after one, and of a sale that no click comes before."""

    click: tuple[float, ...]
    sale_of_click: tuple[float, ...]
    sale_alone: tuple[float, ...]


WORLDS = {
    "clicks foretell sales": World((0.1, 0.2, 0.5), (0.3, 0.3, 0.3), (0.01, 0.0225, 0.09)),
    "clicks of any kind": World((0.3, 0.3, 0.3), (0.1, 0.1, 0.1), (0.1, 0.1, 0.1)),
    "clickbait": World((0.6, 0.3, 0.2), (0.05, 0.2, 0.8), (0.02, 0.02, 0.02)),
}


class Drawn(NamedTuple):
    """Action of each display, and the delays of its click and of its sale in seconds; inf where there is none."""

    action: npt.NDArray[np.int64]
    click: Floats
    sale: Floats


class Truth(NamedTuple):
    """Share of clicks within their window that a sale follows within its own, and of such sales that a click precedes.

    Of all actions, then of each, shape (1 + K,).
    """

    followed: Floats
    preceded: Floats


def draw(world: World, n: int, rng: np.random.Generator, *, per_user: int = 1) -> Drawn:
    """Return what becomes of displays of a uniform logger, however late; `per_user` in a row share their chances."""
    action = rng.integers(0, len(world.click), n)
    clicks, of_clicks, alone = (np.asarray(of)[action] for of in world)
    clicking, selling = (np.repeat(rng.random(-(-n // per_user)), per_user)[:n] for _ in range(2))
    click = np.where(clicking < clicks, rng.exponential(2 * HOUR, n), np.inf)
    start, chance = np.where(clicking < clicks, click, 0.0), np.where(clicking < clicks, of_clicks, alone)
    sale = np.where(selling < chance, start + rng.exponential(2 * DAY, n), np.inf)
    return Drawn(action, np.floor(click), np.floor(sale))


def truth(world: World, rng: np.random.Generator, n: int = 2_000_000) -> Truth:
    """Return the true shares, from displays that nothing cuts off but the two windows."""
    drawn = draw(world, n, rng)
    click, sale = drawn.click <= CLICK_WINDOW, drawn.sale <= SALE_WINDOW
    both = click & sale & (drawn.click <= drawn.sale)
    groups = [np.ones(n, np.bool_), *(drawn.action == a for a in range(len(world.click)))]
    return Truth(*(np.array([both[of].sum() / has[of].sum() for of in groups]) for has in (click, sale)))


def a_log(
    world: World, n: int, rng: np.random.Generator, *, click_window: int | None = CLICK_WINDOW,
    sale_window: int | None = SALE_WINDOW, per_user: int = 1,
) -> Log:  # fmt: skip
    """Return a log that stops looking after `DAYS` days."""
    drawn = draw(world, n, rng, per_user=per_user)
    time = np.sort(rng.integers(0, DAYS * DAY, n))
    clicked, sold = (
        np.flatnonzero((time + delay <= DAYS * DAY) & (delay <= (np.inf if window is None else window)))
        for delay, window in ((drawn.click, click_window), (drawn.sale, sale_window))
    )
    log = build_log(
        time=time, action=drawn.action, conversion_display=sold,
        conversion_time=time[sold] + drawn.sale[sold].astype(np.int64), n_actions=len(world.click), tick="s",
        observed_until=DAYS * DAY, attribution_window=sale_window, reward_max=1.0, name="shop",
    )  # fmt: skip
    return with_outcome(
        log, "click", clicked, time[clicked] + drawn.click[clicked].astype(np.int64), value_max=1.0,
        observed_until=DAYS * DAY, attribution_window=click_window,
    )  # fmt: skip
