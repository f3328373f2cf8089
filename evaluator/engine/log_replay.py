"""One replay: a policy's state walks through the logged rounds, batch by batch.

The result depends on the log, the policy and the seed alone: not on the size of the batches, nor on how many replays
run beside this one. The policy's description is never changed.

Which sampler replays a policy without bias, also where rates drift and the logger is uneven.

rejection   A display is accepted when the policy's choice is the logged action and a draw is below c / propensity, with
            one number c for the whole log. Right for every policy, and the only one for contextual policies. How many
            displays are accepted depends on no outcome.
keep        The choice of a non-contextual policy is held, with its randomness, until a logged display matches it. It
            needs no propensities where the logger ignored contexts and outcomes, and keeps the order of the log. Where
            the logger is uneven, the number of rounds depends on what the policy chose.
queue       Each action's displays wait in a queue of their own, and every round is served from the queue of its choice
            (Mandel et al. 2015). It gives up to N rounds, until the log has no more displays of what is chosen. The
            policy meets an action's displays earlier or later than the others', so rates that drift while an action is
            chosen more often than it was logged become bias. Used only where it is asked for by name.
logged      The logging policy itself: every display is a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from evaluator.engine import loop
from evaluator.engine.eligible_choice import NO_KEY, Among, among_eligible
from evaluator.engine.kernels.compiling import LoopCall
from evaluator.engine.pending import PendingConversions, nothing_pending, with_room
from evaluator.engine.pushes import LiveClock, Pushes, PushTimes
from evaluator.errors import ParameterError, nearest
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import choose
from evaluator.policies.running import blamed, has_random_ties, loop_for, reward_unit
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.rounds.stream import Batch, read_only, read_only_batch
from evaluator.streams import Stream, random_stream

BATCH = 65_536


@dataclass(frozen=True)
class Replay:
    """What a replay did.

    `displays` are the numbers of the accepted displays, round by round, shape (T,), of `read` ones that the sampler
    went through. Of the conversions of the accepted displays `generated` counts all, `delivered` those revealed,
    `expired` those later than the window and `pending` those still to come after round T: generated = delivered +
    expired + pending. `dry` is the action whose queue ran dry and ended the replay, else -1.

    What follows is handed on: the `state` of the policy after the last round, whether it has already begun a further
    round, for which the log held no display (`prepared`), its random stream after its last draw, and the pending
    conversions with rewards as the policy will be told them (`calendar`; None when there was no round). `waiting` is
    the action that a policy, not a contextual one, waited for when the displays ended, else -1; `undue` is the number
    of displays of accepted units that were not due yet when the rounds ended; `choices` are those at
    every display read, shape (read,), None where they were not recorded; `tie_key` is the key of the order among equal
    scores of the round that has begun, where displays have their own eligible actions, else -2.
    """

    displays: npt.NDArray[np.int64]
    read: int
    generated: int
    delivered: int
    expired: int
    pending: int
    dry: int
    state: Any
    prepared: bool
    rng: np.random.Generator
    calendar: PendingConversions | None
    waiting: int = -1
    undue: int = 0
    choices: npt.NDArray[np.int32] | None = None
    tie_key: int = NO_KEY


class Begun(NamedTuple):
    """A policy that has lived before its replay, handed over for good.

    That is its state, the number of rounds lived, whether the next one has begun, and conversions still to be revealed;
    its random stream, None for that of the seed and repeat; the number of the last round that the replay may reach; and
    the key of the order among equal scores of the round that has begun, -2 where it is not drawn.
    """

    state: Any
    rounds: int
    prepared: bool
    pending: PendingConversions
    rng: np.random.Generator | None
    last: int
    tie_key: int = NO_KEY


class Explores(NamedTuple):
    """So many first rounds whose actions are drawn uniformly, from those that the log shows, shape (m,).

    Without `actions`, the logging policy chooses in these rounds: they are the displays of a thinning of its own.
    """

    rounds: int
    actions: npt.NDArray[np.int64]


class Keeps(NamedTuple):
    """Units keep the action of their first display; displays have vectors of their own, or `shared` ones.

    Distances to the first display are ticks of the `clock`, or rounds where it is None.
    """

    shared: bool
    clock: LiveClock | None


class KeptDisplays(NamedTuple):
    """The displays of a batch by their units, shape (n,) each.

    Numbers that a replay returns for them; the number of each one's unit, -1 for those that no unit keeps; and the
    distance to its unit's first display, -1 at that one.
    """

    display: npt.NDArray[np.int64]
    unit: npt.NDArray[np.int32]
    gap: npt.NDArray[np.int64]

    def followed_by(self, other: KeptDisplays) -> KeptDisplays:
        """Return these displays and others after them."""
        return KeptDisplays(
            np.concatenate([self.display, other.display]),
            np.concatenate([self.unit, other.unit]),
            np.concatenate([self.gap, other.gap]),
        )


def sampler_stream(seed: int, repeat: int) -> np.random.Generator:
    """Return the stream that thins the log: the same for every policy."""
    return random_stream(Stream.THINNING, seed, repeat)


def policy_stream(seed: int, repeat: int) -> np.random.Generator:
    """Return the stream that a policy draws from."""
    return random_stream(Stream.REPLAYED_POLICY, seed, repeat)


class MatchingReplay:
    """A replay that matches each display it reads against the policy's choice, or follows the logging policy."""

    def __init__(
        self,
        policy: Any,
        setting: Setting,
        *,
        sampler: SamplerName,
        seed: int = 0,
        repeat: int = 0,
        recorded: bool = False,
        begun: Begun | None = None,
        pushes: PushTimes | None = None,
        explores: Explores | None = None,
        keeps: Keeps | None = None,
    ) -> None:
        self._policy = policy
        self._setting = setting
        self._unit = reward_unit(policy, setting)
        self._rng = policy_stream(seed, repeat) if begun is None or begun.rng is None else begun.rng
        self._recorded = recorded
        self._choices: list[npt.NDArray[np.int32]] = []
        self._state = policy.start(setting) if begun is None else begun.state
        self._progress = loop.no_progress()
        self._pending: PendingConversions | None = None
        self._last = setting.horizon
        if begun is not None:
            self._pending, self._last = begun.pending, begun.last
            self._progress[loop.ROUNDS], self._progress[loop.PREPARED] = begun.rounds, begun.prepared
            # What is still to come counts among what this replay may reveal.
            self._progress[loop.GENERATED] = begun.pending.size[0]
        self._times = pushes
        self._waits = 0 if pushes is None else pushes.waits(self._last)
        self._pushes: Pushes | None = None
        # The first rounds, of another source, and how many rounds are over when they are.
        self._explored: tuple[loop.Explored, int] | None = None
        if explores is not None:
            first = loop.Explored(explores.actions, sampler == "keep", np.full(1, -1))
            self._explored = first, min(int(self._progress[loop.ROUNDS]) + explores.rounds, self._last)
        self._end: Batch | None = None
        self._displays: list[npt.NDArray[np.int64]] = []
        self._read = 0
        self._keeps = keeps
        self._played = np.zeros(0, np.int64)
        self._waiting: _Waiting | None = None
        self._source: loop.Matched | loop.Followed | loop.Kept | Among = loop.Matched(setting.n_actions)
        if sampler == "logged":
            self._source = loop.Followed()
        elif setting.among:
            self._source = among_eligible(has_random_ties(policy), NO_KEY if begun is None else begun.tie_key)
        self._step = loop_for(policy, loop.replay, loop.replay_uncached, loop.replay_interpreted)
        self.done = False

    def read(
        self,
        first: int,
        batch: Batch,
        as_logger: npt.NDArray[np.int32] | None = None,
        kept: KeptDisplays | None = None,
    ) -> npt.NDArray[np.int64]:
        """Walk through the next displays, the first of which has this number; return the numbers of those accepted.

        `as_logger` are their actions, shape (n,), -1 where left out by the thinning of the rounds in which the
        logging policy chooses; None without such rounds. Where units keep actions the displays have the numbers that
        `kept` says, and some of them were read before.
        """
        if self.done:
            return np.zeros(0, np.int64)
        batch = _as_told(batch, self._unit)
        if kept is not None:
            return self._read_kept(batch, kept)
        pending = self._pending or nothing_pending(1024, batch.vectors.shape[2])
        reach = _reach(batch.delay, self._setting.window, self._waits, self._times, pending)
        pending = with_room(pending, len(batch.delay), reach=reach)
        before = int(self._progress[loop.ROUNDS])
        accepted = np.empty(len(batch.action), np.int64)
        choices = np.empty(len(batch.action), np.int32) if self._recorded else None
        with blamed(self._policy, self._setting.n_actions, self._progress[loop.ROUNDS :]):
            seen = self._explore(
                batch if as_logger is None else batch._replace(action=read_only(as_logger)), pending, accepted
            )
            rest, lived = _from(batch, seen), int(self._progress[loop.ROUNDS]) - before
            if len(rest.action):
                seen += self._step(*self._arguments(rest, pending, accepted[lived:], choices))
                if len(rest.action) < len(batch.action):
                    accepted[lived:] += len(batch.action) - len(rest.action)
        if choices is not None:
            self._choices.append(choices[:seen])
        self._pending = pending
        self._end = None if self._times is None else _end_of(batch)
        self._displays.append(first + accepted[: int(self._progress[loop.ROUNDS]) - before])
        self._read += int(seen)
        self.done = seen < len(batch.action)
        return self._displays[-1]

    def _read_kept(self, batch: Batch, kept: KeptDisplays) -> npt.NDArray[np.int64]:
        """Read on, displays of accepted units that wait first; return the numbers of those that became rounds."""
        assert self._keeps is not None
        asks = self._source.asks if isinstance(self._source, loop.Kept) else self._source
        before, shared = self._waiting, self._keeps.shared
        if before is not None:
            batch = read_only_batch(_joined(before.batch, batch, shared=shared))
            kept = before.kept.followed_by(kept)
        units = int(kept.unit.max(initial=-1)) + 1
        if units > len(self._played):
            more = np.zeros(max(units, 2 * len(self._played)) - len(self._played), np.int64)
            self._played = np.concatenate([self._played, more])
        held = 0 if before is None else len(before.due)
        self._source = source = self._kept_source(asks, batch, kept, before)
        pending = self._pending or nothing_pending(1024, batch.vectors.shape[2])
        reach = _reach(batch.delay, self._setting.window, self._waits, self._times, pending)
        self._pending = pending = with_room(pending, len(batch.delay), reach=reach)
        accepted, start = np.empty(len(batch.action), np.int64), int(self._progress[loop.ROUNDS])
        with blamed(self._policy, self._setting.n_actions, self._progress[loop.ROUNDS :]):
            if self._explored is not None and start < self._explored[1]:
                first, until = self._explored
                state, rng, batch, _, window, _, pending, *others = self._arguments(batch, pending, accepted, None)
                self._step(state, rng, batch, source._replace(asks=first), window, until, pending, *others)
            if self._explored is None or self._progress[loop.ROUNDS] >= self._explored[1]:
                lived = int(self._progress[loop.ROUNDS]) - start
                self._step(*self._arguments(batch, pending, accepted[lived:], None))
        self._waiting = _still_waiting(source, batch, kept, shared=shared)
        self._end = None if self._times is None else _end_of(batch)
        self._displays.append(kept.display[accepted[: int(self._progress[loop.ROUNDS]) - start]])
        self._read += int(source.read[0]) - held
        self.done = int(self._progress[loop.ROUNDS]) >= self._last
        return self._displays[-1]

    def _kept_source(self, asks: Any, batch: Batch, kept: KeptDisplays, before: _Waiting | None) -> loop.Kept:
        assert self._keeps is not None
        waiting = 0 if before is None else len(before.due)
        due, row = (np.zeros(waiting + int(np.count_nonzero(kept.gap >= 0)), np.int64) for _ in range(2))
        if before is not None:
            due[:waiting], row[:waiting] = before.due, before.row
        asked = np.where(kept.gap < 0, batch.action, np.int32(-1))
        return loop.Kept(
            asks, asked, kept.unit, kept.gap, self._played, due, row, np.full(1, waiting), np.full(1, waiting),
            self._keeps.clock,
        )  # fmt: skip

    def _explore(self, batch: Batch, pending: PendingConversions, accepted: npt.NDArray[np.int64]) -> int:
        """Live through what is left of the first rounds; return how many displays that took."""
        if self._explored is None or self._progress[loop.ROUNDS] >= self._explored[1]:
            return 0
        source, until = self._explored
        state, rng, batch, _, window, _, pending, *others = self._arguments(batch, pending, accepted, None)
        return int(self._step(state, rng, batch, source, window, until, pending, *others))

    def coming(self, batch: Batch) -> LoopCall:
        """Return the call that reading such a batch will make, so that its loop can be compiled before."""
        batch = _as_told(batch, self._unit)
        choices = np.empty(0, np.int32) if self._recorded else None
        pending = nothing_pending(1, batch.vectors.shape[2])
        arguments = self._arguments(batch, pending, np.empty(0, np.int64), choices)
        if self._keeps is not None:
            none = KeptDisplays(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
            source = self._kept_source(self._source, _end_of(batch), none, None)
            arguments = (*arguments[:3], source, *arguments[4:])
        return LoopCall(self._policy.name, self._step, arguments)

    def _arguments(
        self,
        batch: Batch,
        pending: PendingConversions,
        accepted: npt.NDArray[np.int64],
        choices: npt.NDArray[np.int32] | None,
    ) -> tuple[Any, ...]:
        if self._times is not None and self._pushes is None:
            before = int(self._progress[loop.ROUNDS])
            self._pushes = self._times.begin(self._last, batch.vectors.shape[2], before=before)
        return (
            self._state, self._rng, batch, self._source, self._setting.window, self._last, pending, self._progress,
            accepted, choices, self._pushes,
        )  # fmt: skip

    def result(self) -> Replay:
        """Return what was replayed."""
        displays = np.concatenate(self._displays) if self._displays else np.zeros(0, np.int64)
        done = _result(displays, self._read, self._progress, self._pending, self._state, self._rng)
        if self._end is not None and self._pending is not None:
            choices = np.empty(0, np.int32) if self._recorded else None
            with blamed(self._policy, self._setting.n_actions):
                self._step(*self._arguments(self._end, self._pending, np.empty(0, np.int64), choices))
            # The round that had begun did so before the policy learned what it goes on from.
            done = replace(done, prepared=False)
        if self._waiting is not None:
            done = replace(done, undue=len(self._waiting.due))
        if done.prepared and isinstance(self._source, Among):
            done = replace(done, tie_key=int(self._source.tie_key[0]))
        elif done.prepared and not self._policy.contextual:
            with blamed(self._policy, self._setting.n_actions):
                done = replace(done, waiting=choose(self._state, np.zeros((1, 0))))
        if not self._recorded:
            return done
        return replace(done, choices=np.concatenate([np.zeros(0, np.int32), *self._choices]))


class _Waiting(NamedTuple):
    """Displays of accepted units that were read and are not due yet, in the order in which they were read.

    When each is due and its row among them, as the heap has them, shape (m,) each.
    """

    batch: Batch
    kept: KeptDisplays
    due: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]


