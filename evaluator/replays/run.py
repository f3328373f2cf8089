"""From plans to results: one scan of the log for many replays, then estimates.

Every piece of the log is read once and handed to all replays, in threads. A run is one repeat of one plan: what it
replayed, what it was thinned to, and what it earned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.compiling import LoopCall, compile_ahead
from evaluator.engine.log_replay import BATCH, MatchingReplay, QueueReplay, Replay, begin, sampler_stream
from evaluator.errors import NoRoundsError
from evaluator.estimates.best_fixed import BestFixedAction, BestOrder
from evaluator.estimates.paired import difference, repeated_intervals, scaled, unknown
from evaluator.findings.codes import NO_ROUNDS, ordered
from evaluator.log import Log
from evaluator.log.eligible import unpack
from evaluator.log.reward_kinds import cost_events
from evaluator.log.schema import COST, ELIGIBLE, Columns, consecutive, take_rows, to_numpy
from evaluator.log.stored import BatchedLog
from evaluator.options.deployment import OBJECTIVE
from evaluator.replays.acceptance import accepted_of, most_suspicious
from evaluator.replays.findings.run import (
    ended_by,
    find_in_estimates,
    find_in_rounds,
    find_in_schedule,
    meaning,
    no_rounds,
    stamps_warning,
    with_honest_kinds,
)
from evaluator.replays.learned.policy import LearnedPolicy, learned_policy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import Reference, ReplayResult
from evaluator.replays.rounds.propensity import Thinning
from evaluator.replays.rounds.stream import BLOCK, LogOrder, LogPiece, blocks, gather, pieces
from evaluator.replays.schedule import lived_schedule
from evaluator.replays.values.doubly_robust import RewardModels, robust_value
from evaluator.replays.values.final import frozen_value
from evaluator.replays.values.kind_values import kind_values, money_of
from evaluator.replays.values.resampled import Lived, Resampling, clusters_shown, with_expected_value
from evaluator.replays.values.rewards import ArmSample, References, RepeatEstimates, observed_rewards, reward_bounds
from evaluator.replays.values.segments import segment_values
from evaluator.threads import ahead

# Actions of an order that are named.
_NAMED = 5
# Displays put in order at a time: what a thread holds of them.
_PART = 8_192
_NUMBER = pa.float64()
T = TypeVar("T")
R = TypeVar("R")
Ints = npt.NDArray[np.int64]
Actions = npt.NDArray[np.int32]


def execute(
    plan: ReplayPlan,
    *,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda displays: None,
    resampled: bool = True,
) -> ReplayResult:
    """Run every repeat of a plan and estimate; `resampled` as in `execute_all`.

    The result does not depend on `batch_size` nor on the number of jobs.

    Raises
    ------
    NoRoundsError
        A repeat accepted no display; the message names the action to blame, and what works instead.
    """
    result, failure = _execute_all([plan], plan.options.jobs, batch_size, advance, resampled=resampled)[0]
    if failure is not None:
        raise failure
    return result


def execute_all(
    plans: Sequence[ReplayPlan],
    *,
    jobs: int = 1,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda displays: None,
    resampled: bool = True,
) -> list[ReplayResult]:
    """Run plans on one log in one scan of it, and estimate; arguments as in `evaluator.replays.run.replay_all`.

    A replay without a round has no estimate, and its first warning says why. Unless `resampled`, the replays of
    resampled logs that the plans ask for are left out, and with them what rests on these.
    """
    return [result for result, _ in _execute_all(plans, jobs, batch_size, advance, resampled=resampled)]


def shown_columns(plans: Sequence[ReplayPlan]) -> list[str]:
    """Return which columns of the displays in the rounds of some plans are read."""
    reads = [c for plan in plans if plan.matched.clips for c in plan.matched.propensities.reads]
    reads += [COST] * plans[0].of_profit + [ELIGIBLE] * any(plan.setting.among for plan in plans)
    own = ["propensity"] * (plans[0].log.meta.propensity != "absent")
    return list(dict.fromkeys(["time", "action", *own, *reads]))


def _execute_all(
    plans: Sequence[ReplayPlan], jobs: int, batch_size: int, advance: Callable[[int], None], *, resampled: bool = True
) -> list[tuple[ReplayResult, NoRoundsError | None]]:
    """Return the result of each plan, and why it has no round if it has none."""
    ends = [plan.told_at_ends() for plan in plans]
    done = iter(
        replay_all([*plans, *chain(*ends)], jobs=jobs, batch_size=batch_size, advance=advance, estimated=len(plans))
    )
    runs = [[next(done) for _ in range(plan.options.repeats)] for plan in plans]
    shown = _shown([*chain(*runs)], shown_columns(plans))
    references = References()
    models = RewardModels() if any(len(plan.held_out) for plan in plans) else None
    results: list[tuple[ReplayResult, NoRoundsError | None]] = []
    for plan, own, two in zip(plans, runs, ends, strict=True):
        repeats = [estimate_repeat(run, next(shown), references) for run in own]
        result = summarise_repeats(plan, repeats, references)
        at_ends = [
            _mean_reward(end, [next(done).replayed.displays for _ in range(plan.options.repeats)], references)
            for end in two
        ]
        replays = [run.replayed for run in own]
        result = _with_other_values(plan, result, replays, models, references)
        failure = next((no_rounds(plan, replay) for replay in replays if not len(replay.displays)), None)
        first = [] if failure is None else [
            NO_ROUNDS.found(failure.what, f"{failure.remedy[:1].upper()}{failure.remedy[1:]}")
        ]  # fmt: skip
        findings = (*first, *stamps_warning(plan, result.value, at_ends), *result.findings)
        results.append((replace(result, findings=ordered(findings)), failure))
    if not (plans[0].options.bootstrap and resampled):
        return results
    lived = [[Lived(len(run.replayed.displays), run.replayed.read) for run in own] for own in runs]
    draws = Resampling(plans, lived).draws(range(plans[0].options.bootstrap), jobs=jobs, advance=advance)
    clusters = (
        clusters_shown(plan, [run.replayed.displays for run in own]) for plan, own in zip(plans, runs, strict=True)
    )
    return [
        (with_expected_value(result, draws.of(i, worth)), failure)
        for i, ((result, failure), worth) in enumerate(zip(results, clusters, strict=True))
    ]


def _with_other_values(
    plan: ReplayPlan,
    result: ReplayResult,
    replays: Sequence[Replay],
    models: RewardModels | None,
    references: References,
) -> ReplayResult:
    """Return a result with what was asked for besides: outcomes, guardrails, the frozen policy, DR, and groups."""
    displays, findings = [replay.displays for replay in replays], list(result.findings)
    if plan.outcomes:
        outcomes, guardrails = kind_values(plan, displays, references=references)
        result = replace(result, outcomes=outcomes, guardrails=guardrails)
    if models is not None and len(plan.held_out):
        frozen = frozen_value(plan, replays, models)
        findings += frozen.findings
        result = replace(result, final=frozen)
    if plan.options.doubly_robust:
        robust, said = robust_value(plan, replays, None if result.final is None else result.final.dr)
        findings += said
        result = replace(result, doubly_robust=robust)
    if plan.splits:
        segments, assumed = segment_values(plan, displays, references.logged(plan, result.rounds))
        findings.append(assumed)
        result = replace(result, segments=segments)
    return replace(result, findings=tuple(findings))


def _shown(runs: Sequence[ReplayRun], columns: Sequence[str]) -> Iterator[Columns]:
    """Yield what was shown in the rounds of each run: as it was read, or looked up with that of others."""
    others = [run.replayed.displays for run in runs if run.shown is None]
    looked_up = _look_up(runs[0].plan.log, others, columns) if others else iter(())
    for run in runs:
        yield as_columns(next(looked_up)) if run.shown is None else run.shown


def _look_up(log: Log, rounds: Sequence[Ints], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield what was shown in the rounds of each run, looked up together: one more scan of a few columns.

    A run of the logging policy has them all, and the others take theirs from it.
    """
    most = max(rounds, key=len)
    if consecutive(most) and most[0] == 0 and all(of.max(initial=0) <= most[-1] for of in rounds):
        every = log.take(most, columns).combine_chunks()
        yield from (take_rows(every, displays) for displays in rounds)
        return
    shown, taken = log.take(np.concatenate(rounds), columns), 0
    for displays in rounds:
        yield shown.slice(taken, len(displays))
        taken += len(displays)


