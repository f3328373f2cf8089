"""The loop every replay runs in: compiled for built-in states, and the same source interpreted for Python policies.

Where the next display comes from is the type of a *source*, for which Numba compiles the loop:

Matched    the next logged display that shows the policy's choice among all actions
Among      the same among the actions that are eligible at that display (`evaluator.engine.eligible_choice`)
Kept       the next display of a unit that keeps its action, or, where none is due, what another source finds
Queues     the next display in the queue of the policy's choice
Followed   the next logged display, whatever it shows; the policy is not asked
Drawn      a display of a world in which the policy plays live (`evaluator.worlds.live_rounds`): the batch is what can
           be drawn, and the source writes into it what the policy chose and what came of that
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.eligible_choice import NO_KEY, Among, any_action, best_among, is_thin, own_vector, wins_among
from evaluator.engine.kernels.argmax import LOWEST_FIRST, tie_key
from evaluator.engine.kernels.compiling import compiled, compiled_uncached, inlinable, overloads
from evaluator.engine.kernels.intrinsics import borrowed, prefetch_logged
from evaluator.engine.kernels.ridge import row
from evaluator.engine.pending import PendingConversions, push
from evaluator.engine.pushes import LiveClock, Pushes, hold, rounds_until, teach, teach_pushed, tell_due
from evaluator.policies.dispatch import (
    begin,
    begin_among,
    choose_possible,
    held_choice,
    is_settled,
    scores,
    shown,
    wins,
)
from evaluator.replays.rounds.stream import Batch, EligibleActions
from evaluator.units import NO_WINDOW

Choices = npt.NDArray[np.int32]


# Counters of a replay, in one array: 1 while a round waits for its display, 2 while all rounds up to the next push have
# begun with it; accepted displays, their conversions, those of them that come after the window, and those that have
# been revealed.
PREPARED, ROUNDS, GENERATED, EXPIRED, DELIVERED = range(5)
_UNTIL_PUSH = 2
Counters = npt.NDArray[np.int64]


def no_progress() -> Counters:
    """Return counters at 0."""
    return np.zeros(5, np.int64)


class Matched(NamedTuple):
    """Displays that show what the policy chooses among all of so many actions."""

    n_actions: int


class Explored(NamedTuple):
    """Displays that show an action drawn uniformly, in rounds of which the policy learns but in which it chooses none.

    It is drawn among the `actions` that the log shows, shape (m,), or among those of them that are eligible. Where the
    sampler keeps choices (`kept`), it is `held` until a display shows it, shape (1,), -1 while there is none; else each
    display has a draw of its own. Without actions the logging policy has chosen: every display that is left is a
    round.
    """

    actions: npt.NDArray[np.int64]
    kept: bool
    held: npt.NDArray[np.int64]


class Kept(NamedTuple):
    """Displays of units that keep the action of their first display, until they are asked anew.

    Another source `asks` the policy at first displays: it reads `asked`, the actions of the batch with -1 at all other
    displays, shape (n,). Where it finds one, the unit is accepted, and its later displays are rounds without a choice.
    Each is due as many rounds after the first as its `gap`, in ticks where there is a `clock`, -1 at first displays;
    `unit` is the number of each display's unit, -1 for displays that no unit keeps, shape (n,) each. `played` is the
    round of each unit's first display, 0 before it, shape (U,).

    Later displays that have been read wait until they are due, in a heap: when each is `due`, and its `row` in the
    batch, by which those due at once are ordered, shape (m,). Of shape (1,): how many are `waiting`, and how many of
    the batch have been `read`.
    """

    asks: Any
    asked: Choices
    unit: npt.NDArray[np.int32]
    gap: npt.NDArray[np.int64]
    played: npt.NDArray[np.int64]
    due: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]
    read: npt.NDArray[np.int64]
    clock: LiveClock | None


class Followed(NamedTuple):
    """All displays of a log whose logger is replayed."""


class Queues(NamedTuple):
    """Displays that wait to be served, each action's in a queue of its own.

    `display` are their numbers, action by action, shape (n,). What waits of an action lies there from `heads` to `ends`
    (excluded), and the first one that may have been passed over at `passed`, each of shape (K,). `served` says of each
    place whether it has been served; `dry` is the action whose queue ran dry, shape (1,), -1 while none has.
    """

    display: npt.NDArray[np.int64]
    heads: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    passed: npt.NDArray[np.int64]
    served: npt.NDArray[np.bool_]
    dry: npt.NDArray[np.int64]


def queues_of(action: npt.NDArray[np.int32], n_actions: int) -> Queues:
    """Return the queues of displays that show these actions, shape (n,), in their order."""
    display = np.argsort(action, kind="stable")
    bounds = np.searchsorted(action[display], np.arange(n_actions + 1))
    heads, ends = bounds[:-1].copy(), bounds[1:]
    return Queues(display, heads, ends, heads.copy(), np.zeros(len(action), np.bool_), np.full(1, -1))


def _replay(
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    source: Any,
    window: int,
    horizon: int,
    pending: PendingConversions,
    progress: Counters,
    accepted: npt.NDArray[np.int64] | None,
    choices: Choices | None,
    pushes: Pushes | None = None,
) -> int:
    """Show each display that is a round; return how many displays were read, in what order a source may have them.

    The shown displays' numbers within the batch go to `accepted` from its start on. The policy's choice at every
    display that is read, thinned out or not, goes to `choices`. The policy learns at `pushes`, or where that is None at
    the end of each round; an empty batch is the end of the run, after which it learns from all that still waits for a
    push. None for any of these is compiled without.
    """
    state, rng, batch, source, pending, progress = borrowed((state, rng, batch, source, pending, progress))
    # Under a name of its own: an argument that is None, and written to, is compiled with all that asks for it.
    waiting: Any = borrowed(pushes)
    n, among = batch.action.shape[0], batch.eligible is not None
    written = i = expired = delivered = generated = 0
    # Numbers in registers: the loop waits for what it has just written. Sources and errors read the rounds from memory.
    rounds = progress[ROUNDS]
    if pushes is not None and n == 0:
        progress[DELIVERED] += teach(state, waiting, pending, rounds, rng, among)
        return 0
    while rounds < horizon:
        i = next_display(source, state, rng, batch, i, horizon, progress, choices)
        if i >= n:
            break
        # As wide as every other, as in `_logged`, which would be compiled once more for being called from here.
        action: Any = np.int64(batch.action[i])
        vectors = _vectors_shown(batch.vectors, batch.eligible, i, action)
        if pushes is None:
            shown(state, vectors, action)
        rounds += 1
        progress[ROUNDS] = rounds
        generated += batch.first_conversion[i + 1] - batch.first_conversion[i]
        expired += await_conversions(pending, batch, i, rounds, action, vectors, window, waiting)
        if pushes is None:
            delivered += tell_due(state, pending, rounds)
            progress[PREPARED] = 0
        else:
            hold(waiting, rounds, action, vectors, row(vectors, action))
            pushed = waiting.done[0]
            delivered += teach_pushed(state, waiting, pending, rounds, rng, among)
            if waiting.done[0] > pushed or among:
                progress[PREPARED] = 0
            elif progress[PREPARED] < _UNTIL_PUSH:
                progress[PREPARED] = _UNTIL_PUSH if is_settled(state) else 0
        if accepted is not None:
            accepted[written] = i
        written += 1
        i += 1
    progress[GENERATED] += generated
    progress[EXPIRED] += expired
    progress[DELIVERED] += delivered
    return i


def next_display(source: Any, *asked: Any) -> int:
    """Begin a round where a display is left; return the number of the next display that is one, n for none.

    Further arguments are the state, its random stream, the batch, the number of the first display that was not read,
    the horizon, the counters, and `choices`, as of the loop.
    """
    found: int = _NEXT[type(source)](source, *asked)
    return found


def _next_matched(
    source: Matched,
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    i: int,
    horizon: int,
    progress: Counters,
    choices: Choices | None,
) -> int:
    n = batch.action.shape[0]
    if i < n and progress[PREPARED] == 0:
        begin(state, rng)
        progress[PREPARED] = 1
    if choices is None:
        return _first_match(state, batch, i, source.n_actions)
    while i < n:
        choices[i] = choose_possible(state, batch.vectors[_place(batch, i)], source.n_actions)
        if choices[i] == batch.action[i]:
            break
        i += 1
    return i


@inlinable
def _first_match(state: Any, batch: Batch, i: int, n_actions: int) -> int:
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


def _next_among(
    source: Among,
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    i: int,
    horizon: int,
    progress: Counters,
    choices: Choices | None,
) -> int:
    n = batch.action.shape[0]
    if i < n:
        if progress[PREPARED] == 0:
            begin_among(state, rng)
            source.tie_key[0] = NO_KEY
            progress[PREPARED] = 1
        if source.tie_key[0] == NO_KEY:
            source.tie_key[0] = tie_key(rng) if source.random_ties else LOWEST_FIRST
    eligible: Any = batch.eligible
    if i == 0:
        source.thin[0] = is_thin(eligible)
    if choices is not None or not scores(state):
        while i < n:
            chosen = best_among(state, batch.vectors[0], eligible, i, source.tie_key[0])
            if choices is not None:
                choices[i] = chosen
            if chosen == batch.action[i]:
                break
            i += 1
        return i
    thin = source.thin[0]
    while i < n:
        if wins_among(state, batch, i, source, thin):
            break
        i += 1
    return i


def _next_explored(
    source: Explored,
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    i: int,
    horizon: int,
    progress: Counters,
    choices: Choices | None,
) -> int:
    n = batch.action.shape[0]
    if i < n and progress[PREPARED] == 0:
        _begin_exploring(state, rng, batch.eligible)
        progress[PREPARED] = 1
    while i < n:
        action = _logged(batch, i)
        if action >= 0:
            if source.actions.shape[0] == 0:
                break
            if source.held[0] < 0:
                source.held[0] = any_action(rng, source.actions, batch.eligible, i)
            found = source.held[0] == action
            if found or not source.kept:
                source.held[0] = -1
            if found:
                break
        i += 1
    return i


@inlinable
def _begin_exploring(state: Any, rng: np.random.Generator, eligible: EligibleActions | None) -> None:
    if eligible is None:
        begin(state, rng)
    else:
        begin_among(state, rng)


def _next_kept(
    source: Kept,
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    i: int,
    horizon: int,
    progress: Counters,
    choices: Choices | None,
) -> int:
    """Begin a round, and give it the later display that is due, else the next first display that is accepted."""
    n, now = batch.action.shape[0], progress[ROUNDS] + 1
    if source.waiting[0] > 0 and source.due[0] <= now:
        if progress[PREPARED] == 0:
            begin(state, rng)
            progress[PREPARED] = 1
        return _take_first_due(source)
    while source.read[0] < n:
        at = source.read[0]
        end = _next_of_played(source, batch, at)
        firsts = Batch(
            source.asked[:end], batch.vectors, batch.first_conversion, batch.delay, batch.value, batch.eligible
        )
        found = next_display(source.asks, state, rng, firsts, at, horizon, progress, choices)
        if found < end:
            source.played[source.unit[found]] = now
            source.read[0] = found + 1
            return found
        source.read[0] = min(end + 1, n)
        if end < n:
            begun = source.played[source.unit[end]]
            due = begun + rounds_until(source.clock, begun, source.gap[end])
            if due <= now:
                if progress[PREPARED] == 0:
                    begin(state, rng)
                    progress[PREPARED] = 1
                return end
            _let_wait(source, due, end)
    return n


@inlinable
def _next_of_played(source: Kept, batch: Batch, at: int) -> Any:
    """Return the number of the next later display of a unit that is played; the batch's length if there is none."""
    while at < batch.action.shape[0]:
        if batch.action[at] >= 0 and source.gap[at] >= 0:
            unit = source.unit[at]
            if unit >= 0 and source.played[unit] > 0:
                break
        at += 1
    return at