def _still_waiting(source: loop.Kept, batch: Batch, kept: KeptDisplays, *, shared: bool) -> _Waiting | None:
    waiting = int(source.waiting[0])
    if not waiting:
        return None
    row = source.row[:waiting]
    rows = np.sort(row)
    counts = np.diff(batch.first_conversion)[rows]
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    events = np.repeat(batch.first_conversion[rows] - first[:-1], counts) + np.arange(first[-1])
    of = Batch(
        batch.action[rows], batch.vectors if shared else batch.vectors[rows], first, batch.delay[events],
        batch.value[events],
    )  # fmt: skip
    own = KeptDisplays(kept.display[rows], kept.unit[rows], kept.gap[rows])
    # Rows keep their order, and so the heap is one.
    return _Waiting(of, own, source.due[:waiting].copy(), np.searchsorted(rows, row))


def _joined(before: Batch, batch: Batch, *, shared: bool) -> Batch:
    """Return displays that wait, and the next ones after them."""
    return Batch(
        np.concatenate([before.action, batch.action]),
        batch.vectors if shared else np.concatenate([before.vectors, batch.vectors]),
        np.concatenate([before.first_conversion, before.first_conversion[-1] + batch.first_conversion[1:]]),
        np.concatenate([before.delay, batch.delay]),
        np.concatenate([before.value, batch.value]),
    )


