"""The loops every policy runs in: compiled for built-in states, and the same source interpreted for Python policies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import compiled, compiled_uncached, inlinable
from evaluator.engine.kernels.intrinsics import borrowed, prefetch_logged
from evaluator.engine.kernels.ridge import row
from evaluator.engine.pending import PendingConversions, push, take
from evaluator.policies.dispatch import begin, choose, held_choice, shown, told, told_sum, wins
from evaluator.replays.rounds.batch import Batch


class ReplayCounters(NamedTuple):
    """Counters of a replay, each of shape (1,).

    `prepared` is 1 while a round waits for its display; `rounds` counts accepted displays; `generated` conversions
    are theirs, of which `expired` come after the window and `delivered` have been revealed.
    """

    prepared: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    generated: npt.NDArray[np.int64]
    expired: npt.NDArray[np.int64]
    delivered: npt.NDArray[np.int64]


def no_progress() -> ReplayCounters:
    """Return counters at 0."""
    return ReplayCounters(*(np.zeros(1, np.int64) for _ in ReplayCounters._fields))


@inlinable
def play_round(
    state: Any,
    vectors: npt.NDArray[np.floating],
    batch: Batch,
    i: int,
    action: int,
    window: int,
    pending: PendingConversions,
    progress: ReplayCounters,
) -> None:
    """Show display `i`, whose vectors these are, then reveal every conversion due by the end of the round."""
    shown(state, vectors, action)
    progress.rounds[0] += 1
    now = progress.rounds[0]
    for c in range(batch.first_conversion[i], batch.first_conversion[i + 1]):
        progress.generated[0] += 1
        if batch.delay[c] > window:
            progress.expired[0] += 1
        else:
            push(pending, now + batch.delay[c], batch.delay[c], action, batch.value[c], vectors, row(vectors, action))
    total = 0.0
    slot = take(pending, now)
    while slot >= 0:
        progress.delivered[0] += 1
        total += pending.value[slot]
        told(state, pending.vector[slot], pending.action[slot], pending.delay[slot], pending.value[slot])
        slot = take(pending, now)
    told_sum(state, total)
    progress.prepared[0] = 0


def _match(
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    n_actions: int,
    window: int,
    horizon: int,
    pending: PendingConversions,
    progress: ReplayCounters,
    accepted: npt.NDArray[np.int64],
    choices: npt.NDArray[np.int32] | None,
) -> int:
    """Accept each display whose logged action is the round's choice; return how many displays were read.

    The accepted displays' numbers within the batch go to `accepted` from its start on. The choice at every display that
    is read, thinned out or not, goes to `choices`; None asks for none, and is compiled without.
    """
    state, rng, batch, pending, progress = borrowed((state, rng, batch, pending, progress))
    written = i = 0
    while i < batch.action.shape[0] and progress.rounds[0] < horizon:
        if progress.prepared[0] == 0:
            begin(state, rng)
            progress.prepared[0] = 1
        if choices is None:
            i = _next_match(state, batch, i, n_actions)
            matches = i < batch.action.shape[0]
        else:
            chosen = choose(state, batch.vectors[_place(batch, i)])
            if chosen < 0 or chosen >= n_actions:
                raise ValueError("the policy chose an impossible action")
            choices[i] = chosen
            matches = chosen == batch.action[i]
        if matches:
            play_round(state, batch.vectors[_place(batch, i)], batch, i, _logged(batch, i), window, pending, progress)
            accepted[written] = i
            written += 1
        i += 1
    return min(i, batch.action.shape[0])


@inlinable
def _next_match(state: Any, batch: Batch, i: int, n_actions: int) -> int:
    """Return the number of the first display from `i` on that shows the round's choice; the batch's length if none."""
    n = batch.action.shape[0]
    if batch.vectors.shape[0] == 1:
        # One display's vectors serve all: the round's choice is one action.
        chosen = held_choice(state, batch.vectors[0], n_actions)
        if chosen >= 0:
            while i < n and batch.action[i] != chosen:
                i += 1
            return i
    while i < n:
        action = _logged(batch, i)
        if action >= 0:
            prefetch_logged(batch.vectors, batch.action, i)
            if wins(state, batch.vectors[_place(batch, i)], action, n_actions):
                break
        i += 1
    return i


@inlinable
def _logged(batch: Batch, i: int) -> Any:
    """Return the action logged at display i, as wide as every other: for another width, all is compiled again."""
    return np.int64(batch.action[i])


@inlinable
def _place(batch: Batch, i: int) -> int:
    """Return where display i's vectors are: one display's may serve all."""
    return i if batch.vectors.shape[0] > 1 else 0


def _serve(
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    queues: npt.NDArray[np.int64],
    heads: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    window: int,
    horizon: int,
    pending: PendingConversions,
    progress: ReplayCounters,
    accepted: npt.NDArray[np.int64],
) -> int:
    """Serve each round from the queue of its action; return the action whose queue ran dry, or -1.

    `queues` holds the displays' numbers, action by action; those of action k are heads[k] to ends[k] (excluded). Round
    t of T is served the first display of its action from place t N / T of the log on, so that the rounds pass through
    the whole log in its order, whatever is chosen. Where there is none, the first one that was passed over.
    """
    state, rng, batch, pending, progress = borrowed((state, rng, batch, pending, progress))
    n = batch.action.shape[0]
    passed = heads.copy()
    served = np.zeros(n, np.bool_)
    while progress.rounds[0] < horizon:
        begin(state, rng)
        action = choose(state, batch.vectors[0])
        if action < 0 or action >= heads.shape[0]:
            raise ValueError("the policy chose an impossible action")
        place = progress.rounds[0] * n // horizon
        at = heads[action]
        while at < ends[action] and queues[at] < place:
            at += 1
        heads[action] = min(at + 1, ends[action])
        if at == ends[action]:
            at = passed[action]
            while at < ends[action] and served[at]:
                at += 1
            passed[action] = at
            if at == ends[action]:
                return action
        served[at] = True
        i = queues[at]
        accepted[progress.rounds[0]] = i
        play_round(state, batch.vectors[_place(batch, i)], batch, i, action, window, pending, progress)
    return -1


def _follow(
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    n_actions: int,
    window: int,
    horizon: int,
    pending: PendingConversions,
    progress: ReplayCounters,
    accepted: npt.NDArray[np.int64],
) -> int:
    """Let the logging policy replay itself: every display that is left is a round; return how many were read."""
    state, rng, batch, pending, progress = borrowed((state, rng, batch, pending, progress))
    written = 0
    for i in range(batch.action.shape[0]):
        if progress.rounds[0] >= horizon:
            return i
        if batch.action[i] >= 0:
            play_round(state, batch.vectors[_place(batch, i)], batch, i, _logged(batch, i), window, pending, progress)
            accepted[written] = i
            written += 1
    return batch.action.shape[0]


match = compiled(_match)
serve = compiled(_serve)
follow = compiled(_follow)
match_uncached = compiled_uncached(_match)
serve_uncached = compiled_uncached(_serve)
match_interpreted = _match
serve_interpreted = _serve