@inlinable
def _let_wait(source: Kept, due: int, row: int) -> None:
    """Add a display to the heap."""
    at = source.waiting[0]
    source.waiting[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if source.due[above] < due or (source.due[above] == due and source.row[above] < row):
            break
        source.due[at], source.row[at] = source.due[above], source.row[above]
        at = above
    source.due[at], source.row[at] = due, row


@inlinable
def _take_first_due(source: Kept) -> Any:
    """Remove the display that is due first from the heap; return its row."""
    found = source.row[0]
    source.waiting[0] -= 1
    size = source.waiting[0]
    due, row = source.due[size], source.row[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and (
            source.due[below + 1] < source.due[below]
            or (source.due[below + 1] == source.due[below] and source.row[below + 1] < source.row[below])
        ):
            below += 1
        if due < source.due[below] or (due == source.due[below] and row < source.row[below]):
            break
        source.due[at], source.row[at] = source.due[below], source.row[below]
        at = below
    source.due[at], source.row[at] = due, row
    return found


def _next_served(
    source: Queues,
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    i: int,
    horizon: int,
    progress: Counters,
    choices: Choices | None,
) -> int:
    """Begin a round, and serve it from the queue of its choice.

    Round t of T is served the first display of its action from place t N / T of the log on, so that the rounds pass
    through the whole log in its order, whatever is chosen. Where there is none, the first one that was passed over.
    """
    if progress[PREPARED] == 0:
        begin(state, rng)
        progress[PREPARED] = 1
    n = batch.action.shape[0]
    place = progress[ROUNDS] * n // horizon
    action = choose_possible(state, batch.vectors[0], source.heads.shape[0])
    at, end = source.heads[action], source.ends[action]
    while at < end and source.display[at] < place:
        at += 1
    source.heads[action] = min(at + 1, end)
    if at == end:
        at = source.passed[action]
        while at < end and source.served[at]:
            at += 1
        source.passed[action] = at
        if at == end:
            source.dry[0] = action
            return n
    source.served[at] = True
    return source.display[at]


def _next_logged(
    source: Followed,
    state: Any,
    rng: np.random.Generator,
    batch: Batch,
    i: int,
    horizon: int,
    progress: Counters,
    choices: Choices | None,
) -> int:
    while i < batch.action.shape[0] and batch.action[i] < 0:
        i += 1
    return i


_NEXT: dict[type, Callable[..., Any]] = {
    Matched: _next_matched, Explored: _next_explored, Among: _next_among, Kept: _next_kept, Queues: _next_served,
    Followed: _next_logged,
}  # fmt: skip


def add_source(kind: type, next_of_kind: Callable[..., int]) -> None:
    """Let displays come from another kind of source, a NamedTuple: its `next_display`, which is compiled with the loop.

    Worlds are sources that the engine does not know.
    """
    _NEXT[kind] = next_of_kind


@overloads(next_display)
def _compile_next_display(source: Any, *asked: Any) -> Any:
    return _NEXT[source.instance_class]


@inlinable
def _vectors_shown(vectors: npt.NDArray[np.floating], eligible: EligibleActions | None, i: int, action: int) -> Any:
    """Return the vectors of display i among which that of its action is."""
    if eligible is None:
        return vectors[i if vectors.shape[0] > 1 else 0]
    return own_vector(vectors[0], eligible, i, action)


@inlinable
def _logged(batch: Batch, i: int) -> Any:
    """Return the action logged at display i, as wide as every other: for another width, all is compiled again."""
    return np.int64(batch.action[i])


@inlinable
def _place(batch: Batch, i: int) -> int:
    """Return where display i's vectors are: one display's may serve all."""
    return i if batch.vectors.shape[0] > 1 else 0


@inlinable
def await_conversions(
    pending: PendingConversions,
    batch: Batch,
    i: int,
    now: int,
    action: int,
    vectors: npt.NDArray[np.floating],
    window: int,
    pushes: Pushes | None,
) -> int:
    """Let the conversions of display `i` wait, which round `now` shows; return how many come after the window."""
    expired = 0
    for c in range(batch.first_conversion[i], batch.first_conversion[i + 1]):
        delay = batch.delay[c]
        if pushes is not None and delay < NO_WINDOW:
            delay = rounds_until(pushes.clock, now, delay)
            if pushes.closes:
                delay = min(delay, window)
        if delay > window:
            expired += 1
        else:
            push(pending, now + delay, delay, action, batch.value[c], vectors, row(vectors, action))
    return expired


replay = compiled(_replay)
replay_uncached = compiled_uncached(_replay)
replay_interpreted = _replay
