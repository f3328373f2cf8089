"""Several policies and windows on one log, replayed in one scan of it, and compared at one horizon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from evaluator.checks.options import CheckOptions
from evaluator.checks.run import check_log
from evaluator.comparisons.conditions import TO_CHECK, find_verdict, with_checks
from evaluator.comparisons.differences import (
    Difference,
    find_differences,
    honest_difference,
    plausible_differences,
    to_event,
    to_widest_window,
)
from evaluator.comparisons.expected import at_horizon, expected_difference, reward_cut, why_not_expected
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.rule import ANY_UPLIFT, Look, ShipRule
from evaluator.comparisons.segment_differences import harmed_groups, segment_differences
from evaluator.comparisons.variant_runs import VariantRuns
from evaluator.comparisons.variants import (
    CommonHorizon,
    FirstRounds,
    Variants,
    asked_horizon,
    assumed_by,
    cases_of,
    common_horizon,
    comparable,
    draw_curve,
    first_rounds,
    learns_words,
    names_of,
    pairs_of,
    teachers_of,
)
from evaluator.comparisons.verdict import rank, ranked_pairs
from evaluator.errors import NoRoundsError, ParameterError, nearest
from evaluator.findings.codes import COMMON_HORIZON, LINE_LEFT_OUT, SAME_ROUNDS, ordered
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.options.deployment import deployment_of
from evaluator.policies.registry import as_known
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.support import rarest_warning
from evaluator.replays.values.kind_values import kind_values
from evaluator.replays.values.resampled import ResampledValues


def plan_comparison(
    log: Log,
    policies: Sequence[Any],
    windows: Sequence[str | int | None],
    options: ReplayOptions,
    *,
    schedules: Sequence[str | int | None] | None = None,
) -> list[ReplayPlan]:
    """Plan every policy with every window, schedule and teacher: `options.learn_from` names these, by commas.

    All share the other options; their window is not used.

    ParameterError if there is nothing to compare, or two variants are the same.
    """
    cases = cases_of(windows, schedules, options)
    variants = pairs_of(policies, cases)
    names = [(policy.spec, *case) for policy, case in variants]
    if not variants:
        raise ParameterError(
            "Nothing to compare.",
            remedy="name a `policy` or several, such as otflinucb and delayed-klucb, or a `study`.",
        )
    for name, times in Counter(names).items():
        if times > 1:
            how = "without a window" if name[1] is None else f"with window {name[1]}"
            how += "" if name[2] is None else f"{learns_words(str(name[2]))},"
            how += f", told {name[3]}," if len(teachers_of(options.learn_from)) > 1 else ""
            raise ParameterError(f"{name[0]} {how} is there twice.", remedy="name each variant once.")
    asked = Variants(log, policies, cases, options)
    return [asked.plan(number) for number in range(len(asked))]


def with_logging(log: Log, policies: Sequence[Any], baseline: str | None) -> list[Any]:
    """Return the policies of a comparison, and last the logging policy, if it is the baseline and not among them.

    It is the baseline where none is named: what earns more than it is worth a rollout. Not of a log that kept the
    displays of some actions by their context: the logging policy is known where it showed one of these, and the others
    are valued on the traffic.
    """
    logging = LoggingPolicy()
    asked = baseline == logging.spec or (baseline is None and log.meta.kept_share == 1.0)
    if not asked or not policies or any(isinstance(policy, LoggingPolicy) for policy in policies):
        return list(policies)
    return [*policies, logging]


def find_baseline(plans: Sequence[ReplayPlan], spec: str | None) -> int:
    """Return the number of the first variant of the policy with this spec, or raise ParameterError.

    For None it is the first of the logging policy, or without one the first of all.
    """
    specs = [plan.policy.spec for plan in plans]
    if spec is None:
        known = (i for i, plan in enumerate(plans) if plan.sampler == "logged" and plan.propensities.kept_share == 1.0)
        return next(known, 0)
    spec = spec if spec in specs else as_known(spec)
    if spec not in specs:
        raise ParameterError(f"`baseline='{spec}'` is none of the policies compared.", remedy=nearest(spec, specs))
    return specs.index(spec)


def execute_comparison(
    plans: Sequence[ReplayPlan],
    *,
    baseline: int = 0,
    rule: ShipRule | None = None,
    look: Look | None = None,
    log: Log | None = None,
    runs: VariantRuns | None = None,
    advance: Callable[[int], None] = lambda displays: None,
    show_first: Callable[[Sequence[ReplayResult]], None] = lambda results: None,
) -> Comparison:
    """Replay all variants, in as few scans of their log as memory allows, and compare them with the `baseline`.

    `rule` is the one by which a variant ships, None for any uplift; `look` the planned look that the verdict is, None
    for one alone. `log` is the one that was read, before costs were taken off its rewards, to be checked; None for that
    of the plans. `runs` says what of the replays is there, who computes the rest, and where it is kept; None for all of
    them, in this process. `advance` is called with the number of displays read since the last call: of the replays
    (`VariantRuns.totals`), then of all that are checked. `show_first` is that of `VariantRuns.run`.
    """
    runs = VariantRuns(plans) if runs is None else runs
    results = runs.run(advance, show_first)
    return compare_results(
        plans, results, baseline=baseline, rule=rule, look=look, log=log, resampled=runs.compared, advance=advance
    )


def compare_results(
    plans: Sequence[ReplayPlan],
    results: Sequence[ReplayResult],
    *,
    baseline: int = 0,
    rule: ShipRule | None = None,
    look: Look | None = None,
    log: Log | None = None,
    resampled: Mapping[int, ResampledValues] = MappingProxyType({}),
    advance: Callable[[int], None] = lambda displays: None,
) -> Comparison:
    """Compare finished replays of one log at their common horizon; check the log where a number decides.

    Parameters are those of `execute_comparison`, the results of the plans, and what resampled logs say of them after
    the rounds of the common horizon (`VariantRuns.compared`). NoRoundsError if none of the replays has a round.
    """
    if not any(result.rounds for result in results):
        several = f"None of {len(results)} variants lived a round. The first: " if len(results) > 1 else ""
        raise NoRoundsError(f"{several}{results[0].warnings[0]}")
    options = plans[0].options
    horizon = common_horizon(plans, results)
    compared = set(comparable(results))
    lived = [
        first_rounds(plan, result, horizon.rounds if i in compared else 0)
        for i, (plan, result) in enumerate(zip(plans, results, strict=True))
    ]
    curves = [draw_curve(*variant) for variant in zip(plans, results, lived, strict=True)]
    costs, of_schedules = to_widest_window(plans), to_event(plans)
    others = [i for i in range(len(plans)) if i != baseline]
    asked = [*ranked_pairs(len(plans), baseline), *((min(pair), max(pair)) for pair in (*costs, *of_schedules))]
    whole = [
        first_rounds(plan, result, result.rounds) if plan.sampler == "logged" and options.reward == "eventual" else own
        for plan, result, own in zip(plans, results, lived, strict=True)
    ]
    realised = find_differences(plans, whole, asked, rounds=horizon.rounds, fixed=horizon.fixed, jobs=options.jobs)
    unbounded = next((plan for plan in plans if not plan.bounded), plans[0])
    at = [
        at_horizon(plan, result, horizon.rounds, resampled.get(i)) if i in compared else result
        for i, (plan, result) in enumerate(zip(plans, results, strict=True))
    ]
    found = {
        pair: honest_difference(unbounded, of if of.realised is None else _with_expected(of, plans, at))
        for pair, of in realised.differences.items()
    }
    realised = realised._replace(differences=found)
    judged = [_judged_together(plan, result, len(plans)) for plan, result in zip(plans, results, strict=True)]

    values = [float(curve.value.estimate[-1]) if len(curve.rounds) else np.nan for curve in curves]
    plausible = plausible_differences(
        plans, whole, baseline, weighted=realised.weighted, rounds=horizon.rounds, fixed=horizon.fixed
    )
    segments = segment_differences(
        plans, whole, baseline=baseline, rounds=horizon.rounds, fixed=horizon.fixed, look=look
    )
    verdict = find_verdict(
        plans, judged, realised, at=at, baseline=baseline, horizon=horizon, rule=rule or ANY_UPLIFT,
        plausible=plausible, look=look, harmed=harmed_groups(segments, plans),
    )  # fmt: skip
    check = None
    if verdict is not None and any(TO_CHECK in of.conditions for of in verdict.candidates):
        how = CheckOptions(propensity=options.propensity, cluster_by=options.cluster_by)
        checked = plans[0].log if log is None else log
        checked = checked.with_meta(deployment=deployment_of(vars(options), checked.meta.deployment).options)
        check = check_log(checked, how, advance)
        verdict = with_checks(verdict, check.to_dict())
    return Comparison(
        results=tuple(judged),
        horizon=horizon,
        baseline=baseline,
        differences=tuple(realised.between(i, baseline) for i in others),
        ranking=rank(
            values,
            [reward_cut(plan) for plan in plans],
            found,
            baseline,
            level=options.level,
            rests_on=unbounded.rewards.ends_seen,
        ),
        window_costs=tuple(realised.between(*pair) for pair in costs),
        schedule_costs=tuple(realised.between(*pair) for pair in of_schedules),
        curves=tuple(curves),
        assumed=tuple(assumed_by(plan) for plan in plans),
        findings=ordered(_findings(plans, results, lived, horizon)),
        segments=segments,
        verdict=verdict,
        check=check,
    )


def _judged_together(plan: ReplayPlan, result: ReplayResult, variants: int) -> ReplayResult:
    """Return a result of a comparison with answers to guardrails that are adjusted for its number of variants, too."""
    if not plan.options.guardrails:
        return result
    repeat, display = (to_numpy(result.trajectory[name]) for name in ("repeat", "display_id"))
    displays = np.split(display - plan.before, np.searchsorted(repeat, np.arange(1, plan.options.repeats)))
    return replace(result, guardrails=kind_values(plan, displays, variants=variants)[1])


def _findings(
    plans: Sequence[ReplayPlan], results: Sequence[ReplayResult], lived: Sequence[FirstRounds], horizon: CommonHorizon
) -> list[Finding]:
    said, names = [], names_of(results)
    for same in _same_rounds(plans, lived):
        told = max(results[i].delivered for i in same)
        said.append(
            SAME_ROUNDS.found(
                f"{', '.join(names[i] for i in same)} showed the same displays in all {horizon.rounds:,} rounds: "
                f"what tells them apart never mattered ({told:,} conversions delivered), so their equal values say "
                "nothing about which is better.",
                delivered=told,
            )
        )
    left = [names[i] for i, own in enumerate(lived) if not len(own.displays[0])]
    if left:
        said.append(
            LINE_LEFT_OUT.found(
                f"{', '.join(left)} chose an action that cannot be replayed, or lived no round: compared with no other."
            )
        )
    if not horizon.fixed:
        why = f"Compared after {horizon.rounds:,} rounds: {horizon.why}."
        said.append(COMMON_HORIZON.found(why, rounds=horizon.rounds))
    keeping = [plan for plan in plans if plan.sampler == "keep"]
    if keeping and asked_horizon(plans) is None:
        said += rarest_warning(keeping[0])
    return said


def _same_rounds(plans: Sequence[ReplayPlan], lived: Sequence[FirstRounds]) -> list[list[int]]:
    """Return the groups of two or more variants whose policies learn and nevertheless showed the same displays."""
    groups: dict[bytes, list[int]] = {}
    for i, (plan, own) in enumerate(zip(plans, lived, strict=True)):
        if plan.policy.learns and len(own.displays[0]):
            groups.setdefault(b"".join(of.tobytes() for of in own.displays), []).append(i)
    return [same for same in groups.values() if len(same) > 1]


def _with_expected(of: Difference, plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> Difference:
    both = of.variant, of.reference
    if not all(results[i].resampled for i in both):
        return of
    if why := why_not_expected([plans[i] for i in both], [results[i] for i in both]):
        return replace(of, why_not_expected=why)
    expected = expected_difference(results[of.variant], results[of.reference])
    return replace(of, expected=expected.interval, expected_p=expected.p, why_not_expected=expected.why_not)