def as_columns(shown: pa.Table) -> Columns:
    """Return the columns of a table as NumPy arrays."""
    return {name: to_numpy(shown[name]) for name in shown.column_names}


def summarise_repeats(plan: ReplayPlan, done: list[RepeatEstimates], references: References) -> ReplayResult:
    """Return what the repeats of a plan found, without what weighs displays, outcomes, groups and resampled logs."""
    arms = done[0].arms  # of the first repeat: the reference is one for all
    if arms is None:
        raise AssertionError("the scan gives every first repeat its arms")
    t = min(len(r.replay.displays) for r in done)
    if plan.options.reward == "observed":
        references = References()  # of this horizon, and so of no use to others
    alpha, bounds = 1.0 - plan.options.level, reward_bounds(plan)._asdict()
    lived = [r.rewards for r in done]
    different = len(np.unique(np.concatenate([r.replay.displays for r in done]))) if len(done) > 1 else t
    # At half the error, so that a difference of two of them holds at the level asked for.
    joint_value, value = repeated_intervals(lived, **bounds, alphas=(alpha / 2, alpha), displays=different)
    joint_logging = references.logging_value(plan, t, alpha=alpha / 2)
    best = references.best(plan, arms, t, alpha=alpha / 2)
    uplift, regret = difference(joint_value, joint_logging), scaled(difference(best.value, joint_value), t)
    of_logger = plan.sampler == "logged" and plan.propensities.kept_share < 1.0
    costs = [r.costs for r in done if r.costs is not None]
    expected = [r.accepted.expected for r in done if r.accepted is not None]
    labels = plan.log.labels
    trajectory = pa.concat_tables([r.trajectory for r in done])
    counts = np.bincount(to_numpy(trajectory["action"]), minlength=plan.log.n_actions)
    days = plan.clock.days(t)
    lived_pushes = None
    schedule = plan.deployment.schedule
    if schedule is not None and plan.pushes is not None:
        read = float(np.mean([r.replay.read for r in done]))
        lived_pushes = lived_schedule(schedule, plan.pushes, plan.survey, plan.clock, rounds=t, read=read)
    result = ReplayResult(
        value=value,
        expected_value=None,
        regret=unknown(regret) if of_logger else regret,
        uplift=unknown(uplift) if plan.off_support else uplift,
        logging_value=references.logging_value(plan, t, alpha=alpha),
        best_fixed_action=Reference(
            best.action,
            _named(best, labels),
            best.value,
            tuple(labels[k] for k in best.by_halves if k >= 0),
            "order" if isinstance(best, BestOrder) else "action",
        ),
        true_regret=float(np.mean([r.true_regret for r in done])),
        rounds=t,
        live_days=float("nan") if days is None else days,
        conversions_within=float("nan") if plan.cdf is None else float(plan.cdf(t)),
        acceptance_expected=float(np.mean(expected)) if expected else float("nan"),
        ended_by=ended_by(plan, done),
        acceptance_rate=float(np.mean([_acceptance_rate(plan, r) for r in done])),
        effective_sample_size=float(np.mean([r.effective_sample_size for r in done])),
        clipped=float(np.mean([r.clipped for r in done])),
        generated=sum(r.replay.generated for r in done),
        delivered=sum(r.replay.delivered for r in done),
        expired=sum(r.replay.expired for r in done),
        pending=sum(r.replay.pending for r in done),
        read=tuple(r.replay.read for r in done),
        action_share=tuple((counts / max(counts.sum(), 1)).tolist()),
        action_labels=tuple(labels),
        plan=plan.to_dict(),
        trajectory=trajectory,
        learned=learned_by(plan, done[0].replay, references),
        resampled=(),
        findings=ordered(
            (
                *plan.findings,
                *find_in_rounds(plan, done, t),
                *find_in_schedule(plan, lived_pushes, t),
                *find_in_estimates(plan, done, t, best.value),
            )
        ),
        schedule=lived_pushes,
        meaning=meaning(plan, t, days),
        money=money_of(plan, value, lived, costs, displays=different) if costs else None,
    )
    return with_honest_kinds(plan, result)


