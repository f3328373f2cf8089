"""Clean logs that are awkward to check: nights, weeks, growth, launches, visitors, few displays, many actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from tests.checks.shops import DAY, HOUR
from tests.logs import build_log

Floats = npt.NDArray[np.float64]


def site(
    seed: int,
    *,
    n: int = 20_000,
    days: float = 10.0,
    k: int = 4,
    rates: Any = None,
    traffic: Any = None,
    season: Any = None,
    delay: Any = None,
    context: Any = None,
    available: Any = None,
    values: Any = None,
    until: float | None = None,
    window: int | None = 2 * DAY,
    visitors: bool = False,
) -> Log:
    """Return the log of a site with a daily rhythm.

    Parameters
    ----------
    rates
        Of the actions; even steps from .05 to .15 unless given.
    traffic, season, available
        From the day: the intensity of the traffic, the factor on all rates, and which actions are there (n, k).
    delay
        From a generator and the times of the converted displays to their delays in seconds; exponential with a mean of
        six hours unless given.
    context
        From a generator and n to contexts, shape (n, p).
    values
        From a generator and a number to values of conversions.
    until
        Day at which the log ends.
    window
        Attribution window in seconds; the log is then followed until its end.
    visitors
        Displays come in visits of five on average, of one context each, and outcomes of a visit go together.
    """
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(4 * n) * days)
    intensity = (1.0 + 0.7 * np.sin(2 * np.pi * (at - 0.4))) * (1.0 if traffic is None else traffic(at))
    at = at[rng.random(len(at)) < intensity / intensity.max()]
    at = at[np.sort(rng.choice(len(at), min(n, len(at)), replace=False))]
    luck, who = rng.random(len(at)), None
    if visitors:
        who = np.repeat(np.arange(len(at)), rng.geometric(0.2, len(at)))[: len(at)]
        first = np.searchsorted(who, who)
        at = at[first] + (np.arange(len(at)) - first) * rng.exponential(60.0, len(at)) / DAY
        order = np.argsort(at, kind="stable")
        mood = rng.random(len(at))[first]
        luck = np.where(rng.random(len(at)) < 0.5, mood, luck)
        at, who, luck = at[order], who[order], luck[order]
    if until is not None:
        kept = at < until
        at, luck = at[kept], luck[kept]
        who = None if who is None else who[kept]
    n = len(at)
    there = np.ones((n, k)) if available is None else available(at)
    chance = there / there.sum(axis=1, keepdims=True)
    action = np.minimum((rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1), k - 1)
    rate = np.linspace(0.05, 0.15, k) if rates is None else np.asarray(rates)
    theta = rate[action] * (1.0 if season is None else season(at))
    x = None if context is None else context(rng, n)
    if x is not None:
        x = x if who is None else x[np.searchsorted(np.unique(who), who)]
        theta = theta * (1.0 + 0.4 * np.tanh(x[:, 0]))
    time = (at * DAY).astype(np.int64)
    paid = np.flatnonzero(luck < theta)
    late = rng.exponential(6 * HOUR, len(paid)) if delay is None else delay(rng, time[paid])
    when = time[paid] + late.astype(np.int64)
    meta: dict[str, Any] = {}
    if window is not None:
        end = int(time[-1]) if until is None else int(until * DAY)
        seen = (when <= end) & (when - time[paid] <= window)
        paid, when, meta = paid[seen], when[seen], {"observed_until": end, "attribution_window": window}
    value = np.ones(len(paid)) if values is None else values(rng, len(paid))
    return build_log(
        time=time, action=action, n_actions=k, context=x, tick="s", conversion_display=paid, conversion_time=when,
        conversion_value=value, propensity=chance[np.arange(n), action] if available is not None else None, **meta,
    )  # fmt: skip


def slept(quiet: tuple[float, float], awake_hours: float, tail: float = 0.0) -> Callable[..., Floats]:
    """Return delays of conversions that never come at some hours of the day: they wait, and come soon after.

    Parameters
    ----------
    quiet
        From which hour to which, the first may be the evening before.
    awake_hours
        Mean delay.
    tail
        Share of conversions that take days.
    """

    def delay(rng: np.random.Generator, time: npt.NDArray[np.int64]) -> Floats:
        start, end = quiet
        late = rng.exponential(awake_hours * HOUR, len(time))
        late = np.where(rng.random(len(time)) < tail, rng.exponential(1.0 * DAY, len(time)), late)
        when = time + late
        hour = (when / HOUR - start) % 24
        asleep = hour < (end - start) % 24
        wakes = when + ((end - start) % 24 - hour) * HOUR + rng.exponential(1.5 * HOUR, len(time))
        return np.asarray(np.where(asleep, wakes, when) - time)

    return delay


def _one_hot(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(np.eye(3, dtype=np.float32)[rng.choice(3, n, p=[0.6, 0.3, 0.1])])


def _hashed(rng: np.random.Generator, n: int) -> Floats:
    """Sixteen columns, of which two hashed words set one each: some hundred vectors, a few of them common."""
    x = np.zeros((n, 16), np.float32)
    for _ in range(2):
        x[np.arange(n), np.minimum(rng.geometric(0.25, n) - 1, 15)] += 1.0
    return x


def _normal(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(rng.normal(size=(n, 4)).astype(np.float32))


def _weekly(at: Floats) -> Floats:
    return np.asarray(np.where(at % 7 >= 5, 0.6, 1.0))


def launched(at: Floats) -> Floats:
    """One action comes in an evening, and rates follow the hour."""
    there = np.ones((len(at), 4))
    there[at < 3.75, 3] = 0.0
    return there


def by_hour(at: Floats) -> Floats:
    return np.asarray(1.0 + 0.5 * np.sin(2 * np.pi * at))


def _growth(at: Floats) -> Floats:
    return np.asarray(1.0 + 0.2 * at)


NIGHTS: dict[str, Callable[[int], Log]] = {
    f"{words}, ends at {hour:02d}:00": lambda seed, q=quiet, a=awake, tail=tail, hour=hour: site(
        seed, delay=slept(q, a, tail), until=8 + hour / 24
    )
    for words, quiet, awake, tail in (
        ("sleep 22 to 7", (22.0, 7.0), 4.0, 0.0),
        ("sharp sleep 0 to 6, short delays", (0.0, 6.0), 1.0, 0.0),
        ("sleep 21 to 7, delays of days", (21.0, 7.0), 3.0, 0.4),
    )
    for hour in (2, 5, 7, 9, 16)
}

AWKWARD: dict[str, Callable[[int], Log]] = {
    **{f"nights: {name}": make for name, make in NIGHTS.items() if "07:00" in name},
    "weekends with less traffic, four weeks": lambda seed: site(seed, days=28, traffic=_weekly, context=_normal),
    "growth threefold": lambda seed: site(seed, traffic=_growth, context=_normal),
    "rare conversions": lambda seed: site(seed, rates=np.full(4, 0.004), context=_normal),
    "revenue": lambda seed: site(seed, values=lambda rng, m: np.round(np.exp(rng.normal(3, 0.5, m)), 2)),
    "one-hot contexts": lambda seed: site(seed, context=_one_hot),
    "hashed contexts": lambda seed: site(seed, context=_hashed),
    "visits of several displays": lambda seed: site(seed, context=_normal, visitors=True),
    "500 displays": lambda seed: site(seed, n=500, rates=[0.2, 0.3, 0.4, 0.5], context=_normal),
    "200 actions": lambda seed: site(seed, k=200, n=40_000, context=_normal),
    "two days": lambda seed: site(seed, days=2.3, window=6 * HOUR, delay=lambda rng, t: rng.exponential(HOUR, len(t))),
    "not followed, a month later": lambda seed: site(seed, window=None, context=_normal),
}  # fmt: skip
