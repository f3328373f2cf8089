"""One scan of a log for many replays: every piece is read once and handed to all of them, in threads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import LoopCall, compile_ahead
from evaluator.engine.log_replay import BATCH, MatchingReplay, QueueReplay, Replay, begin, sampler_stream
from evaluator.log.reward_kinds import cost_events
from evaluator.log.schema import ELIGIBLE
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.reorder import BLOCK, LogOrder, gather
from evaluator.replays.rounds.stream import LogPiece, blocks, pieces
from evaluator.replays.rounds.thinning import Thinning
from evaluator.replays.values.rewards import ArmSample
from evaluator.threads import ahead

# Displays put in order at a time: what a thread holds of them.
_PART = 8_192

T = TypeVar("T")
R = TypeVar("R")
Ints = npt.NDArray[np.int64]


class Lane:
    """One repeat of one plan on its way through the log: the first in the log's own order, the others each in another.

    Parameters
    ----------
    plan, repeat
        Plan that is replayed, and number of the repeat, from 0.
    """

    def __init__(self, plan: ReplayPlan, repeat: int) -> None:
        self.plan = plan
        self.repeat = repeat
        self.clipped = 0
        self.arms: ArmSample | None = None
        self.replay: Replay | None = None
        # Of the accepted displays, shape (T,), in the order in which this repeat reads the log.
        self.places: Ints = np.zeros(0, np.int64)
        # Where the order is not the log's own: accepted displays; for queues, all in their order.
        self._shown: list[Ints] = []
        options = plan.options
        self._replaying: MatchingReplay | QueueReplay | None = begin(
            plan.policy, plan.setting, sampler=plan.sampler, seed=options.seed, repeat=repeat,
            safe=plan.sampler == "queue" and options.horizon is None, recorded=plan.recorded and repeat == 0,
            begun=None if plan.start is None else plan.start.begun(repeat),
        )  # fmt: skip

    @property
    def replayed(self) -> Replay:
        """What was replayed, once the scan has finished the lane."""
        assert self.replay is not None
        return self.replay

    @property
    def _reading(self) -> MatchingReplay | QueueReplay:
        """The replay, until it is closed."""
        assert self._replaying is not None
        return self._replaying

    @property
    def stream(self) -> tuple[int, int]:
        """What fixes the sampler's draws."""
        return self.plan.options.seed, self.repeat

    def read(self, piece: LogPiece, action: npt.NDArray[np.int32], order: Ints | None) -> None:
        """Replay a piece whose actions were thinned, in an order of its displays, or as they came."""
        if piece.first >= self.plan.rounds.used or self._reading.done:
            return
        if order is None:
            self._reading.read(piece.first, self.plan.rounds.batch(piece, action))
        else:
            self._read_in_order(piece, action, order[order < self.plan.rounds.used - piece.first])

    def _read_in_order(self, piece: LogPiece, action: npt.NDArray[np.int32], order: Ints) -> None:
        for start in range(0, len(order), _PART):
            part = order[start : start + _PART]
            batch = gather(piece, action, part, [self.plan.rounds.vectors]).batch(self.plan.rounds)
            first = piece.first + start
            accepted = self._reading.read(first, batch)
            self._shown.append(piece.first + (part if accepted is None else part[accepted - first]))

    def coming(self, piece: LogPiece, action: npt.NDArray[np.int32]) -> LoopCall | None:
        """Return the call that reading such a piece makes; None where all displays are read before the first one."""
        if isinstance(self._reading, QueueReplay):
            return None
        return self._reading.coming(self.plan.rounds.batch(piece, action))

    def finish(self) -> None:
        """Close the replay, and let go of what it was made of."""
        replay = self._reading.result()
        self.places = replay.displays
        if self.repeat > 0:
            shown = np.concatenate([np.zeros(0, np.int64), *self._shown])
            shown = shown[replay.displays] if isinstance(self._reading, QueueReplay) else shown
            self._shown = []
            replay = dataclasses.replace(replay, displays=shown)
        self.replay = _without_costs(self.plan, replay)
        self._replaying = None


def _without_costs(plan: ReplayPlan, replay: Replay) -> Replay:
    """Return a replay whose counts are of conversions: costs are told at once, and are none."""
    costs = cost_events(plan.log.conversions)
    if costs is None or (plan.rounds.told is not None and not plan.rounds.told[costs].any()):
        return replay
    paid = plan.survey.display[costs]
    at = np.minimum(np.searchsorted(paid, replay.displays), len(paid) - 1)
    told = int(np.count_nonzero(paid[at] == replay.displays)) if len(paid) else 0
    return dataclasses.replace(replay, generated=replay.generated - told, delivered=replay.delivered - told)