def _acceptance_rate(plan: ReplayPlan, one: RepeatEstimates) -> float:
    """Return the share of the displays read that are rounds; where units keep their action, of the units."""
    if plan.kept is not None and one.accepted is not None:
        return float(one.accepted.accepted.sum() / max(one.accepted.read.sum(), 1))
    return len(one.replay.displays) / max(one.replay.read, 1)


def _mean_reward(plan: ReplayPlan, shown: Sequence[npt.NDArray[np.int64]], references: References) -> float:
    """Return the mean reward of the displays of each repeat's rounds, over the repeats; nan without rounds."""
    if not all(len(displays) for displays in shown):
        return float("nan")
    if plan.options.reward == "observed":
        return float(np.mean([observed_rewards(plan, displays).mean() for displays in shown]))
    return float(np.mean([references.logged(plan, len(d)).taken(d).mean() for d in shown]))


def _named(best: BestFixedAction, labels: Sequence[str]) -> str:
    """Return the label of the best fixed action, or those of the first in the best fixed order."""
    if not isinstance(best, BestOrder):
        return labels[best.action] if best.action >= 0 else ""
    more = " > ..." if len(best.orders[0]) > _NAMED else ""
    return " > ".join(labels[k] for k in best.orders[0][:_NAMED]) + more


