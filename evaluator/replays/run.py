"""From plans to results: one scan of the log, then estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.log_replay import BATCH, Replay
from evaluator.errors import NoRoundsError
from evaluator.estimates.arms import BestFixedAction
from evaluator.estimates.best_order import BestOrder
from evaluator.estimates.confidence import Interval
from evaluator.estimates.contrast import difference, scaled, unknown
from evaluator.estimates.repeated import repeated_interval
from evaluator.findings.codes import (
    ANY_ORDER,
    CLIPPED,
    ENDED_BY_ACTION,
    FEW_ROUNDS,
    NO_ROUNDS,
    QUEUE_RAN_DRY,
    RARE_REFERENCE,
    SHARE_OF_TRAFFIC,
    SHORT_OF_HORIZON,
    WALL_CLOCK_OFF,
    ordered,
)
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.eligible import unpack
from evaluator.log.schema import COST, ELIGIBLE, consecutive, take_rows, to_numpy
from evaluator.replays.acceptance import (
    AcceptedDisplays,
    acceptance_warning,
    accepted_of,
    most_suspicious,
    propensity_warning,
    waiting_warning,
)
from evaluator.replays.learned_by import learned_by
from evaluator.replays.one_scan import Lane, replay_all
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.references import References
from evaluator.replays.result import Reference, ReplayResult
from evaluator.replays.rounds.reorder import BLOCK
from evaluator.replays.set_sizes import SetSizes, set_sizes_assumption, set_sizes_warning
from evaluator.replays.support import leaves_out
from evaluator.replays.values.doubly_robust import robust_value, said_of_robust
from evaluator.replays.values.expected_values import clusters_shown, with_expected_value
from evaluator.replays.values.final import frozen_values
from evaluator.replays.values.money import money_of
from evaluator.replays.values.outcome_evidence import with_outcome_values
from evaluator.replays.values.resampled import Lived, Resampling
from evaluator.replays.values.rewards import ArmSample, observed_rewards, reward_bounds
from evaluator.replays.values.segments import with_segments
from evaluator.replays.words.clusters import few_of
from evaluator.replays.words.run import bursts_warning, calendar_warning, little_learned, meaning, no_rounds
from evaluator.replays.words.stamps import stamps_warning, value_of
from evaluator.replays.words.unknown_maximum import said_of_bound, with_honest_kinds

_TOLD = ("generated", "delivered", "expired")
_SHUFFLED = f"displays within a block of {BLOCK:,} could have come in any order: the repeats shuffle them"
# Actions of an order that are named.
_NAMED = 5
# Below this many displays the mean of a rare reward is mostly luck.
FEW_DISPLAYS = 100
# Relative error of the wall clock's share from which it is said.
_SHARE_OFF = 0.02

T = TypeVar("T")


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


def shown_columns(plans: Sequence[ReplayPlan], lanes: Sequence[Lane]) -> list[str]:
    """Return which columns of the displays in the lanes' rounds are read."""
    reads = [c for lane in lanes if lane.plan.matched.clips for c in lane.plan.matched.propensities.reads]
    reads += [COST] * plans[0].of_profit + [ELIGIBLE] * any(plan.setting.among for plan in plans)
    return list(dict.fromkeys(["time", "action", "propensity", *reads]))


