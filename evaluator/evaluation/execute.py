"""From a plan to a result: replays in threads, then estimates."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.estimates.arms import BestFixedAction, best_fixed_action
from evaluator.estimates.combine import average, difference, scaled
from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.evaluation.plan import Plan
from evaluator.evaluation.result import Reference, ReplayResult
from evaluator.replayer.engine import BATCH, Replay, run, sampler_stream
from evaluator.replayer.samplers import safe_horizon
from evaluator.rounds.arrays import LoggedRounds
from evaluator.rounds.propensity import Propensities, Thinning, thin

# Below this many displays the mean of a rare reward is mostly luck.
FEW_DISPLAYS = 100


@dataclass(frozen=True)
class _Repeat:
    """One repeat: what was replayed, what it was thinned to, and its estimates."""

    replay: Replay
    thinning: Thinning
    value: Interval
    logging: Interval
    # At half the error, so that a difference of two of them holds at the level asked for.
    joint_best: BestFixedAction
    joint_value: Interval
    joint_logging: Interval
    trajectory: pa.Table
    true_regret: float


def execute(
    plan: Plan, *, batch_size: int = BATCH, advance: Callable[[int], None] = lambda displays: None
) -> ReplayResult:
    """Run every repeat of a plan and estimate. The result does not depend on `batch_size` nor on the number of jobs."""
    interrupted = threading.Event()

    def advance_unless_interrupted(displays: int) -> None:
        # Threads cannot be stopped from outside, and would keep Ctrl-C waiting until every repeat is done.
        if interrupted.is_set():
            raise CancelledError
        advance(displays)

    with ThreadPoolExecutor(plan.options.jobs) as pool:
        try:
            repeats = range(plan.options.repeats)
            done = list(pool.map(lambda r: _repeat(plan, r, batch_size, advance_unless_interrupted), repeats))
        except BaseException:
            interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return _summarise(plan, done)


def _repeat(plan: Plan, repeat: int, batch_size: int, advance: Callable[[int], None]) -> _Repeat:
    options, rounds = plan.options, plan.rounds
    used = _first(plan.propensities, len(rounds))
    # One stream, one draw a display: the thinning is the same for all policies of a seed. The logger's own rounds are
    # not thinned, so nothing of theirs is clipped either.
    matched = thin(
        replace(used, p=None) if plan.sampler == "logged" else used,
        rounds.action,
        per_action=plan.sampler in ("keep", "queue"),
        quantile=options.accept_quantile,
        rng=sampler_stream(options.seed, repeat),
    )
    thinned = rounds.thinned(matched.kept)
    setting = plan.setting
    if plan.sampler == "queue" and options.horizon is None:
        setting = replace(setting, horizon=safe_horizon(thinned.action, rounds.n_actions))
    replay = run(
        plan.policy, setting, thinned, sampler=plan.sampler, seed=options.seed, repeat=repeat, batch_size=batch_size,
        advance=advance,
    )  # fmt: skip
    per_action = thin(used, rounds.action, per_action=True, quantile=0.0, rng=sampler_stream(options.seed, repeat))
    return _estimate(plan, replay, matched, rounds.thinned(per_action.kept), repeat)


def _first(propensities: Propensities, n: int) -> Propensities:
    return replace(propensities, p=None if propensities.p is None else propensities.p[:n])


def _estimate(plan: Plan, replay: Replay, thinning: Thinning, by_action: LoggedRounds, repeat: int) -> _Repeat:
    rounds, t = plan.rounds, len(replay.displays)
    alpha = (1.0 - plan.options.level) / plan.options.repeats
    upper = reward_bound(plan)
    weight = plan.maturity.weight
    observed = _observed(rounds, replay.displays, plan.window.rounds)
    if plan.options.reward == "observed":
        live, of_logged = observed, rounds.rewards(_shown_in_time(rounds, t, plan.window.rounds))
    else:
        of_logged = rounds.rewards(_counted(plan))
        if weight is not None:
            of_logged = of_logged * weight
        live = of_logged[replay.displays]
    return _Repeat(
        replay=replay,
        thinning=thinning,
        value=mean_interval(live, upper=upper, alpha=alpha),
        logging=mean_interval(of_logged, upper=upper, alpha=alpha),
        joint_best=best_fixed_action(by_action.action, of_logged, rounds.n_actions, upper=upper, alpha=alpha / 2),
        joint_value=mean_interval(live, upper=upper, alpha=alpha / 2),
        joint_logging=mean_interval(of_logged, upper=upper, alpha=alpha / 2),
        trajectory=_trajectory(plan, replay, live, observed, repeat),
        true_regret=_true_regret(plan, replay.displays),
    )


def _counted(plan: Plan) -> npt.NDArray[np.float64] | None:
    """Return which conversions are rewards, shape (c,); None for all.

    Where displays are judged once followed for the policy's window, a later conversion is seen of some displays only.
    """
    if not plan.rewards_end_with_window:
        return None
    return (plan.rounds.delay <= plan.window.rounds).astype(np.float64)


def reward_bound(plan: Plan) -> float:
    """Return the largest reward a display can have: the log's own bound, else the largest seen, times the weights."""
    bound = plan.log.meta.reward_max
    if bound is None:
        rewards = plan.rounds.rewards()
        bound = float(rewards.max()) if len(rewards) else 1.0
    return (bound or 1.0) * plan.maturity.heaviest


def _observed(rounds: LoggedRounds, displays: npt.NDArray[np.int64], window: int) -> npt.NDArray[np.float64]:
    """Return each round's reward revealed by the last round: delay at most min(m, T - s). Shape (T,)."""
    reach = np.full(len(rounds), -1, np.int64)
    t = len(displays)
    reach[displays] = np.minimum(window, t - 1 - np.arange(t))
    share = (rounds.delay <= reach[rounds.display_of_conversion]).astype(np.float64)
    return rounds.rewards(share)[displays]


