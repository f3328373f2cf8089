"""How often a verdict ships what is no better than was asked: ``python -m tests.bench.verdicts``.

On each log the rule asks for just the difference that is true, so that whoever ships is wrong: ``uplift > D``. D is
known display by display for policies that do not learn. For those that do, rates are made the same for all actions, so
that no policy earns more than another, and D is 0 (``--learning``); or D is what they earn more on average over other
logs of the kind, which replays give without bias (``--apart``). ``--per-cent`` states rules in per cent of what the
baseline earns, for policies that do not learn. Logs of all kinds of `tests.untidy`; what cannot be
read, or not be replayed, is refused and ships nothing. ``--beyond 0.1`` asks for so much less than is true: how often
it ships then. ``--clear 6`` asks for six standard errors of the deciding estimate less: clear winners, which should
ship; ``--clear -6`` for as much more: clear losers. With it the table names what stood in the way, and how often.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import ndtri

from evaluator import compare
from evaluator.errors import EvaluatorError
from evaluator.log import Log
from tests.bench.spread import Spread, add_options, spread_by
from tests.untidy.defects import rows_of
from tests.untidy.kinds import DECIDED, KINDS, Kind
from tests.untidy.settings import Untidy
from tests.untidy.traffic import Traffic, draw_traffic
from tests.untidy.truth import expected_rewards, value_of_fixed, value_of_preferred, value_of_random
from tests.untidy.writing import as_log

# (baseline, candidate), none of which learns.
STEADY = (("random", "fixed:action=2"), ("fixed:action=2", "random"), ("fixed:action=0", "fixed:action=1"))
LEARNING, APART = ("random", "ucb1", "klucb"), ("random", "ucb1")
OUTCOMES = ("ship", "wait", "don't", "refused")
# Rounds after which policies that learn are compared, where what they earn in so many is to be known.
HORIZON = 500


def steady(kind: Kind, seed: int, *, beyond: float = 0.0, per_cent: bool = False, clear: float = 0.0) -> Iterator[str]:
    """Yield the decision on each pair of `STEADY` by a rule that asks for its true difference less `beyond`.

    In reward per round, or in per cent of what the baseline earns; and `clear` standard errors less.
    """
    try:
        traffic, log, of = _drawn(kind.untidy, seed)
    except EvaluatorError:
        yield from ["refused"] * len(STEADY)
        return
    for base, candidate in STEADY:
        value = _value(traffic, kind, base, of)
        asked = _value(traffic, kind, candidate, of) - value - beyond
        asked -= clear and clear * _error(log, (base, candidate), kind, seed=seed, **kind.options)
        limit = f"{100 * asked / value:.10f}%" if per_cent else f"{asked:.12f}"
        yield _decision(log, (base, candidate), kind, seed=seed, ship_if=f"uplift > {limit}", **kind.options)


@lru_cache(maxsize=64)
def _drawn(untidy: Untidy, seed: int) -> tuple[Traffic, Log, np.ndarray]:
    """Return traffic, its log, and the display of the traffic that each row of the log is: one object a log."""
    traffic = draw_traffic(untidy, seed)
    return (traffic, *as_log(traffic, rows_of(traffic, seed)))


def learning(kind: Kind, seed: int, *, jobs: int = 2) -> str:
    """Return the decision on policies that learn, on a log whose actions all earn the same, as it is by default."""
    k = kind.untidy.n_actions
    worth = None if kind.untidy.mean_values is None else (20.0,) * k
    same = replace(kind.untidy, means=(0.4,) * k, mean_values=worth)
    traffic = draw_traffic(same, seed)
    try:
        log, _ = as_log(traffic, rows_of(traffic, seed))
    except EvaluatorError:
        return "refused"
    return _decision(log, LEARNING, kind, seed=seed, ship_if="uplift > 0", jobs=jobs)


def earned_more(name: str, seed: int) -> float:
    """Return what a policy that learns earned more than random on one log of a kind."""
    kind = KINDS[name]
    traffic = draw_traffic(kind.untidy, seed)
    log, _ = as_log(traffic, rows_of(traffic, seed))
    asked: dict[str, Any] = {"windows": [kind.window], "horizon": HORIZON, "bootstrap": 0, "seed": seed}
    results = compare(log, list(APART), baseline=APART[0], **asked).results
    return results[1].value.estimate - results[0].value.estimate


def apart(name: str, more: float, clear: float, seed: int) -> tuple[str, ...]:
    """Return the decision on it, by a rule that asks for what it earns more on average, less `clear` s.e."""
    kind = KINDS[name]
    traffic = draw_traffic(kind.untidy, seed)
    log, _ = as_log(traffic, rows_of(traffic, seed))
    asked: dict[str, Any] = {"seed": seed, "horizon": HORIZON}
    more -= clear and clear * _error(log, APART, kind, **asked)
    return (_decision(log, APART, kind, ship_if=f"uplift > {more:.12f}", **asked),)


def decisions_apart(
    by: Spread, names: Sequence[str], seeds: range, *, clear: float = 0.0
) -> Iterator[list[tuple[str, ...]]]:
    """Yield the decisions on the logs of each kind.

    D is the mean over ten times as many other logs, so that its own error adds a twentieth to that of a difference.
    """
    others = range(seeds.stop, seeds.stop + 10 * len(seeds))
    more = by.rows(earned_more, [((name,), others) for name in names])
    means = [float(np.mean(found)) for found in more]
    return by.rows(apart, [((name, mean, clear), seeds) for name, mean in zip(names, means, strict=True)])


def decided_steady(name: str, beyond: float, per_cent: bool, clear: float, seed: int) -> tuple[str, ...]:
    return tuple(steady(DECIDED[name], seed, beyond=beyond, per_cent=per_cent, clear=clear))


def decided_learning(name: str, seed: int) -> tuple[str, ...]:
    return (learning(DECIDED[name], seed, jobs=1),)


def _decision(log: object, policies: tuple[str, ...], kind: Kind, **asked: object) -> str:
    """Return the decision, and after a colon what stands in its way."""
    try:
        found = compare(log, list(policies), baseline=policies[0], windows=[kind.window], **asked)  # type: ignore[arg-type]
    except EvaluatorError as error:
        return f"refused: {type(error).__name__}"
    assert found.verdict is not None
    of = found.verdict.candidates[0]
    in_its_way = "; ".join(re.sub(r"[\d.,]+%?", "#", one.what) for one in of.limits)
    return f"{of.decision}: {in_its_way}" if in_its_way else of.decision


def _error(log: object, policies: tuple[str, ...], kind: Kind, **asked: object) -> float:
    """Return the standard error of the estimate that decides, by its interval; 0 where there is none."""
    try:
        found = compare(log, list(policies), baseline=policies[0], windows=[kind.window], **asked)  # type: ignore[arg-type]
    except EvaluatorError:
        return 0.0
    of = found.verdict and found.verdict.candidates[0].difference
    return 0.0 if of is None else float((of.high - of.low) / 2.0 / ndtri(0.5 + of.level / 2.0))


def _value(traffic: Traffic, kind: Kind, policy: str, of: np.ndarray) -> float:
    window = None if kind.window_s is None else float(kind.window_s)
    always = policy != "random"
    expected = expected_rewards(traffic, window_s=window, shown=1.0 if always else 1.0 / traffic.untidy.n_actions)
    if always and traffic.untidy.sets:
        return value_of_preferred(traffic, expected, of, int(policy.partition("=")[2]))
    return (
        value_of_fixed(expected, of, int(policy.partition("=")[2]))
        if always
        else value_of_random(traffic, expected, of)
    )


# Kinds whose actions earn the same where their rates are the same: no contexts, launches, or delays by action.
ALIKE = (
    "tidy", "tidy, uneven logger", "daily rhythm", "growth", "drift of the rates", "ties by minute, sorted by action",
    "revenue", "heavy revenue", "refunds", "sample of the traffic", "heavy tails", "copied displays", "outage",
    "rhythm, growth, drift",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.verdicts", description=__doc__)
    parser.add_argument("kinds", nargs="*", help="all by default, or those whose actions can earn alike")
    parser.add_argument("--logs", type=int, default=100, help="of each kind")
    parser.add_argument("--learning", action="store_true", help="policies that learn, on logs whose actions earn alike")
    parser.add_argument("--apart", action="store_true", help="policies that learn, on logs whose actions differ")
    parser.add_argument("--beyond", type=float, default=0.0, help="how much better than the rule asks for")
    parser.add_argument("--clear", type=float, default=0.0, help="how many standard errors better than it asks for")
    parser.add_argument("--per-cent", action="store_true", help="by a rule in per cent of what the baseline earns")
    add_options(parser)
    asked = parser.parse_args()
    print("| kind | verdicts | ship | wait | don't | refused |" + " most often in the way |" * bool(asked.clear))
    print("|---|---|---|---|---|---|" + "---|" * bool(asked.clear))
    names, seeds = asked.kinds or list(ALIKE if asked.learning else DECIDED), range(7_000, 7_000 + asked.logs)
    with spread_by(asked) as by:
        if asked.apart:
            rows = decisions_apart(by, names, seeds, clear=asked.clear)
        elif asked.learning:
            rows = by.rows(decided_learning, [((name,), seeds) for name in names])
        else:
            rows = by.rows(
                decided_steady, [((name, asked.beyond, asked.per_cent, asked.clear), seeds) for name in names]
            )
        for name, of_logs in zip(names, rows, strict=True):
            found = list(chain.from_iterable(of_logs))
            shares = [np.mean([one.startswith(outcome) for one in found]) for outcome in OUTCOMES]
            why = Counter(one.partition(": ")[2] for one in found if not one.startswith("ship"))
            most = "; or ".join(f"{what} ({times})" for what, times in why.most_common(2))
            cells = [name, str(len(found)), *(f"{share:.1%}" for share in shares), *([most] if asked.clear else [])]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
