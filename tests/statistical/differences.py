"""How often realised differences hold, and rankings err, on tidy and untidy logs of known truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluator import compare
from evaluator.comparisons.differences import p_values_of, weigh
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.run import execute_comparison, plan_comparison
from evaluator.comparisons.variants import first_rounds
from evaluator.estimates.simultaneous import holm
from evaluator.log.schema import to_numpy
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import reward_bounds
from tests.untidy.defects import rows_of
from tests.untidy.settings import HOUR_S, Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards
from tests.untidy.writing import as_log

LEVEL = 0.95
POLICIES = ("ucb1", "thompson", "klucb", "delayed-ucb", "random", "fixed:action=2")
# Fewer, for resampled logs, and rounds that every replay of them reaches.
FEW, SHORT = ("ucb1", "thompson", "klucb", "random", "fixed:action=2"), 350
# Every action earns the same; in every other respect these logs are as untidy as those of `tests/untidy`.
SMALL: dict[str, Any] = {"displays": 2400, "days": 5.0, "means": (0.4, 0.4, 0.4)}
KINDS: dict[str, Untidy] = {
    "tidy": Untidy(**SMALL),
    "small rates": Untidy(**{**SMALL, "means": (0.03, 0.03, 0.03)}),
    "rhythm, growth, drift": Untidy(**SMALL, rhythm=0.6, growth=4.0, drift=0.4, logger=(0.5, 0.3, 0.2)),
    "revenue, heavy": Untidy(**SMALL, mean_values=(20.0, 20.0, 20.0), log_sd=1.2),
    "delays by action": Untidy(**SMALL, slowness=(0.05, 0.3, 1.0)),
    "delays of a day, observed by the horizon": Untidy(**SMALL, longest_s=24 * HOUR_S, attribution_s=None),
}
OPTIONS: dict[str, dict[str, Any]] = {"delays of a day, observed by the horizon": {"reward": "observed"}}


@dataclass(frozen=True)
class Held:
    """What became of one comparison, by one sum along the log and by two sums.

    Parameters
    ----------
    covered, before
        Of each pair, whether its interval holds what is true of the displays shown; by two sums before.
    erred, erred_before
        Whether the ranking told any difference from 0 that is 0 or has the other sign.
    width, width_before
        Mean widths.
    """

    covered: tuple[bool, ...]
    before: tuple[bool, ...]
    erred: bool
    erred_before: bool
    width: float
    width_before: float


def held(name: str, seeds: range, *, gap: float = 0.0, repeats: int = 1) -> Iterator[Held]:
    """Draw logs of a kind, compare six policies on each, and hold all pairs against the truth.

    Parameters
    ----------
    name
        Of `KINDS`.
    seeds
        One a log.
    gap
        What the last action's rate has beyond the others'; 0 where every difference is one of luck.
    repeats
        Of each policy.
    """
    untidy = KINDS[name]
    untidy = replace(untidy, means=(*untidy.means[:-1], untidy.means[-1] + gap))
    for seed in seeds:
        traffic = draw_traffic(untidy, seed)
        log, of = as_log(traffic, rows_of(traffic, seed))
        options = ReplayOptions(seed=seed, level=LEVEL, repeats=repeats, **OPTIONS.get(name, {}))
        plans = plan_comparison(log, [resolve(spec) for spec in POLICIES], [None], options)
        found = execute_comparison(plans)
        if found.horizon.fixed:
            yield _held(found, plans, expected_rewards(traffic)[of])


def _held(found: Comparison, plans: list[ReplayPlan], expected: np.ndarray) -> Held:
    """Hold a comparison against the expected reward of each action at each display of the log."""
    alpha, t, shared = 1.0 - LEVEL, found.horizon.rounds, plans[0].options.reward == "eventual"
    lived = [first_rounds(plan, result, t) for plan, result in zip(plans, found.results, strict=True)]
    action = to_numpy(plans[0].log.displays["action"])
    # Seen by the horizon, rounds count by their age, alike for all: where all actions earn alike nothing differs.
    true = [float(np.mean([expected[d, action[d]].mean() for d in of.displays])) if shared else 0.0 for of in lived]
    now = [test.difference for test in found.ranking.tests]
    then = [
        weigh(
            *(lived[d.variant].displays, lived[d.variant].rewards),
            *(lived[d.reference].displays, lived[d.reference].rewards),
            rounds=t, **reward_bounds(plans[0])._asdict(), ordered=False, shared=shared,
        )
        for d in now
    ]  # fmt: skip
    truth = np.array([true[d.variant] - true[d.reference] for d in now])
    ends = np.array([(d.realised.low, d.realised.high) for d in now if d.realised is not None])
    before = np.array([(of.low, of.high) for of in (one.interval(alpha) for one in then)])
    signs = np.sign([d.realised.estimate for d in now if d.realised is not None])
    told = holm(p_values_of(then, alpha=alpha)) <= alpha
    wrong = np.sign(truth) != signs
    return Held(
        covered=tuple((ends[:, 0] <= truth) & (truth <= ends[:, 1])),
        before=tuple((before[:, 0] <= truth) & (truth <= before[:, 1])),
        erred=bool((np.array([test.apart for test in found.ranking.tests]) & wrong).any()),
        erred_before=bool((told & wrong).any()),
        width=float((ends[:, 1] - ends[:, 0]).mean()),
        width_before=float((before[:, 1] - before[:, 0]).mean()),
    )


def expected_errs(name: str, seeds: range, *, bootstrap: int) -> Iterator[bool]:
    """Return on each log whether the ranking of expected values, which are all the same, tells any from another."""
    for seed in seeds:
        traffic = draw_traffic(KINDS[name], seed)
        log, _ = as_log(traffic, rows_of(traffic, seed))
        found = compare(
            log,
            FEW,
            baseline=FEW[0],
            seed=seed,
            level=LEVEL,
            bootstrap=bootstrap,
            horizon=SHORT,
            **OPTIONS.get(name, {}),
        )
        if found.ranking.target == "expected":
            yield any(test.apart for test in found.ranking.tests)