class _Queued(NamedTuple):
    """Displays that wait: their actions, their numbers of conversions, and these."""

    action: npt.NDArray[np.int32]
    conversions: npt.NDArray[np.int32]
    delay: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class QueueReplay:
    """A replay that serves each round from the queue of its action: it needs all displays before its first round.

    It keeps no vectors, and so 8 bytes a display while it reads, 29 while it serves.
    """

    done = False

    def __init__(
        self,
        policy: Any,
        setting: Setting,
        *,
        seed: int = 0,
        repeat: int = 0,
        safe: bool = False,
        pushes: PushTimes | None = None,
    ) -> None:
        self._times = pushes
        self._policy = policy
        self._setting = setting
        self._unit = reward_unit(policy, setting)
        self._rng = policy_stream(seed, repeat)
        self._safe = safe
        self._parts: list[_Queued] = []

    def read(self, first: int, batch: Batch, as_logger: npt.NDArray[np.int32] | None = None) -> None:
        """Queue the next displays; a queue never explores."""
        conversions = np.diff(batch.first_conversion).astype(np.int32)
        told = _as_told(batch, self._unit)
        self._parts.append(_Queued(told.action, conversions, told.delay, told.value))

    def result(self) -> Replay:
        """Serve the rounds, and return what was replayed."""
        progress = loop.no_progress()
        if not self._parts:
            state = self._policy.start(self._setting)
            return _result(np.zeros(0, np.int64), 0, progress, None, state, self._rng)
        action, conversions, delay, value = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        first = np.concatenate([[0], np.cumsum(conversions, dtype=np.int64)])
        batch = Batch(action, np.zeros((1, 1, 0)), first, delay, value)
        k, n = self._setting.n_actions, len(action)
        setting = replace(self._setting, horizon=safe_horizon(action, k)) if self._safe else self._setting
        horizon = min(setting.horizon, n)
        accepted = np.empty(horizon, np.int64)
        waits = 0 if self._times is None else self._times.waits(horizon)
        pending = nothing_pending(0, batch.vectors.shape[2])
        reach = _reach(batch.delay, setting.window, waits, self._times, pending)
        pending = with_room(pending, len(batch.delay), reach=reach)
        pushes = None if self._times is None else self._times.begin(horizon, batch.vectors.shape[2])
        state = self._policy.start(setting)
        queues = loop.queues_of(action, k)
        step = loop_for(self._policy, loop.replay, loop.replay_uncached, loop.replay_interpreted)
        with blamed(self._policy, setting.n_actions, progress[loop.ROUNDS :]):
            step(state, self._rng, batch, queues, setting.window, horizon, pending, progress, accepted, None, pushes)
        # Every display up to the last one served was looked at; those left in a queue were not rejected but not needed.
        dry = int(queues.dry[0])
        done = _result(accepted[: int(progress[loop.ROUNDS])], n, progress, pending, state, self._rng, dry)
        if pushes is None:
            return done
        with blamed(self._policy, setting.n_actions, progress[loop.ROUNDS :]):
            end = _end_of(batch)
            step(state, self._rng, end, queues, setting.window, horizon, pending, progress, accepted, None, pushes)
        return replace(done, prepared=False)


