"""One scan of a log for many replays: every piece is read once and handed to all of them, in threads.

A run is one repeat of one plan: what it replayed, what it was thinned to, and what it earned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.compiling import LoopCall, compile_ahead
from evaluator.engine.log_replay import BATCH, MatchingReplay, QueueReplay, Replay, begin, sampler_stream
from evaluator.log.eligible import unpack
from evaluator.log.reward_kinds import cost_events
from evaluator.log.schema import COST, ELIGIBLE, consecutive, to_numpy
from evaluator.replays.acceptance import AcceptedDisplays, SetSizes, accepted_of, most_suspicious
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.propensity import Thinning
from evaluator.replays.rounds.stream import BLOCK, LogOrder, LogPiece, blocks, gather, pieces
from evaluator.replays.values.rewards import ArmSample, References, observed_rewards
from evaluator.threads import ahead

# Displays put in order at a time: what a thread holds of them.
_PART = 8_192

T = TypeVar("T")
R = TypeVar("R")
Ints = npt.NDArray[np.int64]


class ReplayRun:
    """One repeat of a plan on its way through the log: the first in the log's own order, the others in others."""

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
        """What was replayed, once the scan has finished the run."""
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
            replay = replace(replay, displays=shown)
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
    return replace(replay, generated=replay.generated - told, delivered=replay.delivered - told)


def replay_all(
    plans: Sequence[ReplayPlan],
    *,
    jobs: int = 1,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda displays: None,
) -> list[ReplayRun]:
    """Replay every repeat of every plan in one scan of their log; return the finished runs, plan by plan, by repeat.

    Neither the number of threads `jobs` nor `batch_size`, about so many displays read at a time, changes any result:
    each replay sees the same displays in the order of its repeat (`evaluator.replays.rounds.stream`), and draws from
    streams of its own. `advance` is called with the number of displays read since the last call.
    """
    log = plans[0].log
    runs = [ReplayRun(plan, repeat) for plan in plans for repeat in range(plan.options.repeats)]
    thinnings = _Thinnings(runs)
    samples = _share_arm_samples(runs)
    vectors = list(dict.fromkeys(plan.rounds.vectors for plan in plans if plan.rounds.vectors is not None))
    last = max(plan.rounds.used for plan in plans)
    orders = {run.stream: LogOrder.of_repeat(*run.stream) for run in runs if run.repeat > 0}
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
            if piece.first == 0 and len(runs) > 1:
                compile_ahead(_coming(runs, piece, actions))
            for run, sample in samples:
                sample.read(piece.first, actions[_key(run, run.plan.by_action)])
            for run in runs:
                run.clipped += thinnings.clipped(piece, run)
            places = {stream: order.next(len(piece.action)) for stream, order in orders.items()}
            _each(
                pool,
                lambda run: run.read(piece, actions[_key(run, run.plan.matched)], places.get(run.stream)),  # noqa: B023
                runs,
            )
            advance(min(len(piece.action), last - piece.first))
        _each(pool, ReplayRun.finish, runs)
    return runs


def compile_loops(plans: Sequence[ReplayPlan]) -> list[str]:
    """Compile what the replays of some plans on one log need and the cache does not hold; return for which policies."""
    runs = [ReplayRun(plan, 0) for plan in plans]
    thinnings = _Thinnings(runs)
    vectors = list(dict.fromkeys(plan.rounds.vectors for plan in plans if plan.rounds.vectors is not None))
    piece = next(iter(pieces(plans[0].log, thinnings.columns, vectors, BATCH)))
    return compile_ahead(_coming(runs, piece, thinnings.of(piece)), least=1)


def _coming(
    runs: Sequence[ReplayRun], piece: LogPiece, actions: Mapping[tuple[object, ...], npt.NDArray[np.int32]]
) -> list[LoopCall]:
    """Return the calls that reading the first piece of a log makes."""
    calls = (run.coming(piece, actions[_key(run, run.plan.matched)]) for run in runs if run.repeat == 0)
    return [call for call in calls if call is not None]


def _each(pool: Executor, job: Callable[[T], R], items: Sequence[T]) -> None:
    """Run a job for each item; the first error is raised."""
    if len(items) == 1:  # in this thread, which alone hears Ctrl-C
        job(items[0])
    else:
        list(pool.map(job, items))


def _key(run: ReplayRun, thinning: Thinning) -> tuple[object, ...]:
    """Return what tells one thinned log from another."""
    if thinning.keeps_all:
        return ("all",)
    return (*run.stream, id(thinning.propensities.rule), thinning.c.tobytes())


class _Thinnings:
    """The thinned logs that some runs need, each made once a piece."""

    def __init__(self, runs: Sequence[ReplayRun]) -> None:
        self._needed = {
            _key(run, thinning): (run.stream, thinning)
            for run in runs
            for thinning in (run.plan.matched, run.plan.by_action)
        }
        # One draw a display whatever the propensities, so that it is the same for all policies of a seed.
        self._streams = {
            stream: sampler_stream(*stream) for stream, thinning in self._needed.values() if not thinning.keeps_all
        }
        reads = [c for _, thinning in self._needed.values() for c in thinning.propensities.reads]
        sets = [ELIGIBLE for run in runs if run.plan.rounds.playable is not None]
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

    def clipped(self, piece: LogPiece, run: ReplayRun) -> int:
        """Return how many of the run's displays have a propensity below their c."""
        thinning = run.plan.matched
        if not thinning.clips:
            return 0
        return int(np.count_nonzero(thinning.weights(piece.displays)[: max(run.plan.rounds.used - piece.first, 0)] > 1))