def _execute_all(
    plans: Sequence[ReplayPlan],
    jobs: int,
    batch_size: int,
    advance: Callable[[int], None],
    *,
    resampled: bool = True,
) -> list[tuple[ReplayResult, NoRoundsError | None]]:
    """Return the result of each plan, and why it has no round if it has none."""
    ends = [plan.told_at_ends() for plan in plans]
    lanes = replay_all([*plans, *chain(*ends)], jobs=jobs, batch_size=batch_size, advance=advance)
    first_of_ends = sum(plan.options.repeats for plan in plans)
    lanes, of_ends = lanes[:first_of_ends], iter(lanes[first_of_ends:])
    log = plans[0].log
    replays = [lane.replayed for lane in lanes]
    shown = _shown(log, [replay.displays for replay in replays], shown_columns(plans, lanes))
    results = []
    references = References()
    repeats: list[RepeatEstimates] = []
    for lane, replay, rows in zip(lanes, replays, shown, strict=True):
        repeats.append(estimate_repeat(lane, replay, rows, references))
        if len(repeats) == lane.plan.options.repeats:
            results.append(summarise_repeats(lane.plan, repeats, references))
            repeats = []
    done = iter(replays)
    by_plan = [[next(done) for _ in range(plan.options.repeats)] for plan in plans]
    empty = [[one for one in repeats if not len(one.displays)] for repeats in by_plan]
    at_ends = [
        [
            value_of(end, [next(of_ends).replayed.displays for _ in range(plan.options.repeats)], references)
            for end in two
        ]
        for plan, two in zip(plans, ends, strict=True)
    ]
    results = [
        replace(result, findings=ordered((*stamps_warning(plan, result.value, two), *result.findings)))
        for plan, result, two in zip(plans, results, at_ends, strict=True)
    ]
    failures = [no_rounds(plan, of[0]) if of else None for plan, of in zip(plans, empty, strict=True)]
    results = [
        result
        if failure is None
        else replace(
            result,
            findings=ordered(
                (NO_ROUNDS.found(failure.what, f"{failure.remedy[:1].upper()}{failure.remedy[1:]}"), *result.findings)
            ),
        )
        for result, failure in zip(results, failures, strict=True)
    ]
    results = [
        with_outcome_values(plan, with_honest_kinds(plan, result), [one.displays for one in lived])
        for plan, result, lived in zip(plans, results, by_plan, strict=True)
    ]
    results = _with_weighted(plans, results, by_plan)
    results = [
        with_segments(plan, result, [one.displays for one in lived], references.logged(plan, result.rounds))
        for plan, result, lived in zip(plans, results, by_plan, strict=True)
    ]
    if plans[0].options.bootstrap and resampled:
        lived = [[Lived(len(one.displays), one.read) for one in of] for of in by_plan]
        numbers = range(plans[0].options.bootstrap)
        draws = Resampling(plans, lived).draws(numbers, jobs=jobs, advance=advance)
        results = [
            with_expected_value(result, draws.of(i, clusters_shown(plan, [one.displays for one in of])))
            for i, (plan, result, of) in enumerate(zip(plans, results, by_plan, strict=True))
        ]
    return list(zip(results, failures, strict=True))


