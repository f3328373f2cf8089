"""Value and regret round by round, with bands that hold at all rounds at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.comparisons.horizon import FirstRounds
from evaluator.estimates.confidence import mean_sequence
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.rewards import RewardBounds, reward_bounds
from evaluator.results.json_documents import Positive, array_of

Floats = npt.NDArray[np.float64]
_CHECKPOINTS = 200
_Listed = Annotated[Floats, *array_of(float, most=_CHECKPOINTS)]


@dataclass(frozen=True, eq=False)
class Band:
    """A curve and its band, shape (k,) each; nan where it is not known."""

    estimate: _Listed
    low: _Listed
    high: _Listed


@dataclass(frozen=True, eq=False)
class VariantCurve:
    """A variant over the rounds of the common horizon.

    Parameters
    ----------
    rounds
        Checkpoints t, at most 200, shape (k,).
    value
        Mean reward of the first t rounds; the mean over repeats. Its band is the mean of theirs, at the level split
        over them: unlike the interval at the end (`evaluator.estimates.repeated`) it holds at all rounds at once.
    regret
        Total regret of the first t rounds against the best fixed action. Both bands are anytime-valid: the whole band
        holds with the level's probability.
    """

    rounds: Annotated[npt.NDArray[np.int64], *array_of(Positive, most=_CHECKPOINTS)]
    value: Band
    regret: Band


def checkpoints(rounds: int) -> npt.NDArray[np.int64]:
    """Return at most 200 rounds, a tenth, a quarter, half and all of them included.

    >>> checkpoints(10).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    return np.unique(-(-np.arange(1, _CHECKPOINTS + 1) * rounds // _CHECKPOINTS))[-_CHECKPOINTS if rounds else 1 :]


def draw_curve(plan: ReplayPlan, result: ReplayResult, lived: FirstRounds) -> VariantCurve:
    """Return the curve of a variant.

    The regret's reference, the value of the best fixed action, and its error are those of the replay's own result.
    Where rewards are those observed by the horizon, this reference belongs to the horizon of the replay: the regret is
    known only where that is the common one.
    """
    rounds = len(lived.displays[0])
    at = checkpoints(rounds)
    alpha = (1.0 - plan.options.level) / plan.options.repeats
    bounds = reward_bounds(plan)
    value = _mean_band(lived.rewards, at, bounds, alpha)
    joint = _mean_band(lived.rewards, at, bounds, alpha / 2)
    best = result.best_fixed_action.value
    known = plan.options.reward == "eventual" or len(result.trajectory) == rounds * plan.options.repeats
    times = at if known else np.full(len(at), np.nan)
    regret = Band(
        times * (best.estimate - joint.estimate), times * (best.low - joint.high), times * (best.high - joint.low)
    )
    return VariantCurve(at, value, regret)


def curve_table(curves: Sequence[VariantCurve]) -> pa.Table:
    """Return curves as a table: variant (from 0), round, value and regret with the ends of their bands."""
    return pa.table(
        {
            "variant": pa.array(np.repeat(np.arange(len(curves), dtype=np.int32), [len(c.rounds) for c in curves])),
            "round": np.concatenate([c.rounds for c in curves]),
            **{
                f"{what}{end}": np.concatenate([getattr(getattr(c, what), part) for c in curves])
                for what in ("value", "regret")
                for end, part in (("", "estimate"), ("_low", "low"), ("_high", "high"))
            },
        }
    )


def _mean_band(rewards: Sequence[Floats], at: npt.NDArray[np.int64], bounds: RewardBounds, alpha: float) -> Band:
    ends = [mean_sequence(x, lower=bounds.lower, upper=bounds.upper, alpha=alpha, at=at) for x in rewards]
    means = [np.cumsum(x)[at - 1] / at for x in rewards]
    return Band(*(np.mean(part, axis=0) for part in (means, [low for low, _ in ends], [high for _, high in ends])))