def learned_by(plan: ReplayPlan, replay: Replay, references: References) -> LearnedPolicy:
    """Return what a replay of a plan has learned. The two share their state."""
    log, start = plan.log, None if plan.start is None else plan.start.learned
    encoder = log.meta.encoder or (None if start is None else start.encoder)
    fits = plan.rounds.vectors == "context" and encoder is not None and encoder.dimensions == plan.setting.dimension
    source = references.source(plan, replay.read)
    return learned_policy(
        plan.policy,
        plan.setting,
        tuple(log.labels),
        replay,
        before=0 if start is None else start.rounds,
        encoder=encoder if fits else None,
        learned_from=(*(() if start is None else start.learned_from), *(() if source is None else (source,))),
    )


def estimate_repeat(run: ReplayRun, shown: Columns, references: References) -> RepeatEstimates:
    """Return what a finished repeat earned, in whose rounds this was shown."""
    plan, replay = run.plan, run.replayed
    observed = observed_rewards(plan, replay.displays)
    live = (
        observed
        if plan.options.reward == "observed"
        else references.logged(plan, len(replay.displays)).taken(replay.displays)
    )
    # How long a repeat waited for a display is counted in its own order.
    as_read, action = replace(replay, displays=run.places), shown["action"]
    if plan.kept is not None:
        as_read, action = plan.kept.units.asked_at(as_read, action)
    accepted = accepted_of(plan, as_read, action)
    return RepeatEstimates(
        replay=replay,
        arms=run.arms,
        accepted=accepted,
        suspect=most_suspicious(plan, as_read, action, accepted),
        sizes=references.sizes(plan, replay, shown) if plan.setting.among else None,
        clipped=run.clipped / len(plan.rounds),
        effective_sample_size=_effective_sample_size(plan, shown),
        rewards=live,
        costs=shown[COST] if plan.of_profit else None,
        trajectory=_trajectory(run, replay.displays, shown, live, observed),
        true_regret=_true_regret(plan, replay.displays, shown["action"]),
    )


