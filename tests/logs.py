"""Logs with a known truth, built by hand for tests: whatever a test varies is an argument."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log import EventKind, Log, LogMeta
from evaluator.log.eligible import pack
from evaluator.log.log_tables import merge_events, with_kind
from evaluator.log.schema import fixed_size_lists


def build_log(
    *,
    time: npt.ArrayLike,
    action: npt.ArrayLike,
    conversion_display: npt.ArrayLike = (),
    conversion_time: npt.ArrayLike = (),
    conversion_value: npt.ArrayLike | None = None,
    n_actions: int,
    propensity: npt.ArrayLike | None = None,
    context: npt.NDArray[np.float64] | None = None,
    action_set: npt.NDArray[np.float64] | None = None,
    expected_reward: npt.NDArray[np.float64] | None = None,
    eligible: npt.NDArray[np.bool_] | None = None,
    **meta: Any,
) -> Log:
    """Return a log from plain arrays; uniform propensities unless given, rewards up to 1 or what a display earns."""
    n = len(np.asarray(time))
    among = n_actions if eligible is None else np.maximum(eligible.sum(axis=1), 1)
    p = np.full(n, 1.0 / among) if propensity is None else np.asarray(propensity, np.float64)
    displays = pa.table(
        {
            "display_id": pa.array(np.arange(n)),
            "time": pa.array(np.asarray(time, np.int64)),
            "action": pa.array(np.asarray(action, np.int32)),
            "propensity": pa.array(p),
        }
    )
    for name, array in (
        ("context", context),
        ("action_set", action_set),
        ("expected_reward", expected_reward),
    ):
        if array is not None:
            displays = displays.append_column(name, fixed_size_lists(array))
    if eligible is not None:
        displays = displays.append_column("eligible", pack(eligible))
    of, when = np.asarray(conversion_display, np.int64), np.asarray(conversion_time, np.int64)
    value = np.ones(len(of)) if conversion_value is None else np.asarray(conversion_value, np.float64)
    conversions = pa.table({"display_id": pa.array(of), "time": pa.array(when), "value": pa.array(value)})
    labels = [f"a{k}" for k in range(n_actions)]
    actions = pa.table({"action": pa.array(np.arange(n_actions, dtype=np.int32)), "label": pa.array(labels)})
    kind = "uniform" if propensity is None else "logged"
    earned = np.bincount(np.unique(of, return_inverse=True)[1], value, minlength=1)
    most = float(np.nanmax(earned, initial=1.0, where=np.isfinite(earned)))
    defaults: dict[str, Any] = {"name": "test", "tick": "round", "propensity": kind, "reward_max": most}
    return Log(displays, conversions, actions, LogMeta(**{**defaults, **meta}))


def bernoulli_log(
    n: int, means: npt.ArrayLike, *, mean_delay: float, seed: int, logger: npt.ArrayLike | None = None
) -> Log:
    """Return a log of `n` displays, one a round: Bernoulli arms, geometric delays on {0, 1, ...} with this mean."""
    mu = np.asarray(means, np.float64)
    k = len(mu)
    rng = np.random.default_rng(seed)
    p = np.full(k, 1.0 / k) if logger is None else np.asarray(logger, np.float64)
    action = rng.choice(k, n, p=p)
    shown = np.flatnonzero(rng.random(n) < mu[action])
    delay = rng.geometric(1.0 / (1.0 + mean_delay), len(shown)) - 1
    return build_log(
        time=np.arange(n),
        action=action,
        conversion_display=shown,
        conversion_time=shown + delay,
        n_actions=k,
        propensity=None if logger is None else p[action],
        expected_reward=np.tile(mu, (n, 1)),
    )


def linear_log(
    n: int,
    *,
    n_actions: int,
    dimension: int,
    mean_delay: float,
    seed: int,
    temperature: float | None = None,
    logger: npt.ArrayLike | None = None,
) -> Log:
    """Return a log of the linear scenario of Vernade et al. 2020, delays geometric on {1, 2, ...}.

    With a `temperature`, the logger is a softmax of the arms' true rewards at that temperature, so that it depends on
    the context; with a `logger`, it shows actions with these probabilities, whatever the context.
    """
    rng = np.random.default_rng(seed)
    vectors = rng.random((n, n_actions, dimension))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    expected = vectors @ np.full(dimension, 1.0 / np.sqrt(dimension))
    p = np.full((n, n_actions), 1.0 / n_actions)
    if logger is not None:
        p = np.tile(np.asarray(logger, np.float64), (n, 1))
    if temperature is not None:
        p = np.exp(expected / temperature)
        p /= p.sum(axis=1, keepdims=True)
    action = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), n_actions - 1)
    at = np.arange(n)
    shown = np.flatnonzero(rng.random(n) < expected[at, action])
    return build_log(
        time=at,
        action=action,
        conversion_display=shown,
        conversion_time=shown + rng.geometric(1.0 / mean_delay, len(shown)),
        n_actions=n_actions,
        propensity=None if temperature is None and logger is None else p[at, action],
        action_set=vectors,
        expected_reward=expected,
    )


def with_outcome(
    log: Log,
    name: str,
    display: npt.ArrayLike,
    time: npt.ArrayLike,
    value: npt.ArrayLike | None = None,
    **about: Any,
) -> Log:
    """Return a log with events of one more outcome, value 1 unless given; `about` as `EventKind` takes it."""
    of, when = np.asarray(display, np.int64), np.asarray(time, np.int64)
    worth = np.ones(len(of)) if value is None else np.asarray(value, np.float64)
    events = with_kind(pa.table({"display_id": of, "time": when, "value": worth}), name)
    changed = log.with_meta(outcomes=(*log.meta.outcomes, EventKind(name=name, **about)))
    return changed.changed(events=merge_events(log.events, events))


def in_rounds(log: Log) -> Log:
    """Return a log whose clock counts its displays."""
    time = log.column("time")
    when = np.searchsorted(time, log.conversions["time"].to_numpy(), side="right") - 1
    displays = log.displays.set_column(1, "time", [np.arange(len(log))])
    conversions = log.conversions.set_column(1, "time", [when])
    shown = conversions["display_id"].to_numpy()
    longest = max(int(np.searchsorted(time, time[0] + (log.meta.attribution_window or 0))), int((when - shown).max()))
    return dataclasses.replace(log, displays=displays, events=conversions).with_meta(
        tick="round", observed_until=len(log) - 1, attribution_window=longest
    )
