"""How often the numbers of replays hold where young displays are corrected, on logs of known truth (`young_logs`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from evaluator import compare
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds import maturity
from evaluator.replays.rounds.survey import Survey
from tests.statistical.young_logs import Young

POLICIES = ("fixed:action=0", "fixed:action=1", "random")
# Rules of --immature; the last one is the tempting way: one delay law for all actions.
ONE_LAW = "correct, one law"

WORLDS = {
    "quick and slow, equal rates": Young(),
    "quick and slow, rates differ": Young(rates=(0.36, 0.3, 0.33), delays=(0.2, 1.0, 0.5), displays=9_000),
    "one law": Young(delays=(0.5, 0.5)),
    "few conversions an action": Young(displays=1_500, rates=(0.1,) * 5, delays=(0.2, 0.2, 0.4, 0.8, 1.0)),
    "hardly longer than its window": Young(days=2.2),
    "revenue": Young(values=(10.0, 40.0), rates=(0.4, 0.1)),
    "daily rhythm": Young(rhythm=0.6),
    "delays by device too": Young(device=3.0, delays=(0.2, 0.6)),
}


class Held(NamedTuple):
    """Of each log: whether intervals hold, whether a difference is called real, and errors of the estimates.

    Parameters
    ----------
    value, uplift, difference
        Whether the realised interval holds what the displays shown are expected to earn: of each of `POLICIES`, shape
        (logs, 3); of the first minus the second, shape (logs,).
    expected
        Whether the bootstrap's interval holds each policy's expected value, shape (logs, 3); ones without a bootstrap.
    real
        Whether a ranking of the two fixed actions calls one better, shape (logs,).
    off
        Values minus the truth, and the same of the difference, shape (logs, 4).
    used
        Share of the displays that are used, shape (logs,).
    """

    value: npt.NDArray[np.bool_]
    uplift: npt.NDArray[np.bool_]
    difference: npt.NDArray[np.bool_]
    expected: npt.NDArray[np.bool_]
    real: npt.NDArray[np.bool_]
    off: npt.NDArray[np.float64]
    used: npt.NDArray[np.float64]


def held(world: Young, rule: str, seeds: Iterable[int], *, bootstrap: int = 0) -> Held:
    """Replay and compare the policies on logs of a world."""
    if rule == ONE_LAW:
        with patch.object(maturity, "_groups", _one_law):
            rows = [_on_log(world, "correct", seed, bootstrap) for seed in seeds]
    else:
        rows = [_on_log(world, rule, seed, bootstrap) for seed in seeds]
    return Held(*(np.array(column) for column in zip(*rows, strict=True)))


def _one_law(survey: Survey, columns: tuple[str, ...]) -> npt.NDArray[np.int64]:
    return np.zeros(len(survey.display), np.int64)


def _on_log(world: Young, rule: str, seed: int, bootstrap: int) -> tuple[object, ...]:
    log = world.draw(seed)
    found = compare(log, POLICIES, baseline=POLICIES[0], immature=rule, seed=seed, bootstrap=bootstrap)
    expected, action = log.column("expected_reward"), log.column("action")
    shown = [to_numpy(result.trajectory["display_id"]) for result in found.results]
    true = [float(expected[of, action[of]].mean()) for of in shown]
    used = np.arange(found.results[0].plan["displays_used"])
    logging = float(expected[used, action[used]].mean())
    test = next(t for t in found.ranking.tests if {t.difference.variant, t.difference.reference} == {0, 1})
    ours = test.difference if test.difference.variant == 0 else test.difference.turned()
    assert ours.realised is not None
    t = min(len(of) for of in shown)  # the common horizon is no longer
    first, second = (float(expected[of[:t], action[of[:t]]].mean()) for of in shown[:2])
    mean = [*world.rewards[:2], float(world.rewards.mean())]
    return (
        [r.value.low <= of <= r.value.high for r, of in zip(found.results, true, strict=True)],
        [r.uplift.low <= of - logging <= r.uplift.high for r, of in zip(found.results, true, strict=True)],
        ours.realised.low <= first - second <= ours.realised.high,
        [r.expected_value is None or r.expected_value.low <= of <= r.expected_value.high
         for r, of in zip(found.results, mean, strict=True)],
        test.apart,
        [*(r.value.estimate - of for r, of in zip(found.results, true, strict=True)),
         ours.realised.estimate - (first - second)],
        len(used) / len(log),
    )  # fmt: skip