def _effective_sample_size(plan: ReplayPlan, shown: Columns) -> float:
    """Return (sum w)² / sum w² of the accepted displays' residual weights: T unless propensities were clipped."""
    rounds = len(shown["action"])
    if not plan.matched.clips or not rounds:
        return float(rounds)
    w = plan.matched.weights(shown)
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
    shown: Columns,
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
            **{name: pa.array(shown[name]) for name in ("time", "action")},
            "propensity": pa.array(shown["propensity"]) if "propensity" in shown else pa.nulls(len(displays), _NUMBER),
            "reward": pa.array(reward),
            "reward_observed": pa.array(observed),
        }
    )


def replay_all(
    plans: Sequence[ReplayPlan],
    *,
    jobs: int = 1,
    batch_size: int = BATCH,
    advance: Callable[[int], None] = lambda displays: None,
    estimated: int = 0,
) -> list[ReplayRun]:
    """Replay every repeat of every plan in one scan of their log; return the finished runs, plan by plan, by repeat.

    Those of the first so many plans are `estimated`: of a log that is not in memory they hold what was shown in their
    rounds, where it is read in the order of these.

    Neither the number of threads `jobs` nor `batch_size`, about so many displays read at a time, changes any result:
    each replay sees the same displays in the order of its repeat (`evaluator.replays.rounds.stream`), and draws from
    streams of its own. `advance` is called with the number of displays read since the last call.
    """
    log = plans[0].log
    shown = shown_columns(plans[:estimated]) if estimated and isinstance(log, BatchedLog) else []
    runs = [
        ReplayRun(plan, repeat, shown if i < estimated else ())
        for i, plan in enumerate(plans)
        for repeat in range(plan.options.repeats)
    ]
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
                lambda run: run.read(piece, *_own(run, actions), places.get(run.stream)),  # noqa: B023
                runs,
            )
            advance(min(len(piece.action), last - piece.first))
        _each(pool, ReplayRun.finish, runs)
    return runs


class ReplayRun:
    """One repeat of a plan on its way through the log: the first in the log's own order, the others in others."""

    def __init__(self, plan: ReplayPlan, repeat: int, shown: Sequence[str] = ()) -> None:
        self.plan = plan
        self.repeat = repeat
        # What was shown in its rounds, of the columns that it holds: where they are read in the order of the rounds,
        # and are small. None where it is looked up.
        self.shown: Columns | None = None
        looked_up = plan.sampler == "queue" or plan.kept is not None or ELIGIBLE in shown
        self.holds = () if looked_up else tuple(shown)
        # As long as there may be rounds: only what is written takes memory.
        self._held: Columns = {}
        self._rounds = 0
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
            begun=None if plan.start is None else plan.start.begun(repeat), pushes=plan.pushes, explores=plan.explores,
            keeps=plan.keeps,
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

    def read(self, piece: LogPiece, action: Actions, as_logger: Actions | None, order: Ints | None) -> None:
        """Replay a piece whose actions were thinned, in an order of its displays, or as they came.

        `as_logger` are its actions as the rounds read them in which the logging policy chooses.
        """
        if piece.first >= self.plan.rounds.used or self._reading.done:
            return
        if order is None:
            batch, kept = self.plan.rounds.batch(piece, action), self.plan.kept
            if kept is None or isinstance(self._reading, QueueReplay):
                logger = None if as_logger is None else as_logger[: len(batch.action)]
                accepted = self._reading.read(piece.first, batch, logger)
                self._hold(piece, None if accepted is None else accepted - piece.first)
            else:
                self._reading.read(piece.first, batch, kept=kept.displays(piece.first, batch.action))
        else:
            self._read_in_order(piece, action, as_logger, order[order < self.plan.rounds.used - piece.first])

    def _read_in_order(self, piece: LogPiece, action: Actions, as_logger: Actions | None, order: Ints) -> None:
        for start in range(0, len(order), _PART):
            part = order[start : start + _PART]
            batch = gather(piece, action, part, [self.plan.rounds.vectors]).batch(self.plan.rounds)
            first = piece.first + start
            accepted = self._reading.read(first, batch, None if as_logger is None else as_logger[part])
            rows = part if accepted is None else part[accepted - first]
            self._shown.append(piece.first + rows)
            self._hold(piece, rows)

    def _hold(self, piece: LogPiece, rows: Ints | None) -> None:
        """Hold what some displays of a piece, which became rounds, showed."""
        if rows is None:
            return
        held = slice(self._rounds, self._rounds + len(rows))
        for name in self.holds:
            column = piece.displays[name]
            if name not in self._held:
                self._held[name] = np.empty(self.plan.rounds.used, column.dtype)
            self._held[name][held] = column[rows]
        self._rounds = held.stop

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
        if self._held:
            self.shown = {name: column[: self._rounds] for name, column in self._held.items()}
            self._held = {}