def begin(
    policy: Any,
    setting: Setting,
    *,
    sampler: SamplerName,
    seed: int = 0,
    repeat: int = 0,
    safe: bool = False,
    recorded: bool = False,
    begun: Begun | None = None,
    pushes: PushTimes | None = None,
    explores: Explores | None = None,
    keeps: Keeps | None = None,
) -> MatchingReplay | QueueReplay:
    """Return a replay that is ready to read, of a policy that learns at `pushes`; at once where that is None.

    It first `explores`, and units `keeps` actions, where these are not None; of queues they are.

    A queue stops at the rarest action's displays, which no outcome moves, if `safe`, instead of the horizon. The others
    can be `recorded`: then the policy is asked at every display read, thinned out or not, and its choices are kept; and
    they can go on with a policy that has `begun`.

    Raises
    ------
    PolicyError
        Raised on reading: the policy raised an error, or chose an impossible action.
    """
    if sampler == "queue":
        return QueueReplay(policy, setting, seed=seed, repeat=repeat, safe=safe, pushes=pushes)
    return MatchingReplay(
        policy,
        setting,
        sampler=sampler,
        seed=seed,
        repeat=repeat,
        recorded=recorded,
        begun=begun,
        pushes=pushes,
        explores=explores,
        keeps=keeps,
    )


