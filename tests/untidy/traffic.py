"""The traffic: every display with its time, what each action would bring, what was shown, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.untidy.settings import DAY_S, Untidy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Traffic:
    """All displays of a site, n of them, with their truth.

    Parameters
    ----------
    untidy
        What it was drawn from.
    time
        Seconds since midnight of the first day, increasing, shape (n,).
    share
        Share of the whole time that has passed, shape (n,).
    context, user
        Shape (n,).
    rates
        Chance of each action to convert given the context, the time and the user, shape (n, K), before wear-out.
    earlier
        Number of earlier displays of the same user, shape (n,).
    values
        Expected value of a conversion of each action, shape (K,).
    available, logger
        Whether and with what probability each action was shown, shape (n, K).
    action, converts, delay, value
        What was shown, whether it converts, after how many seconds and for what value, shape (n,).
    """

    untidy: Untidy
    time: Floats
    share: Floats
    context: Ints
    user: Ints
    rates: Floats
    earlier: Ints
    values: Floats
    available: Flags
    logger: Floats
    action: Ints
    converts: Flags
    delay: Floats
    value: Floats


def draw_traffic(untidy: Untidy, seed: int) -> Traffic:
    """Return the traffic of a seed."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(77,)))
    n, k = untidy.displays, untidy.n_actions
    start = rng.random() * DAY_S
    time = start + _arrivals(untidy, start, rng.random(n))
    share = (time - start) / (untidy.days * DAY_S)
    context = rng.integers(untidy.contexts, size=n)
    rates = _rates(untidy, time, share, context)
    available = _available(untidy, share)
    if untidy.sets:
        available = rng.random((n, k)) < untidy.sets
        available[np.arange(n), rng.integers(k, size=n)] = True
    logger = _logger(untidy, time, share, context, available)
    action = _draw(logger, rng.random(n))
    luck = rng.random(n)
    user = np.zeros(n, np.int64)
    if untidy.users:
        user, luck = _users(untidy.users, n, rng)
        rates = (luck[:, None] < rates).astype(np.float64)
    at = np.arange(n)
    earlier, worn = np.zeros(n, np.int64), np.ones(n)
    if untidy.visitors:
        user = rng.integers(untidy.visitors, size=n)
        earlier = _earlier(user)
        worn = np.exp(-untidy.wear_out * np.sqrt(_earlier(user * k + action)))
    values = np.ones(k) if untidy.mean_values is None else np.array(untidy.mean_values)
    noise = np.exp(untidy.log_sd * rng.standard_normal(n) - untidy.log_sd**2 / 2)
    return Traffic(
        untidy=untidy, time=time, share=share, context=context, user=user, rates=rates, earlier=earlier,
        values=values, available=available, logger=logger, action=action, converts=luck < rates[at, action] * worn,
        delay=draw_delays(untidy, action, rng.random(n)), value=values[action] * noise,
    )  # fmt: skip


def draw_delays(untidy: Untidy, action: Ints, uniform: Floats) -> Floats:
    """Return delays in seconds by inversion, shape (n,)."""
    factor = 1.0 if untidy.slowness is None else np.array(untidy.slowness)[action]
    if untidy.tail is None:
        return np.asarray(uniform * untidy.longest_s * factor)
    return np.asarray(60.0 * np.maximum(1.0 - uniform, 1e-9) ** (-1.0 / untidy.tail) * factor)


def seen_within(untidy: Untidy, seconds: float) -> Floats:
    """Return the chance of each action's conversions to come within so many seconds, shape (K,)."""
    factor = np.ones(untidy.n_actions) if untidy.slowness is None else np.array(untidy.slowness)
    if untidy.tail is None:
        return np.clip(seconds / (untidy.longest_s * factor), 0.0, 1.0)
    return np.asarray(1.0 - np.maximum(seconds / (60.0 * factor), 1.0) ** -untidy.tail)


def _arrivals(untidy: Untidy, start: float, uniform: Floats) -> Floats:
    """Return seconds since the start, sorted: by inversion of the cumulative intensity."""
    grid = np.linspace(0.0, untidy.days * DAY_S, 20_001)
    middle = (grid[1:] + grid[:-1]) / 2
    rate = 1.0 - untidy.rhythm * np.cos(2 * np.pi * (middle + start) / DAY_S)
    rate = np.where(middle < grid[-1] / 2, rate, rate * untidy.growth)
    cumulative = np.concatenate([[0.0], np.cumsum(rate)])
    return np.interp(np.sort(uniform), cumulative / cumulative[-1], grid)


def afternoon(time: Floats) -> Floats:
    """Return 1 in the middle of the afternoon, -1 at night, shape (n,)."""
    return np.asarray(np.cos(2 * np.pi * (time / DAY_S - 15 / 24)))


def _rates(untidy: Untidy, time: Floats, share: Floats, context: Ints) -> Floats:
    means = np.array(untidy.means)
    by_context = np.stack([means, 0.7 * means[::-1]])[context]
    factor = 1.0 + untidy.drift * (2.0 * share - 1.0)
    return np.asarray(by_context * (factor * (1.0 + untidy.rate_by_hour * afternoon(time)))[:, None])


def _available(untidy: Untidy, share: Floats) -> Flags:
    first = np.zeros(untidy.n_actions) if untidy.launches is None else np.array(untidy.launches)
    last = np.full(untidy.n_actions, 2.0) if untidy.retirements is None else np.array(untidy.retirements)
    return np.asarray((share[:, None] >= first) & (share[:, None] < last))


def _logger(untidy: Untidy, time: Floats, share: Floats, context: Ints, available: Flags) -> Floats:
    k = untidy.n_actions
    fixed = np.full(k, 1.0 / k) if untidy.logger is None else np.array(untidy.logger)
    weight = np.tile(fixed, (len(time), 1))
    if untidy.logger_changes:
        weight[share >= 0.5] = fixed[::-1]
    if untidy.logger_by_hour:
        weight[:, -1] *= 1.0 + untidy.logger_by_hour * afternoon(time)
    if untidy.hole:
        weight[context == 1, -1] = 0.0
    weight = weight * available
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _draw(probability: Floats, uniform: Floats) -> Ints:
    edges = np.cumsum(probability, axis=1)
    return np.asarray((uniform[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1), np.int64)


def _users(users: int, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return the user of each display, few of them with most displays, and the one number that decides his outcomes."""
    weight = rng.pareto(1.0, users) + 0.05
    user = rng.choice(users, n, p=weight / weight.sum())
    return user, rng.random(users)[user]


def _earlier(of: Ints) -> Ints:
    """Return how often each number came before, shape (n,)."""
    order = np.argsort(of, kind="stable")
    first = np.flatnonzero(np.diff(of[order], prepend=-1))
    since = np.arange(len(of)) - np.repeat(first, np.diff(first, append=len(of)))
    earlier = np.empty(len(of), np.int64)
    earlier[order] = since
    return earlier