def _share_arm_samples(runs: Sequence[ReplayRun]) -> list[tuple[ReplayRun, ArmSample]]:
    """Give the first run of every plan its sample of the arms, one for all that would count the same displays."""
    shared: dict[tuple[object, ...], tuple[ReplayRun, ArmSample]] = {}
    for run in runs:
        if run.repeat > 0:
            continue
        key = (run.plan.rounds.used, *_key(run, run.plan.by_action))
        if key not in shared:
            shared[key] = (run, ArmSample(run.plan))
        run.arms = shared[key][1]
    return list(shared.values())


@dataclass(frozen=True)
class RepeatEstimates:
    """One repeat: what was replayed, what it was thinned to, and what it earned."""

    replay: Replay
    arms: ArmSample | None
    accepted: AcceptedDisplays | None
    suspect: AcceptedDisplays | None
    sizes: SetSizes | None
    clipped: float
    effective_sample_size: float
    rewards: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64] | None
    trajectory: pa.Table
    true_regret: float


def estimate_repeat(run: ReplayRun, shown: pa.Table, references: References) -> RepeatEstimates:
    """Return what a finished repeat earned, in whose rounds this was shown."""
    plan, replay = run.plan, run.replayed
    observed = observed_rewards(plan, replay.displays)
    live = (
        observed
        if plan.options.reward == "observed"
        else references.logged(plan, len(replay.displays)).taken(replay.displays)
    )
    # How long a repeat waited for a display is counted in its own order.
    as_read = replace(replay, displays=run.places)
    accepted = accepted_of(plan, as_read, to_numpy(shown["action"]))
    return RepeatEstimates(
        replay=replay,
        arms=run.arms,
        accepted=accepted,
        suspect=most_suspicious(plan, as_read, to_numpy(shown["action"]), accepted),
        sizes=references.sizes(plan, replay, shown) if plan.setting.among else None,
        clipped=run.clipped / len(plan.rounds),
        effective_sample_size=_effective_sample_size(plan, shown),
        rewards=live,
        costs=to_numpy(shown[COST]) if plan.of_profit else None,
        trajectory=_trajectory(run, replay.displays, shown, live, observed),
        true_regret=_true_regret(plan, replay.displays, to_numpy(shown["action"])),
    )


def _effective_sample_size(plan: ReplayPlan, shown: pa.Table) -> float:
    """Return (sum w)² / sum w² of the accepted displays' residual weights: T unless propensities were clipped."""
    if not plan.matched.clips or not shown.num_rows:
        return float(shown.num_rows)
    w = plan.matched.weights({name: to_numpy(shown[name]) for name in shown.column_names})
    return float(w.sum() ** 2 / (w**2).sum())


def _true_regret(plan: ReplayPlan, displays: npt.NDArray[np.int64], action: npt.NDArray[np.int32]) -> float:
    cut = plan.options.reward == "observed" or plan.rewards_end_with_window or plan.capped is not None or plan.of_profit
    if cut or "expected_reward" not in plan.log.schema.names:
        return float("nan")  # the log's truth is of whole rewards: beside cut ones it would mislead
    among = [ELIGIBLE] if plan.setting.among else []
    rows = plan.log.take(displays, ["expected_reward", *among])
    expected = to_numpy(rows["expected_reward"])
    if among:
        expected = np.where(unpack(rows[ELIGIBLE], plan.log.n_actions), expected, -np.inf)
    return float((expected.max(axis=1) - expected[np.arange(len(action)), action]).sum()) if len(displays) else 0.0


def _trajectory(
    run: ReplayRun,
    displays: npt.NDArray[np.int64],
    shown: pa.Table,
    reward: npt.NDArray[np.float64],
    observed: npt.NDArray[np.float64],
) -> pa.Table:
    numbers = np.arange(len(displays) + 1)
    repeat = np.zeros(len(displays), np.int32)  # of which only what is written takes memory
    if run.repeat:
        repeat[:] = run.repeat
    in_order = run.plan.before == 0 and consecutive(displays) and displays[0] == 0
    return pa.table(
        {
            "repeat": pa.array(repeat),
            "round": pa.array(numbers[1:]),
            "display_id": pa.array(numbers[:-1] if in_order else displays + run.plan.before),
            **{name: shown[name] for name in ("time", "action", "propensity")},
            "reward": pa.array(reward),
            "reward_observed": pa.array(observed),
        }
    )


def ended_by(plan: ReplayPlan, done: list[RepeatEstimates]) -> tuple[str, ...]:
    """Return the labels of actions without a usable display at which repeats ended."""
    last = {max(r.replay.dry, r.replay.waiting) for r in done}
    return tuple(plan.log.labels[k] for k in sorted(last) if k >= 0 and not plan.usable[k])