def _without_costs(plan: ReplayPlan, replay: Replay) -> Replay:
    """Return a replay whose counts are of conversions: costs, which come with their display, are none."""
    costs = cost_events(plan.log.conversions)
    if costs is None or plan.options.taught_by != OBJECTIVE:
        return replay
    paid = plan.survey.display[costs]
    at = np.minimum(np.searchsorted(paid, replay.displays), len(paid) - 1)
    costs_of = paid[at] == replay.displays if len(paid) else np.zeros(len(replay.displays), np.bool_)
    taught = len(costs_of) if plan.pushes is None else plan.pushes.taught(len(costs_of))
    told, waiting = (int(np.count_nonzero(part)) for part in (costs_of[:taught], costs_of[taught:]))
    return replace(
        replay,
        generated=replay.generated - told - waiting,
        delivered=replay.delivered - told,
        pending=replay.pending - waiting,
    )


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


def _own(run: ReplayRun, actions: Mapping[tuple[object, ...], Actions]) -> tuple[Actions, Actions | None]:
    """Return a piece's actions as a run matches them, and as it reads them where the logging policy chooses."""
    plan = run.plan
    return actions[_key(run, plan.matched)], None if plan.as_logger is None else actions[_key(run, plan.as_logger)]


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
            for thinning in (*run.plan.thinnings, run.plan.by_action)
        }
        # One draw a display whatever the propensities, so that it is the same for all policies of a seed.
        self._streams = {
            stream: sampler_stream(*stream) for stream, thinning in self._needed.values() if not thinning.keeps_all
        }
        # A unit is thinned out as a whole: it has the draw of its first display.
        kept = next((run.plan.kept for run in runs if run.plan.kept is not None), None)
        self._units = None if kept is None else kept.units
        self._of_units = {
            stream: rng.random(0 if self._units is None else len(self._units.first))
            for stream, rng in self._streams.items()
        }
        reads = [c for _, thinning in self._needed.values() for c in thinning.propensities.reads]
        sets = [ELIGIBLE for run in runs if run.plan.rounds.playable is not None]
        shown = [c for run in runs for c in run.holds]
        self.columns = list(dict.fromkeys(["action", *reads, *sets, *shown]))

    def of(self, piece: LogPiece) -> dict[tuple[object, ...], npt.NDArray[np.int32]]:
        """Return the actions of a piece in each thinned log, -1 where left out."""
        n = len(piece.action)
        if self._units is None:
            draws = {stream: rng.random(n) for stream, rng in self._streams.items()}
        else:
            own = self._units.code[piece.first : piece.first + n]
            draws = {stream: of_units[own] for stream, of_units in self._of_units.items()}
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
