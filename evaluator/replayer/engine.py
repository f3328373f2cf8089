"""One replay: a policy's state walks through the logged rounds, batch by batch.

The result depends on the log, the policy and the seed alone: not on the size of the batches, nor on how many replays
run beside this one. The policy's description is never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.errors import EvaluatorError, PolicyError
from evaluator.policies.base import Policy, Setting
from evaluator.replayer import loop
from evaluator.replayer.pending import nothing_pending, with_room
from evaluator.replayer.samplers import SamplerName
from evaluator.rounds.arrays import Batch, LoggedRounds

BATCH = 65_536
# Streams never meet: datasets draw from spawn key (0,), the samplers from (1, repeat), policies from (2, repeat).
_SAMPLER_STREAM, _POLICY_STREAM = 1, 2


@dataclass(frozen=True)
class Replay:
    """What a replay did.

    Parameters
    ----------
    displays
        Numbers of the accepted displays, round by round, shape (T,).
    read
        Logged displays the sampler went through; those not accepted were rejected.
    generated, delivered, expired, pending
        Conversions of the accepted displays: all; revealed; later than the window; still to come after round T.
        generated = delivered + expired + pending.
    dry
        Action whose queue ran dry and ended the replay; -1 otherwise.
    """

    displays: npt.NDArray[np.int64]
    read: int
    generated: int
    delivered: int
    expired: int
    pending: int
    dry: int = -1


def sampler_stream(seed: int, repeat: int) -> np.random.Generator:
    """Return the stream that thins the log: the same for every policy."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SAMPLER_STREAM, repeat)))


def run(
    policy: Any,
    setting: Setting,
    rounds: LoggedRounds,
    *,
    sampler: SamplerName,
    seed: int = 0,
    repeat: int = 0,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda displays: None,
) -> Replay:
    """Replay one policy.

    Parameters
    ----------
    policy
        A `Policy`, or a wrapped Python class.
    setting
        What the policy is told; its window and horizon are those of the replay.
    rounds
        The logged rounds, thinned as the sampler needs.
    sampler
        rejection or keep (match display by display), queue, or logged.
    seed, repeat
        Fix the policy's stream.
    batch_size
        Displays handed to the loop at a time; the result does not depend on it.
    advance
        Called with the displays read since the last call.

    Raises
    ------
    PolicyError
        The policy raised, or chose an impossible action.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_POLICY_STREAM, repeat)))
    state = policy.start(setting)
    progress = loop.no_progress()
    try:
        if sampler == "queue" and len(rounds):
            return _run_queue(policy, state, rng, setting, rounds, progress, advance)
        return _run_batches(policy, state, rng, setting, rounds, sampler, progress, batch_size, advance)
    except Exception as error:
        if isinstance(error, EvaluatorError) or _is_ours(policy):
            raise
        raise PolicyError(
            f"{policy.name} raised {type(error).__name__}: {error}.",
            hint=f"actions go from 0 to {setting.n_actions - 1}; --debug shows where.",
        ) from error


def _run_batches(
    policy: Any,
    state: Any,
    rng: np.random.Generator,
    setting: Setting,
    rounds: LoggedRounds,
    sampler: SamplerName,
    progress: loop.Progress,
    batch_size: int,
    advance: Callable[[int], None],
) -> Replay:
    step = (
        loop.follow
        if sampler == "logged"
        else _loop_for(policy, loop.match, loop.match_uncached, loop.match_interpreted)
    )
    pending = nothing_pending(1024, rounds.vectors.shape[2])
    displays, read = [], 0
    for first, batch in rounds.batches(batch_size):
        pending = with_room(pending, len(batch.delay), reach=_reach(batch, setting.window))
        before = int(progress.rounds[0])
        accepted = np.empty(len(batch.action), np.int64)
        seen = step(state, rng, batch, setting.n_actions, setting.window, setting.horizon, pending, progress, accepted)
        displays.append(first + accepted[: int(progress.rounds[0]) - before])
        read += int(seen)
        advance(int(seen))
        if seen < len(batch.action):
            break
    return _result(np.concatenate(displays) if displays else np.zeros(0, np.int64), read, progress, pending.size)


def _run_queue(
    policy: Any,
    state: Any,
    rng: np.random.Generator,
    setting: Setting,
    rounds: LoggedRounds,
    progress: loop.Progress,
    advance: Callable[[int], None],
) -> Replay:
    k = setting.n_actions
    queues = np.argsort(rounds.action, kind="stable")
    bounds = np.searchsorted(rounds.action[queues], np.arange(k + 1))
    heads, ends = bounds[:-1].copy(), bounds[1:]
    _, batch = next(rounds.batches(len(rounds)))
    horizon = min(setting.horizon, len(rounds))
    accepted = np.empty(horizon, np.int64)
    pending = nothing_pending(len(batch.delay), rounds.vectors.shape[2], reach=_reach(batch, setting.window))
    step = _loop_for(policy, loop.serve, loop.serve_uncached, loop.serve_interpreted)
    dry = step(state, rng, batch, queues, heads, ends, setting.window, horizon, pending, progress, accepted)
    advance(len(rounds))
    # Every display up to the last one served was looked at; those left in a queue were not rejected but not needed.
    return _result(accepted[: int(progress.rounds[0])], len(rounds), progress, pending.size, int(dry))


def _reach(batch: Batch, window: int) -> int:
    """Return the longest delay of the batch that will ever be revealed."""
    return int(np.max(batch.delay, where=batch.delay <= window, initial=0))


def _loop_for(policy: Any, cached: Any, uncached: Any, interpreted: Any) -> Any:
    if not isinstance(policy, Policy):
        return interpreted
    return cached if _is_ours(policy) else uncached


def _is_ours(policy: Any) -> bool:
    return type(policy).__module__.startswith("evaluator.") and isinstance(policy, Policy)


def _result(
    displays: npt.NDArray[np.int64],
    read: int,
    progress: loop.Progress,
    pending: npt.NDArray[np.int64],
    dry: int = -1,
) -> Replay:
    return Replay(
        displays=displays,
        read=read,
        generated=int(progress.generated[0]),
        delivered=int(progress.delivered[0]),
        expired=int(progress.expired[0]),
        pending=int(pending[0]),
        dry=dry,
    )
