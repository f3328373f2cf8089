"""From plans to results: one scan of the log, then estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.log_replay import BATCH, Replay
from evaluator.errors import NoRoundsError
from evaluator.estimates.best_fixed import BestFixedAction, BestOrder
from evaluator.estimates.confidence import SparseRewards
from evaluator.estimates.paired import difference, scaled, unknown
from evaluator.estimates.repeated import repeated_interval
from evaluator.findings.codes import NO_ROUNDS, ordered
from evaluator.log import Log
from evaluator.log.schema import COST, ELIGIBLE, consecutive, take_rows, to_numpy
from evaluator.replays.findings.run import (
    find_in_estimates,
    find_in_rounds,
    mean_reward,
    meaning,
    no_rounds,
    stamps_warning,
    with_honest_kinds,
)
from evaluator.replays.learned.policy import LearnedPolicy, learned_policy
from evaluator.replays.one_scan import RepeatEstimates, ReplayRun, ended_by, estimate_repeat, replay_all
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import Reference, ReplayResult
from evaluator.replays.values.doubly_robust import RewardModels, robust_value
from evaluator.replays.values.expected_values import clusters_shown, with_expected_value
from evaluator.replays.values.final import frozen_value
from evaluator.replays.values.kind_values import kind_values, money_of
from evaluator.replays.values.resampled import Lived, Resampling
from evaluator.replays.values.rewards import References, reward_bounds
from evaluator.replays.values.segments import segment_values

# Actions of an order that are named.
_NAMED = 5


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
    """Run plans on one log in one scan of it, and estimate; arguments as in `evaluator.replays.one_scan.replay_all`.

    A replay without a round has no estimate, and its first warning says why. Unless `resampled`, the replays of
    resampled logs that the plans ask for are left out, and with them what rests on these.
    """
    return [result for result, _ in _execute_all(plans, jobs, batch_size, advance, resampled=resampled)]


def shown_columns(plans: Sequence[ReplayPlan], runs: Sequence[ReplayRun]) -> list[str]:
    """Return which columns of the displays in the rounds of some runs are read."""
    reads = [c for run in runs if run.plan.matched.clips for c in run.plan.matched.propensities.reads]
    reads += [COST] * plans[0].of_profit + [ELIGIBLE] * any(plan.setting.among for plan in plans)
    return list(dict.fromkeys(["time", "action", "propensity", *reads]))


def _execute_all(
    plans: Sequence[ReplayPlan], jobs: int, batch_size: int, advance: Callable[[int], None], *, resampled: bool = True
) -> list[tuple[ReplayResult, NoRoundsError | None]]:
    """Return the result of each plan, and why it has no round if it has none."""
    ends = [plan.told_at_ends() for plan in plans]
    done = iter(replay_all([*plans, *chain(*ends)], jobs=jobs, batch_size=batch_size, advance=advance))
    runs = [[next(done) for _ in range(plan.options.repeats)] for plan in plans]
    every = [*chain(*runs)]
    shown = _shown(plans[0].log, [run.replayed.displays for run in every], shown_columns(plans, every))
    references = References()
    models = RewardModels() if any(len(plan.held_out) for plan in plans) else None
    results: list[tuple[ReplayResult, NoRoundsError | None]] = []
    for plan, own, two in zip(plans, runs, ends, strict=True):
        repeats = [estimate_repeat(run, next(shown), references) for run in own]
        result = summarise_repeats(plan, repeats, references)
        at_ends = [
            mean_reward(end, [next(done).replayed.displays for _ in range(plan.options.repeats)], references)
            for end in two
        ]
        replays = [run.replayed for run in own]
        result = _with_other_values(plan, result, replays, models, references.logged(plan, result.rounds))
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
    logged: SparseRewards,
) -> ReplayResult:
    """Return a result with what was asked for besides: outcomes, guardrails, the frozen policy, DR, and groups.

    `logged` are the rewards of the used displays.
    """
    displays, findings = [replay.displays for replay in replays], list(result.findings)
    if plan.outcomes:
        outcomes, guardrails = kind_values(plan, displays)
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
        segments, assumed = segment_values(plan, displays, logged)
        findings.append(assumed)
        result = replace(result, segments=segments)
    return replace(result, findings=tuple(findings))


def _shown(log: Log, rounds: Sequence[npt.NDArray[np.int64]], columns: Sequence[str]) -> Iterator[pa.Table]:
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


def summarise_repeats(plan: ReplayPlan, done: list[RepeatEstimates], references: References) -> ReplayResult:
    """Return what the repeats of a plan found, without what weighs displays, outcomes, groups and resampled logs."""
    arms = done[0].arms  # of the first repeat: the reference is one for all
    if arms is None:
        raise AssertionError("the scan gives every first repeat its arms")
    t = min(len(r.replay.displays) for r in done)
    if plan.options.reward == "observed":
        references = References()  # of this horizon, and so of no use to others
    alpha, bounds = 1.0 - plan.options.level, reward_bounds(plan)
    lived = [r.rewards for r in done]
    different = len(np.unique(np.concatenate([r.replay.displays for r in done]))) if len(done) > 1 else t
    # At half the error, so that a difference of two of them holds at the level asked for.
    joint_value = repeated_interval(lived, lower=bounds.lower, upper=bounds.upper, alpha=alpha / 2, displays=different)
    joint_logging = references.logging_value(plan, t, bounds=bounds, alpha=alpha / 2)
    best = references.best(plan, arms, t, bounds=bounds, alpha=alpha / 2)
    uplift, regret = difference(joint_value, joint_logging), scaled(difference(best.value, joint_value), t)
    of_logger = plan.sampler == "logged" and plan.propensities.kept_share < 1.0
    value = repeated_interval(lived, lower=bounds.lower, upper=bounds.upper, alpha=alpha, displays=different)
    costs = [r.costs for r in done if r.costs is not None]
    labels = plan.log.labels
    trajectory = pa.concat_tables([r.trajectory for r in done])
    counts = np.bincount(to_numpy(trajectory["action"]), minlength=plan.log.n_actions)
    days = plan.clock.days(t)
    result = ReplayResult(
        value=value,
        expected_value=None,
        regret=unknown(regret) if of_logger else regret,
        uplift=unknown(uplift) if plan.off_support else uplift,
        logging_value=references.logging_value(plan, t, bounds=bounds, alpha=alpha),
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
        acceptance_expected=_expected_acceptance(done),
        ended_by=ended_by(plan, done),
        acceptance_rate=float(np.mean([len(r.replay.displays) / max(r.replay.read, 1) for r in done])),
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
            (*plan.findings, *find_in_rounds(plan, done, t), *find_in_estimates(plan, done, t, best.value))
        ),
        meaning=meaning(plan, t, days),
        money=money_of(plan, value, lived, costs, displays=different) if costs else None,
    )
    return with_honest_kinds(plan, result)


def _named(best: BestFixedAction, labels: Sequence[str]) -> str:
    """Return the label of the best fixed action, or those of the first in the best fixed order."""
    if not isinstance(best, BestOrder):
        return labels[best.action] if best.action >= 0 else ""
    more = " > ..." if len(best.orders[0]) > _NAMED else ""
    return " > ".join(labels[k] for k in best.orders[0][:_NAMED]) + more


def _expected_acceptance(done: list[RepeatEstimates]) -> float:
    known = [r.accepted.expected for r in done if r.accepted is not None]
    return float(np.mean(known)) if known else float("nan")


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