def replay_all(
    plans: Sequence[ReplayPlan],
    *,
    jobs: int = 1,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda displays: None,
) -> list[Lane]:
    """Replay every repeat of every plan in one scan of their log.

    Parameters
    ----------
    plans
        Plans of replays on one log.
    jobs
        Number of threads. Neither their number nor `batch_size` changes any result: each replay sees the same displays
        in the order of its repeat (`evaluator.replays.rounds.reorder`), and draws from streams of its own.
    batch_size
        Number of displays read at a time, about.
    advance
        Function called with the number of displays read since the last call.

    Returns
    -------
    list of Lane
        Finished lanes, plan by plan, repeat by repeat.
    """
    log = plans[0].log
    lanes = [Lane(plan, repeat) for plan in plans for repeat in range(plan.options.repeats)]
    thinnings = _Thinnings(lanes)
    samples = _share_arm_samples(lanes)
    vectors = list(dict.fromkeys(plan.rounds.vectors for plan in plans if plan.rounds.vectors is not None))
    last = max(plan.rounds.used for plan in plans)
    orders = {lane.stream: LogOrder.of_repeat(*lane.stream) for lane in lanes if lane.repeat > 0}
    source = (
        blocks(log, thinnings.columns, vectors, max(batch_size // BLOCK, 1) * BLOCK)
        if orders
        else pieces(log, thinnings.columns, vectors, batch_size)
    )
    with ThreadPoolExecutor(jobs) as pool:
        for piece in ahead(source):
            if piece.first >= last:
                break
            actions = thinnings.of(piece)
            if piece.first == 0 and len(lanes) > 1:
                compile_ahead(_coming(lanes, piece, actions))
            for lane, sample in samples:
                sample.read(piece.first, actions[_key(lane, lane.plan.by_action)])
            for lane in lanes:
                lane.clipped += thinnings.clipped(piece, lane)
            places = {stream: order.next(len(piece.action)) for stream, order in orders.items()}
            _each(
                pool,
                lambda lane: lane.read(piece, actions[_key(lane, lane.plan.matched)], places.get(lane.stream)),  # noqa: B023
                lanes,
            )
            advance(min(len(piece.action), last - piece.first))
        _each(pool, Lane.finish, lanes)
    return lanes


def compile_loops(plans: Sequence[ReplayPlan]) -> list[str]:
    """Compile what the replays of some plans on one log need and the cache does not hold; return for which policies."""
    lanes = [Lane(plan, 0) for plan in plans]
    thinnings = _Thinnings(lanes)
    vectors = list(dict.fromkeys(plan.rounds.vectors for plan in plans if plan.rounds.vectors is not None))
    piece = next(iter(pieces(plans[0].log, thinnings.columns, vectors, BATCH)))
    return compile_ahead(_coming(lanes, piece, thinnings.of(piece)), least=1)


def _coming(
    lanes: Sequence[Lane], piece: LogPiece, actions: Mapping[tuple[object, ...], npt.NDArray[np.int32]]
) -> list[LoopCall]:
    """Return the calls that reading the first piece of a log makes."""
    calls = (lane.coming(piece, actions[_key(lane, lane.plan.matched)]) for lane in lanes if lane.repeat == 0)
    return [call for call in calls if call is not None]


def _each(pool: Executor, job: Callable[[T], R], items: Sequence[T]) -> None:
    """Run a job for each item; the first error is raised."""
    if len(items) == 1:  # in this thread, which alone hears Ctrl-C
        job(items[0])
    else:
        list(pool.map(job, items))


def _key(lane: Lane, thinning: Thinning) -> tuple[object, ...]:
    """Return what tells one thinned log from another."""
    if thinning.keeps_all:
        return ("all",)
    return (*lane.stream, id(thinning.propensities.rule), thinning.c.tobytes())


class _Thinnings:
    """The thinned logs that some lanes need, each made once a piece."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._needed = {
            _key(lane, thinning): (lane.stream, thinning)
            for lane in lanes
            for thinning in (lane.plan.matched, lane.plan.by_action)
        }
        # One draw a display whatever the propensities, so that it is the same for all policies of a seed.
        self._streams = {
            stream: sampler_stream(*stream) for stream, thinning in self._needed.values() if not thinning.keeps_all
        }
        reads = [c for _, thinning in self._needed.values() for c in thinning.propensities.reads]
        sets = [ELIGIBLE for lane in lanes if lane.plan.rounds.playable is not None]
        self.columns = list(dict.fromkeys(["action", *reads, *sets]))

    def of(self, piece: LogPiece) -> dict[tuple[object, ...], npt.NDArray[np.int32]]:
        """Return the actions of a piece in each thinned log, -1 where left out."""
        n = len(piece.action)
        draws = {stream: rng.random(n) for stream, rng in self._streams.items()}
        return {
            key: piece.action
            if thinning.keeps_all
            else np.where(thinning.kept(piece.displays, draws[stream]), piece.action, np.int32(-1))
            for key, (stream, thinning) in self._needed.items()
        }

    def clipped(self, piece: LogPiece, lane: Lane) -> int:
        """Return how many of the lane's displays have a propensity below their c."""
        thinning = lane.plan.matched
        if not thinning.clips:
            return 0
        return int(
            np.count_nonzero(thinning.weights(piece.displays)[: max(lane.plan.rounds.used - piece.first, 0)] > 1)
        )


def _share_arm_samples(lanes: Sequence[Lane]) -> list[tuple[Lane, ArmSample]]:
    """Give the first lane of every plan its sample of the arms, one for all that would count the same displays."""
    shared: dict[tuple[object, ...], tuple[Lane, ArmSample]] = {}
    for lane in lanes:
        if lane.repeat > 0:
            continue
        key = (lane.plan.rounds.used, *_key(lane, lane.plan.by_action))
        if key not in shared:
            shared[key] = (lane, ArmSample(lane.plan))
        lane.arms = shared[key][1]
    return list(shared.values())