def _shown_in_time(rounds: LoggedRounds, t: int, window: int) -> npt.NDArray[np.float64]:
    """Return the share of T rounds from which each conversion would be revealed by round T. Shape (c,)."""
    if t == 0:
        return np.zeros(len(rounds.delay))
    return np.where(rounds.delay <= window, np.maximum(t - rounds.delay, 0) / t, 0.0)


def _true_regret(plan: Plan, displays: npt.NDArray[np.int64]) -> float:
    if "expected_reward" not in plan.log.displays.column_names:
        return float("nan")
    expected = plan.log.column("expected_reward")[displays]
    chosen = expected[np.arange(len(displays)), plan.rounds.action[displays]]
    return float((expected.max(axis=1) - chosen).sum()) if len(displays) else 0.0


def _trajectory(
    plan: Plan,
    replay: Replay,
    reward: npt.NDArray[np.float64],
    observed: npt.NDArray[np.float64],
    repeat: int,
) -> pa.Table:
    at = pa.array(replay.displays)
    shown = plan.log.displays.select(["display_id", "time", "action", "propensity"]).take(at)
    t = len(replay.displays)
    table = pa.table({"repeat": pa.array(np.full(t, repeat, np.int32)), "round": pa.array(np.arange(1, t + 1))})
    for name in shown.column_names:
        table = table.append_column(name, shown[name])
    return table.append_column("reward", pa.array(reward)).append_column("reward_observed", pa.array(observed))


def _summarise(plan: Plan, done: list[_Repeat]) -> ReplayResult:
    t = min(len(r.replay.displays) for r in done)
    joint_value = average([r.joint_value for r in done])
    best = average([r.joint_best.value for r in done], same_data=True)
    chosen = max((r.joint_best for r in done), key=lambda b: b.value.estimate if b.action >= 0 else -np.inf)
    labels = plan.log.labels
    counts = np.bincount(
        np.concatenate([plan.rounds.action[r.replay.displays] for r in done]), minlength=plan.log.n_actions
    )
    ess = np.mean([_effective_sample_size(r) for r in done])
    days = plan.clock.days(t)
    delay = plan.rounds.delay
    return ReplayResult(
        value=average([r.value for r in done]),
        regret=scaled(difference(best, joint_value), t),
        uplift=difference(joint_value, average([r.joint_logging for r in done], same_data=True)),
        logging_value=average([r.logging for r in done], same_data=True),
        best_fixed_action=Reference(chosen.action, labels[chosen.action] if chosen.action >= 0 else "", best),
        true_regret=float(np.mean([r.true_regret for r in done])),
        rounds=t,
        live_days=float("nan") if days is None else days,
        conversions_within=float(np.mean(delay <= t)) if len(delay) else float("nan"),
        acceptance_rate=float(np.mean([len(r.replay.displays) / max(r.replay.read, 1) for r in done])),
        effective_sample_size=float(ess),
        clipped=float(np.mean([r.thinning.clipped for r in done])),
        generated=sum(r.replay.generated for r in done),
        delivered=sum(r.replay.delivered for r in done),
        expired=sum(r.replay.expired for r in done),
        pending=sum(r.replay.pending for r in done),
        action_share=tuple((counts / max(counts.sum(), 1)).tolist()),
        action_labels=tuple(labels),
        plan=plan.to_dict(),
        trajectory=pa.concat_tables([r.trajectory for r in done]),
        warnings=(*plan.warnings, *_warnings(plan, done, t)),
        assumptions=plan.assumptions,
    )


def _effective_sample_size(repeat: _Repeat) -> float:
    """Return (sum w)² / sum w² of the accepted displays' residual weights: T unless propensities were clipped."""
    w = repeat.thinning.weight[repeat.replay.displays]
    return float(w.sum() ** 2 / (w**2).sum()) if len(w) else 0.0


def _warnings(plan: Plan, done: list[_Repeat], t: int) -> list[str]:
    said = []
    horizon = plan.options.horizon
    if t == 0:
        said.append(
            "No display was accepted, so there is no estimate. The smallest propensity decides how many are: "
            "--accept-quantile 0.05 accepts more at the price of bias."
        )
    elif t < 10 * plan.log.n_actions:
        said.append(
            f"{t:,} rounds for {plan.log.n_actions} actions: hardly more than exploration, so the value says "
            "little about the policy in the long run."
        )
    best = done[0].joint_best.value
    if best.n < FEW_DISPLAYS:
        said.append(
            f"The best fixed action was shown {best.n:,} times only: the regret's reference is hardly known, and its "
            "estimate, the largest of many uncertain ones, is too high."
        )
    dry = {r.replay.dry for r in done if r.replay.dry >= 0}
    if dry:
        names = ", ".join(plan.log.labels[a] for a in sorted(dry))
        said.append(
            f"The queue of action {names} ran dry after {t:,} rounds, short of the horizon: the stopping point "
            "depended on outcomes, so do not compare this value with another policy's."
        )
    elif horizon is not None and t < horizon:
        said.append(f"The log ended after {t:,} rounds, short of the horizon {horizon:,}.")
    clipped = float(np.mean([r.thinning.clipped for r in done]))
    if clipped > 0 and plan.sampler != "logged":
        said.append(
            f"{clipped:.1%} of the displays have a propensity below c: their actions are accepted too rarely, a bias."
        )
    if plan.log.meta.reward_max is None:
        said.append(f"The largest reward seen, {reward_bound(plan):g}, is taken as the largest possible.")
    return said
