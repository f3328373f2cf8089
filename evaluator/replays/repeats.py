"""One repeat of a replay: what was replayed, what it was thinned to, and what it earned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.log_replay import Replay
from evaluator.log.eligible import unpack
from evaluator.log.schema import COST, ELIGIBLE, consecutive, to_numpy
from evaluator.replays.acceptance import (
    AcceptedDisplays,
    accepted_of,
    most_suspicious,
)
from evaluator.replays.one_scan import Lane
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.references import References
from evaluator.replays.set_sizes import SetSizes
from evaluator.replays.values.rewards import ArmSample, observed_rewards


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


def ended_by(plan: ReplayPlan, done: list[RepeatEstimates]) -> tuple[str, ...]:
    """Return the labels of actions without a usable display at which repeats ended."""
    last = {max(r.replay.dry, r.replay.waiting) for r in done}
    return tuple(plan.log.labels[k] for k in sorted(last) if k >= 0 and not plan.usable[k])
