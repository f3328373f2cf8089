"""What the product says of an untidy log, held against the truth.

A replay's numbers are *covered* if each interval holds its truth. Where one does not, a sentence that names the cause
makes the replay *warned*; a log or a replay that is not answered is *refused*; the rest is *silent*: wrong, and nobody
says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from evaluator import check, replay
from evaluator.errors import EvaluatorError
from evaluator.estimates.confidence import Interval
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from tests.untidy.defects import rows_of
from tests.untidy.kinds import Kind
from tests.untidy.live import play_live
from tests.untidy.traffic import Floats, Traffic, draw_traffic
from tests.untidy.truth import expected_rewards, value_of_fixed, value_of_logger, value_of_random, value_shown
from tests.untidy.writing import as_log

Outcome = Literal["covered", "warned", "refused", "silent"]
OUTCOMES: tuple[Outcome, ...] = ("covered", "warned", "refused", "silent")
# A power of two, so that money in another unit is the same to the bit.
_UNIT = 2.0**-7
# Standard errors by which shares of contexts are off by chance once in 150,000 times.
CHANCE = 4.5


@dataclass(frozen=True)
class Verdict:
    """What became of one replay.

    Parameters
    ----------
    policy, seed
        What was replayed.
    outcome
        Of `OUTCOMES`.
    wrong
        Numbers whose interval does not hold the truth, with both in words.
    said
        Where it is warned or refused, the sentence that says so; where it is silent, all that was said.
    realised
        What the rounds shown are expected to earn; nan where there are none.
    """

    policy: str
    seed: int
    outcome: Outcome
    wrong: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    realised: float = float("nan")


@dataclass(frozen=True, eq=False)
class _Case:
    """A log with its truth."""

    kind: Kind
    traffic: Traffic
    log: Log
    of: Any
    expected: Floats


def judge(kind: Kind, seed: int) -> list[Verdict]:
    """Draw a log of a kind, replay its policies, and return what became of each."""
    traffic = draw_traffic(kind.untidy, seed)
    window = None if kind.window_s is None else float(kind.window_s)
    try:
        log, of = as_log(traffic, rows_of(traffic, seed))
    except EvaluatorError as error:
        return [Verdict(policy, seed, "refused", said=(str(error),)) for policy in kind.policies]
    case = _Case(kind, traffic, log, of, expected_rewards(traffic, window_s=window))
    found = [_judged(case, policy, seed) for policy in kind.policies]
    if all(verdict.outcome != "silent" for verdict in found):
        return found
    # The check is asked once, and only where a replay went wrong without a word.
    said = _findings(log)
    return [_named(kind, v, (*v.said, *said)) if v.outcome == "silent" else v for v in found]


def _named(kind: Kind, verdict: Verdict, said: tuple[str, ...]) -> Verdict:
    """Return the verdict on wrong numbers: warned if a sentence names the cause."""
    for text in said:
        if kind.causes and re.search(kind.causes, text, re.IGNORECASE):
            return replace(verdict, outcome="warned", said=(text,))
    return replace(verdict, outcome="silent", said=said)


def _judged(case: _Case, policy: str, seed: int) -> Verdict:
    kind = case.kind
    try:
        result = replay(case.log, policy, window=kind.window, seed=seed, **kind.options)
    except EvaluatorError as error:
        return Verdict(policy, seed, "refused", said=(str(error),))
    wrong = tuple(_wrong(case, policy, result, seed))
    realised = value_shown(case.expected, case.of[_column(result, "display_id")], _column(result, "action"))
    if not wrong:
        return Verdict(policy, seed, "covered", said=result.warnings, realised=realised)
    return _named(kind, Verdict(policy, seed, "silent", wrong, realised=realised), result.warnings)


def _wrong(case: _Case, policy: str, result: ReplayResult, seed: int) -> list[str]:
    traffic, expected, kind = case.traffic, case.expected, case.kind
    used = case.of[: result.plan["displays_used"]]
    shown, action = case.of[_column(result, "display_id")], _column(result, "action")
    if policy == "random":
        value = value_of_random(traffic, expected, used)
    elif policy.startswith("fixed"):
        value = value_of_fixed(expected, used, int(policy.partition("action=")[2] or 0))
    else:
        value = value_shown(expected, shown, action)
    best = max(value_of_fixed(expected, used, k) for k in range(traffic.untidy.n_actions))
    of_logger = value_of_logger(traffic, expected, used)
    truths: dict[str, tuple[Interval, float]] = {
        "value": (result.value, value),
        "best fixed action": (result.best_fixed_action.value, best),
        "logging policy": (result.logging_value, of_logger),
    }
    wrong = [
        f"{name} [{interval.low:.4g}, {interval.high:.4g}], truth {truth:.4g}"
        for name, (interval, truth) in truths.items()
        if name in kind.numbers and not interval.low <= truth <= interval.high
    ]
    learns = policy != "random" and not policy.startswith("fixed")
    few = 0.8 * min(len(used) / traffic.untidy.n_actions, kind.options.get("horizon", np.inf))
    if "rounds" in kind.numbers and not learns and result.rounds < few:
        wrong.append(f"{result.rounds} rounds of {few / 0.8:.0f}")
    if "contexts" in kind.numbers and len(shown):
        mix, seen = traffic.context[used].mean(), traffic.context[shown].mean()
        if abs(seen - mix) > CHANCE * np.sqrt(mix * (1 - mix) / len(shown)):
            wrong.append(f"second context in {seen:.1%} of the rounds, {mix:.1%} of the displays")
    if "money" in kind.numbers:
        again = replay(in_another_unit(case.log, _UNIT), policy, window=kind.window, seed=seed, **kind.options)
        if again.value.estimate != result.value.estimate * _UNIT:
            wrong.append(f"value {result.value.estimate:.4g}, in another unit {again.value.estimate / _UNIT:.4g}")
    return wrong


def in_another_unit(log: Log, unit: float) -> Log:
    """Return the log with values times `unit`."""
    value = log.conversions["value"].to_numpy() * unit
    bound = log.meta.reward_max
    scaled = replace(log, events=log.conversions.set_column(2, "value", pa.array(value)))
    return scaled.with_meta(reward_max=None if bound is None else bound * unit)


def _findings(log: Log) -> tuple[str, ...]:
    try:
        found = check(log).checks
    except EvaluatorError as error:
        return (str(error),)
    return tuple(f"{f.name}: {f.number} {f.what} {f.remedy}" for f in found if f.verdict in ("warn", "fail"))


def _column(result: ReplayResult, name: str) -> Any:
    return result.trajectory[name].to_numpy()


def live_difference(kind: Kind, verdicts: Sequence[Verdict], runs: int) -> tuple[float, float]:
    """Return how much more the replays of a kind's `live` policy earn than it earns live, and the standard error."""
    return off_live(kind, verdicts, [live_value(kind, run) for run in range(runs)])


def live_value(kind: Kind, run: int) -> float:
    """Return what the kind's `live` policy earns in one live run."""
    return play_live(
        kind.untidy, kind.live, rounds=kind.options["horizon"], seed=10_000 + run,
        window_s=None if kind.window_s is None else float(kind.window_s),
    )[0]  # fmt: skip


def off_live(kind: Kind, verdicts: Sequence[Verdict], values: Sequence[float]) -> tuple[float, float]:
    """Return the same from what it earned in live runs."""
    replayed = np.array([v.realised for v in verdicts if v.policy == kind.live and v.outcome != "refused"])
    live = np.array(values)
    error = np.sqrt(replayed.var(ddof=1) / len(replayed) + live.var(ddof=1) / len(live))
    return float(replayed.mean() - live.mean()), float(error)