def run(
    policy: Any,
    setting: Setting,
    rounds: RoundBatches,
    *,
    sampler: SamplerName,
    seed: int = 0,
    repeat: int = 0,
    batch_size: int = BATCH,
) -> Replay:
    """Replay one policy on rounds that need no thinning, or are thinned already; arguments as in `begin`.

    `batch_size` is the number of displays handed to the loop at a time; the result does not depend on it.
    """
    replay = begin(policy, setting, sampler=sampler, seed=seed, repeat=repeat)
    for first, batch in rounds.batches(batch_size):
        replay.read(first, batch)
        if replay.done:
            break
    return replay.result()


class RoundBatches(Protocol):
    """Logged rounds that come in batches."""

    def batches(self, size: int) -> Iterator[tuple[int, Batch]]:
        """Yield (number of its first display, batch)."""


def _as_told(batch: Batch, unit: float) -> Batch:
    """Return a batch as the loops read it: rewards in the policy's unit, no array to be written to."""
    return read_only_batch(batch if unit == 1.0 else batch._replace(value=batch.value / unit))


def _from(batch: Batch, at: int) -> Batch:
    """Return the displays of a batch from one on."""
    if at == 0:
        return batch
    of, vectors = batch.eligible, batch.vectors if len(batch.vectors) == 1 else batch.vectors[at:]
    of = None if of is None else of._replace(of=of.of[at:], row=of.row[at:])
    first = batch.first_conversion[at:]
    return batch._replace(action=batch.action[at:], vectors=vectors, first_conversion=first, eligible=of)