def _shown(log: Log, rounds: Sequence[npt.NDArray[np.int64]], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield what was shown in the rounds of each lane, looked up together: one more scan of a few columns.

    A lane of the logging policy has them all, and the others take theirs from it.
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


def _with_weighted(
    plans: Sequence[ReplayPlan], results: Sequence[ReplayResult], replays: Sequence[Sequence[Replay]]
) -> list[ReplayResult]:
    """Return the results with the estimates that weigh displays, where these are asked for."""
    done = list(zip(plans, replays, strict=True))
    out = []
    for result, frozen, (plan, repeats) in zip(results, frozen_values(done), done, strict=True):
        robust = robust_value(plan, repeats, frozen)
        said = said_of_robust(robust)
        if robust is not None and plan.clusters is not None:
            said += few_of(plan, plan.clusters.code[: robust.value.n], "the doubly robust value")
        findings = ordered((*result.findings, *(() if frozen is None else frozen.findings), *said))
        out.append(replace(result, final=frozen, doubly_robust=robust, findings=findings))
    return out


def estimate_repeat(lane: Lane, replay: Replay, shown: pa.Table, references: References) -> RepeatEstimates:
    """Return what a repeat earned, in whose rounds this was shown."""
    plan, t = lane.plan, len(replay.displays)
    observed = observed_rewards(plan, replay.displays)
    live = observed if plan.options.reward == "observed" else references.logged(plan, t).taken(replay.displays)
    # How long a repeat waited for a display is counted in its own order.
    as_read = replace(replay, displays=lane.places)
    accepted = accepted_of(plan, as_read, to_numpy(shown["action"]))
    return RepeatEstimates(
        replay=replay,
        arms=lane.arms,
        accepted=accepted,
        suspect=most_suspicious(plan, as_read, to_numpy(shown["action"]), accepted),
        sizes=references.sizes(plan, replay, shown) if plan.setting.among else None,
        clipped=lane.clipped / len(plan.rounds),
        effective_sample_size=_effective_sample_size(plan, shown),
        rewards=live,
        costs=to_numpy(shown[COST]) if plan.of_profit else None,
        trajectory=_trajectory(lane, replay.displays, shown, live, observed),
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
    lane: Lane,
    displays: npt.NDArray[np.int64],
    shown: pa.Table,
    reward: npt.NDArray[np.float64],
    observed: npt.NDArray[np.float64],
) -> pa.Table:
    numbers = np.arange(len(displays) + 1)
    repeat = np.zeros(len(displays), np.int32)  # of which only what is written takes memory
    if lane.repeat:
        repeat[:] = lane.repeat
    in_order = lane.plan.before == 0 and consecutive(displays) and displays[0] == 0
    return pa.table(
        {
            "repeat": pa.array(repeat),
            "round": pa.array(numbers[1:]),
            "display_id": pa.array(numbers[:-1] if in_order else displays + lane.plan.before),
            **{name: shown[name] for name in ("time", "action", "propensity")},
            "reward": pa.array(reward),
            "reward_observed": pa.array(observed),
        }
    )


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
    return ReplayResult(
        value=value,
        expected_value=None,
        regret=unknown(regret) if of_logger else regret,
        uplift=unknown(uplift) if plan.beside_logger else uplift,
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
        ended_by=_ended_by(plan, done),
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
        findings=ordered((*plan.findings, *_of_rounds(plan, done, t), *_of_estimates(plan, done, t, best.value))),
        meaning=meaning(plan, t, days),
        money=money_of(plan, value, lived, costs, displays=different) if costs else None,
    )


def _named(best: BestFixedAction, labels: Sequence[str]) -> str:
    """Return the label of the best fixed action, or those of the first in the best fixed order."""
    if not isinstance(best, BestOrder):
        return labels[best.action] if best.action >= 0 else ""
    more = " > ..." if len(best.orders[0]) > _NAMED else ""
    return " > ".join(labels[k] for k in best.orders[0][:_NAMED]) + more


def _expected_acceptance(done: list[RepeatEstimates]) -> float:
    known = [r.accepted.expected for r in done if r.accepted is not None]
    return float(np.mean(known)) if known else float("nan")


def _ended_by(plan: ReplayPlan, done: list[RepeatEstimates]) -> tuple[str, ...]:
    """Return the labels of actions without a usable display at which repeats ended."""
    last = {max(r.replay.dry, r.replay.waiting) for r in done}
    return tuple(plan.log.labels[k] for k in sorted(last) if k >= 0 and not plan.usable[k])


def _of_rounds(plan: ReplayPlan, done: list[RepeatEstimates], t: int) -> list[Finding]:
    """Return what is to be said of which displays became rounds, and of what the policy was told in them."""
    said = calendar_warning(plan)
    if t and plan.clock.kind == "wall" and plan.sampler != "logged":
        said.append(
            SHARE_OF_TRAFFIC.found(
                f"Wall clock: these {t:,} rounds take {t / plan.clock.traffic_share:,.0f} displays of live traffic, of "
                f"which the policy serves a share of {plan.clock.traffic_share:.3g}. Were it to serve all of it, "
                "feedback would come later, counted in rounds: `clock='traffic'`.",
                share=plan.clock.traffic_share,
            )
        )
    said += _wall_clock_off(plan, done)
    in_vain = _ended_by(plan, done)
    if t and in_vain:
        named = ", ".join(in_vain)
        out = leaves_out(plan.survey, plan.usable, parted=plan.parted)
        said.append(
            ENDED_BY_ACTION.found(
                f"After {t:,} rounds the policy chose action {named}, which has no usable display, and the replay "
                f"ended there: {out} leaves it out.",
                about=named,
                rounds=t,
            )
        )
    else:
        told = {name: float(np.mean([getattr(r.replay, name) for r in done])) for name in _TOLD}
        said += little_learned(plan, rounds=t, **told)
    # Repeats read one log, and so nearly the same displays: the first that is off speaks for all.
    off = [found for r in done for found in acceptance_warning(plan, r.suspect)]
    tilted = [found for r in done if r.sizes is not None for found in set_sizes_warning(r.sizes)]
    said += [*tilted[:1], *off[:1], *propensity_warning(plan)]
    said += [] if done[0].sizes is None else [set_sizes_assumption(done[0].sizes)]
    return said if len(done) == 1 else [*said, ANY_ORDER.found(_SHUFFLED)]


def _wall_clock_off(plan: ReplayPlan, done: list[RepeatEstimates]) -> list[Finding]:
    """Say that the wall clock counted on another acceptance rate: clipped propensities accept less than c."""
    rate = float(np.mean([len(r.replay.displays) / max(r.replay.read, 1) for r in done])) * plan.survey.kept
    share = plan.clock.share
    if plan.clock.kind != "wall" or not plan.matched.clips or not rate or abs(share / rate - 1.0) < _SHARE_OFF:
        return []
    return [
        WALL_CLOCK_OFF.found(
            f"Wall clock: delays count {share:.4g} rounds for each display, but `accept_quantile` let {rate:.4g} of "
            f"them through: feedback comes {share / rate:.3g} times as late as it should.",
            f"Replay with `clock='traffic'` `traffic_share={rate * plan.clock.sampling_rate:.3g}`.",
            share=share,
            accepted=rate,
        )
    ]


def _of_estimates(plan: ReplayPlan, done: list[RepeatEstimates], t: int, best: Interval) -> list[Finding]:
    said = []
    horizon = plan.options.horizon
    if 0 < t < 10 * plan.log.n_actions:
        said.append(
            FEW_ROUNDS.found(
                f"{t:,} rounds for {plan.log.n_actions} actions: hardly more than exploration, so the value says "
                "little about the policy in the long run.",
                rounds=t,
                actions=plan.log.n_actions,
            )
        )
    if t and best.n < FEW_DISPLAYS:
        said.append(
            RARE_REFERENCE.found(
                f"The best fixed action was shown {best.n:,} times only: which action is best, and with it the "
                "regret's reference, is hardly known.",
                displays=best.n,
            )
        )
    dry = {r.replay.dry for r in done if r.replay.dry >= 0 and plan.usable[r.replay.dry]}
    if dry and t:
        names = ", ".join(plan.log.labels[a] for a in sorted(dry))
        said.append(
            QUEUE_RAN_DRY.found(
                f"The queue of action {names} ran dry after {t:,} rounds, short of the horizon: the stopping point "
                "depended on outcomes, so do not compare this value with another policy's.",
                about=names,
                rounds=t,
            )
        )
    elif horizon is not None and 0 < t < horizon:
        short = f"The log ended after {t:,} rounds, short of the horizon {horizon:,}."
        said.append(SHORT_OF_HORIZON.found(short, rounds=t, horizon=horizon))
    said += bursts_warning(plan)
    waited = [found for r in done for found in waiting_warning(plan, r.accepted)]
    said += waited[:1]
    clipped = float(np.mean([r.clipped for r in done]))
    if clipped > 0 and plan.sampler != "logged":
        said.append(
            CLIPPED.found(
                f"{clipped:.1%} of the displays have a propensity below c: their actions are accepted too rarely, a "
                "bias.",
                share=clipped,
            )
        )
    return [*said, *said_of_bound(plan)]