def _end_of(batch: Batch) -> Batch:
    """Return a batch without displays, which ends a run with pushes."""
    return batch._replace(action=batch.action[:0])


def _reach(
    delay: npt.NDArray[np.int64], window: int, waits: int, pushes: PushTimes | None, pending: PendingConversions
) -> int:
    """Return the most rounds after its display in which a conversion is ever revealed, `waits` of them for a push.

    Where the calendar reaches as far as the window, that is the window's end: the delays need not be looked at.
    """
    if pushes is not None and pushes.clock is not None:
        return min(pushes.reach, window) + waits
    if window + waits < len(pending.ring):
        return window + waits
    return int(np.max(delay, where=delay <= window, initial=0)) + waits


def _result(
    displays: npt.NDArray[np.int64],
    read: int,
    progress: loop.Counters,
    pending: PendingConversions | None,
    state: Any,
    rng: np.random.Generator,
    dry: int = -1,
) -> Replay:
    return Replay(
        displays=displays,
        read=read,
        generated=int(progress[loop.GENERATED]),
        delivered=int(progress[loop.DELIVERED]),
        expired=int(progress[loop.EXPIRED]),
        pending=0 if pending is None else int(pending.size[0]),
        dry=dry,
        state=state,
        # A queue that runs dry leaves its round begun.
        prepared=bool(progress[loop.PREPARED]),
        rng=rng,
        calendar=pending,
    )


SamplerName = Literal["rejection", "keep", "queue", "logged"]
SAMPLERS: tuple[SamplerName, ...] = ("rejection", "keep", "queue")


def choose_sampler(policy: Any, requested: str | None, *, even: bool, known: bool) -> SamplerName:
    """Return the sampler of a replay.

    By default rejection for contextual policies; for others keep under an even logger, where its end depends on no
    outcome, else rejection, whose end never does; keep where there are no propensities to reject by.

    The user asked for `requested`, None for none; the logger shows every action equally often if `even`, and its
    propensities are known or estimated if `known`.

    Raises
    ------
    ParameterError
        The sampler is not known, or is biased for the policy.
    """
    if requested is not None and requested not in SAMPLERS:
        raise ParameterError(f"`sampler` {requested!r} is not a choice.", remedy=nearest(requested, SAMPLERS))
    if isinstance(policy, LoggingPolicy):
        return "logged"
    if requested is not None:
        if policy.contextual and requested != "rejection":
            raise ParameterError(
                f"`sampler='{requested}'` would be biased for {policy.name}, which reads contexts.",
                remedy="use `sampler='rejection'`.",
            )
        return requested
    if policy.contextual:
        return "rejection"
    return "keep" if even or not known else "rejection"


def sure_rounds(displays: int, acceptance: float, *, deviations: float = 3.0) -> int:
    """Return the rounds of a replay that accepts each display with at least this probability, all but surely.

    floor(cN - z sqrt(cN (1 - c))) for c = `acceptance`, N = `displays` and z = `deviations`; no outcome moves it. At
    least 0.
    """
    expected = acceptance * displays
    return max(math.floor(expected - deviations * math.sqrt(expected * (1.0 - acceptance))), 0)


def safe_horizon(action: npt.NDArray[np.int32], n_actions: int) -> int:
    """Return the rounds that no queue can cut short: the displays of the rarest action, among those not thinned out.

    An action without any has no queue, and does not decide for the others.
    """
    queued = np.bincount(action[action >= 0], minlength=n_actions)
    return int(queued.min(where=queued > 0, initial=len(action)))
