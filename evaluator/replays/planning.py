"""How a replay is planned: from a log, a policy and options to every choice of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.log_replay import Explores, SamplerName, choose_sampler, sure_rounds
from evaluator.errors import DataError, ParameterError, PropensityError, UnknownNameError
from evaluator.findings.codes import ordered
from evaluator.log import Log
from evaluator.log.column import Column, read_clusters, read_groups
from evaluator.log.log_tables import REFUNDS
from evaluator.log.reward_kinds import (
    CapLoss,
    cost_events,
    events_of,
    events_that_teach,
    has_costs,
    may_be_below_0,
    name_kind,
    refuse_counted,
    with_bounds,
    with_cap,
    with_rewards,
)
from evaluator.log.vectors_of_displays import in_order
from evaluator.options.deployment import OBJECTIVE, SCHEDULED, Deployment, deployment_of
from evaluator.options.shared import PropensityMode
from evaluator.policies.base import Need, Policy, Setting
from evaluator.policies.registry import POLICIES, resolve
from evaluator.policies.running import refuse_choosing_among
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.findings.plan import assumptions, check_clusters, describe_clusters, warn_of_kind, warnings
from evaluator.replays.kept_units import Units, by_unit, kept_rounds, read_units, refuse_unkept
from evaluator.replays.learned.policy import LearnedPolicy, displays_of
from evaluator.replays.options import (
    Guardrail,
    ObjectiveName,
    ReplayOptions,
    held_out,
    known_share,
    parse_guardrails,
)
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.clock import (
    KnownDelays,
    ReplayClock,
    ReplayWindow,
    SeenDelays,
    even_conversions,
    known_delays,
    resolve_window,
    seen_delays,
    start_clock,
    steps_of,
    told_delays,
)
from evaluator.replays.rounds.maturity import Maturity, correct_by, judge_maturity
from evaluator.replays.rounds.propensity import (
    Propensities,
    Thinning,
    display_weights,
    frequencies,
    how_it_chose,
    logger_thinning,
    resolve_propensities,
    thinning,
)
from evaluator.replays.rounds.reward_range import RewardRange, reward_range
from evaluator.replays.rounds.stream import EligibleSets, LogRounds, read_sets, told_events, vectors_of
from evaluator.replays.rounds.survey import Survey, survey, surveys
from evaluator.replays.schedule import live_delays, plan_pushes, rounds_of
from evaluator.replays.support import least_acceptance
from evaluator.replays.warm_start import WarmStart, warm_start
from evaluator.units import ticks_words


@dataclass(frozen=True, eq=False)
class _Pace:
    """How a replay would read a log: its sampler, what this thins by, its clock and its window."""

    survey: Survey
    sampler: SamplerName
    of_sampler: Propensities
    quantile: float
    acceptance: float
    clock: ReplayClock
    window: ReplayWindow


def _pace(
    basis: Basis,
    survey: Survey,
    propensities: Propensities,
    policy: Any,
    options: ReplayOptions,
    start: WarmStart | None,
) -> _Pace:
    log = survey.log
    sampler = _sampler(survey, policy, options, propensities, basis.sets, kept=basis.units is not None)
    # The logger's own rounds are thinned by nothing but the displays' weights, so nothing of theirs is clipped either.
    of_sampler = display_weights(log) if sampler == "logged" else propensities
    quantile = 0.0 if sampler == "logged" else options.accept_quantile
    acceptance = of_sampler.quantile(log, quantile)
    if sampler == "logged" and of_sampler.rule is None:
        acceptance = 1.0
    clock = start_clock(survey, options.clock, traffic_share=options.traffic_share, acceptance=acceptance)
    window = resolve_window(options.window, clock, survey)
    window = window if start is None else start.window(window)
    return _Pace(survey, sampler, of_sampler, quantile, acceptance, clock, window)


def plan_replay(log: Log | Basis, policy: Any, options: ReplayOptions) -> ReplayPlan:
    """Make every choice of a replay, on a log or on what was read of it for several.

    Raises
    ------
    PropensityError
        The sampler or the clock needs propensities and the log has none; names the choices.
    ParameterError
        An option does not fit the log or the policy.
    """
    meta = log.meta if isinstance(log, Log) else log.survey.log.meta
    deployment = deployment_of(vars(options), meta.deployment)
    options = replace(options, **deployment.options)
    begins = options.warm_start is not None or isinstance(policy, LearnedPolicy)
    start = warm_start(policy, options) if begins else None
    if start is not None:
        policy, options = start.learned.policy, start.asked(options)
        log = in_order(log, start.learned.labels) if isinstance(log, Log) else log
    basis = read_basis(log, options) if isinstance(log, Log) else log
    surveyed, log = basis.survey, basis.survey.log
    policy = policy.on_actions(log.labels) if isinstance(policy, Policy) else policy
    refuse_on_parts(log, basis.propensities, options)
    if basis.sets is not None:
        refuse_on_sets(log, policy, options)
    units = None if isinstance(policy, LoggingPolicy) else basis.units
    if units is not None:
        refuse_on_units(basis, units, options, begins=start is not None)
    whole = _pace(basis, surveyed, basis.propensities, policy, options, start)
    maturity = judge_maturity(surveyed, whole.window, whole.clock, options.immature)
    teacher, known = surveyed, basis.known
    if options.teacher is not None:
        teacher, known = basis.teacher(options.teacher)
    if options.teacher is not None and not policy.learns:  # nothing teaches it
        teacher, known, options = surveyed, basis.known, replace(options, learn_from=OBJECTIVE)
    if teacher is not surveyed:
        maturity = _taught(maturity, judge_maturity(teacher, whole.window, whole.clock, "drop"))
    used, told, known_to_teach = maturity.used, whole, teacher
    if options.final is not None:
        # Displays that are left out teach nothing: whatever is fitted, is to what was known when they began.
        used -= held_out(used, options.final)
        told = _pace(basis, *basis.until(used, options.propensity), policy, options, start)
        known_to_teach = told.survey if teacher is surveyed else survey(teacher.log.until(used))
    clock, window, sampler, of_sampler = told.clock, told.window, told.sampler, told.of_sampler
    delays = of_log = _seen(surveyed, clock, window, options.seed)
    rewards = known_rewards = reward_range(surveyed, used)
    if known_to_teach is not surveyed:
        delays = _seen(known_to_teach, clock, window, options.seed)
        known_rewards = reward_range(known_to_teach, used)
    vectors = vectors_of(log, policy=policy.name, reads=policy.reads) if policy.contextual else None
    made_by = deployment.named("keep_for") if options.cluster_by is None else f"`cluster_by={options.cluster_by!r}`"
    check_clusters(basis.clusters, maturity.used, made_by)
    costs = cost_events(log.conversions)
    told_costs = costs is not None and options.learn_from == OBJECTIVE
    of_all = rewards if teacher is surveyed else known_rewards
    refuse_untold(policy, of_all.told(costs=told_costs), told_costs=told_costs)
    known_rewards = known_rewards.told(costs=told_costs)
    usable = surveyed.shown_first(used)
    playable = None if basis.sets is None or sampler == "logged" else usable > 0
    rounds = LogRounds(log, used, vectors, window.revealed(surveyed, clock), playable=playable)
    if clock.kind != "wall" and of_sampler.rule is not None and usable.any():
        # Extremes of actions whose displays are not used decide no c; the wall clock's share was fixed before.
        smallest, largest = (np.where(usable > 0, of, np.nan) for of in (of_sampler.smallest, of_sampler.largest))
        of_sampler = replace(of_sampler, smallest=smallest, largest=largest)
    matched = thinning(told.survey.log, of_sampler, per_action=sampler in ("keep", "queue"), quantile=told.quantile)
    asked = int(usable.sum()) if units is None else int(np.searchsorted(units.first, used))
    horizon = _horizon(surveyed, policy, options, sampler, matched, usable, asked)
    setting = Setting(
        n_actions=log.n_actions,
        dimension=rounds.dimension,
        rows=rounds.rows,
        window=window.rounds,
        horizon=horizon,
        delay_cdf=told_delays(
            delays if known is None else known.on(clock, window), delays=options.delays, horizon=horizon
        ),
        reward_max=known_rewards.most,
        reward_min=known_rewards.least,
        playable=None if playable is None else int(playable.sum()),
    )
    learns = policy.learns and sampler != "logged"
    deployment = deployment if learns else replace(deployment, schedule=None, exploration=None)
    if options.reward == "observed" and deployment.schedule is not None:
        raise ParameterError(
            f"`reward='observed'` excludes {deployment.named(*SCHEDULED)}: what is observed by the horizon is told at "
            "each event.",
            remedy="use `reward='eventual'`, or `learn_every='event'` without a lag.",
        )
    pushes = plan_pushes(deployment, teacher, clock, window, horizon)
    explores, as_logger = _explores(log, deployment, options, surveyed, clock, sampler, matched, usable)
    waits = (0 if pushes is None else pushes.waits(horizon)) + (0 if explores is None else explores.rounds)
    waits += 0 if units is None else horizon
    kept = None
    if units is not None:
        kept = kept_rounds(log, units, clock, None if pushes is None else pushes.clock)
    setting = replace(setting, waits=waits)
    on_live_clock = pushes is not None and pushes.clock is not None
    rows = _told(surveyed, costs=told_costs) if teacher is surveyed else None
    if teacher is not surveyed or rows is not None or on_live_clock:
        delay = live_delays(teacher, window) if on_live_clock else window.revealed(teacher, clock)
        rounds = replace(rounds, told=told_events(teacher, rows, delay))
    if start is not None:
        before = 0 if basis.known is None else basis.known.displays
        start.refuse_same(displays_of(log, before, used, window, options.taught_by))
        start = start.fitted(log, vectors, setting, options)
        setting = start.learned.setting
    plan = ReplayPlan(
        survey=surveyed,
        policy=policy,
        options=options,
        clock=clock,
        window=window,
        propensities=basis.propensities,
        maturity=maturity,
        sampler=sampler,
        matched=matched,
        by_action=thinning(log, basis.propensities, per_action=True),
        rounds=rounds,
        setting=setting,
        rewards=rewards,
        cdf=of_log.cdf,
        tau_window=of_log.share,
        delay_steps=steps_of(of_log.in_unit_of_window),
        known=known,
        teacher=teacher,
        told=known_to_teach,
        findings=(),
        clusters=basis.clusters,
        splits=basis.splits,
        capped=basis.capped,
        start=start,
        sets=basis.sets,
        deployment=deployment,
        pushes=pushes,
        explores=explores,
        as_logger=as_logger,
        kept=kept,
    )
    said = (
        *warnings(plan, told.acceptance, of_all), *describe_clusters(plan), *assumptions(plan, known_rewards)
    )  # fmt: skip
    return with_outcomes(replace(plan, findings=ordered(said)), basis.outcomes)


def _taught(of_rewards: Maturity, of_events: Maturity) -> Maturity:
    """Return which displays are used where both their rewards and the events that teach were followed long enough."""
    return replace(
        of_rewards,
        used=min(of_rewards.used, of_events.used),
        immature=max(of_rewards.immature, of_events.immature),
        known=of_rewards.known and of_events.known,
    )


def _told(survey: Survey, *, costs: bool) -> npt.NDArray[np.bool_] | None:
    """Return which events that count as rewards a policy is told of, shape (c,); None where it is of all."""
    untold = [kind.marked(len(survey.display)) for kind in survey.kinds if not kind.told]
    of_costs = cost_events(survey.log.conversions)
    untold += [] if of_costs is None or costs else [of_costs]
    return ~np.any(untold, axis=0) if untold else None


def _seen(survey: Survey, clock: ReplayClock, window: ReplayWindow, seed: int) -> SeenDelays:
    """Return the delays that an even sample of the displays shows, the same for all plans that ask for the same."""
    return survey.once(
        ("seen", clock, window, seed),
        lambda: seen_delays(survey, clock, window, even_conversions(survey.log, survey.display, seed)),
    )


def _horizon(
    survey: Survey,
    policy: Any,
    options: ReplayOptions,
    sampler: SamplerName,
    matched: Thinning,
    usable: npt.NDArray[np.int64],
    asked: int,
) -> int:
    """Return the largest number of rounds, of a policy that is asked at so many displays.

    A policy that needs the horizon is told one that it reaches: with the number of displays, K times as many, it would
    be another policy than the one that goes live for so many rounds.
    """
    displays = int(usable.sum())
    if options.horizon is not None:
        return min(options.horizon, displays)
    if Need.HORIZON in policy.needs and sampler in ("rejection", "keep"):
        return max(sure_rounds(asked, least_acceptance(matched, usable)), 1)
    return displays


def _sampler(
    survey: Survey,
    policy: Any,
    options: ReplayOptions,
    propensities: Propensities,
    sets: EligibleSets | None,
    *,
    kept: bool,
) -> SamplerName:
    requested = options.sampler
    # Keep is biased where a choice has to wait until it is eligible, or is given up for a unit.
    if (sets is not None or kept) and requested is None:
        requested = "rejection"
    if (options.clock == "wall" or options.doubly_robust) and requested is None and not policy.contextual:
        requested = "rejection"  # the only sampler whose acceptance rate is known beforehand, whatever is chosen
    sampler = choose_sampler(policy, requested, even=propensities.even, known=propensities.rule is not None)
    if propensities.rule is None and (sampler == "rejection" or (options.clock == "wall" and sampler != "logged")):
        raise PropensityError(
            f"Log {survey.log.meta.name!r} has no propensities, and the {sampler} sampler needs them"
            + (f" because {policy.name} reads contexts." if policy.contextual else "."),
            remedy=how_it_chose(survey.log),
        )
    if options.doubly_robust and sampler not in ("rejection", "logged"):
        raise ParameterError(
            f"`doubly_robust` needs displays that are read in order and accepted alike, unlike `sampler='{sampler}'`.",
            remedy="use `sampler='rejection'`.",
        )
    if options.final is not None and propensities.rule is None and sampler != "logged":
        raise PropensityError(
            f"`final` weighs displays by their propensities, and log {survey.log.meta.name!r} has none.",
            remedy=how_it_chose(survey.log),
        )
    if options.clock == "wall" and sampler in ("keep", "queue"):
        raise PropensityError("`clock='wall'` needs a known acceptance rate.", remedy="use `sampler='rejection'`.")
    return sampler


# The plan of a kind of events is that of the replay with these events in the place of the conversions. It is never
# replayed: the rounds are those of the policy, whatever it saw. From it follow which rounds can be judged, what they
# brought, and how much they can at most, by the same rules as for rewards.


def with_outcomes(plan: ReplayPlan, surveys: Mapping[str, Survey]) -> ReplayPlan:
    """Return a plan that values outcomes, and other kinds that guardrails limit, too, and warns where that is hard.

    `surveys` holds, by the name of each such kind, the survey of the log whose conversions are its events.
    """
    plans, outcomes = {name: _valued(plan, survey) for name, survey in surveys.items()}, plan.log.meta.outcomes
    said = [
        line
        for name, of in plans.items()
        for line in warn_of_kind(name, of, outcome=any(one.name == name for one in outcomes))
    ]
    return replace(plan, outcomes=plans, findings=ordered((*plan.findings, *said)))


def _valued(plan: ReplayPlan, survey: Survey) -> ReplayPlan:
    # What was seen by the horizon is what a policy was told by then, and it is told no events of outcomes.
    options = replace(plan.options, reward="eventual")
    maturity = _maturity(plan, survey)
    used = min(plan.rounds.used, maturity.used)
    delay = plan.window.revealed(survey, plan.clock)
    return replace(
        plan, survey=survey, options=options, maturity=maturity, rounds=LogRounds(survey.log, used, None, delay),
        rewards=reward_range(survey, used), capped=None, outcomes={}, findings=(),
    )  # fmt: skip


def _maturity(plan: ReplayPlan, survey: Survey) -> Maturity:
    """Return which displays can be judged by the events: none, where none was followed for long enough."""
    for rule in dict.fromkeys((plan.options.immature, "drop")):
        try:
            return judge_maturity(survey, plan.window, plan.clock, rule)
        except DataError:  # nothing to fit delays to; or no display was followed for long enough
            continue
    return Maturity(0, len(survey.log), None, True)


def refuse_on_sets(log: Log, policy: Any, options: ReplayOptions) -> None:
    """Raise ParameterError where a policy or an option cannot deal with displays that differ in what is eligible."""
    if isinstance(policy, LoggingPolicy):
        return
    where = f"the displays of log {log.meta.name!r} do not all have the same eligible actions"
    refuse_choosing_among(policy, where)
    if options.sampler in ("keep", "queue"):
        raise ParameterError(
            f"`sampler='{options.sampler}'` would be biased: {where}, and a choice that is held or queued until it is "
            "eligible tilts the sets of the rounds.",
            remedy="use `sampler='rejection'`.",
        )


@dataclass(frozen=True, eq=False)
class Basis:
    """What all replays of a log share, read once: survey and those of its outcomes, propensities, clusters, sets..."""

    survey: Survey
    propensities: Propensities
    known: KnownDelays | None
    clusters: Column | None
    capped: CapLoss | None
    sets: EligibleSets | None = None
    outcomes: Mapping[str, Survey] = field(default_factory=dict)
    splits: tuple[Column, ...] = ()
    units: Units | None = None
    whole: Log | None = None
    _until: dict[int, tuple[Survey, Propensities]] = field(default_factory=dict, repr=False)
    _teachers: dict[str, tuple[Survey, KnownDelays | None]] = field(default_factory=dict, repr=False)

    def until(self, displays: int, mode: PropensityMode | None) -> tuple[Survey, Propensities]:
        """Return what the log told once so many displays had been shown, read once for all who ask the same."""
        if displays not in self._until:
            surveyed = survey(self.survey.log.until(displays))
            self._until[displays] = surveyed, resolve_propensities(surveyed, mode)
        return self._until[displays]

    def teacher(self, learn_from: str) -> tuple[Survey, KnownDelays | None]:
        """Return the survey of the events that teach, and what was known of their delays before the replayed period.

        Read once for all who ask the same; errors are those of `events_that_teach`.
        """
        if learn_from not in self._teachers:
            assert self.whole is not None
            found = known = None
            log = events_that_teach(self.whole, learn_from)
            if self.known is not None:
                known = known_delays(survey(log), self.known.displays / len(log))
                log = log.after(known.displays)
            elif learn_from in self.outcomes:
                found = self.outcomes[learn_from]
            found = survey(log) if found is None else found
            shortest = log.meta.attribution_window
            if "@" in learn_from and shortest is not None and shortest < found.stamp:
                stamp = ticks_words(found.stamp, log.meta.tick_seconds)
                raise ParameterError(
                    f"`learn_from={learn_from!r}`: the time stamps of log {log.meta.name!r} tell less apart: all are "
                    f"multiples of {stamp}.",
                    remedy=f"take at least {stamp}.",
                )
            self._teachers[learn_from] = found, known
        return self._teachers[learn_from]


def read_basis(log: Log, options: ReplayOptions) -> Basis:
    """Return what all replays of a log share, or of what `delays_from` leaves of it."""
    limited = _limited_kinds(log, parse_guardrails(options.guardrails)) if options.guardrails else []
    capped = None
    log = with_bounds(log, least=options.reward_min, most=options.reward_max)
    if options.cap is not None:
        refuse_counted(log, "capped rewards (`cap`)")
        log, capped = with_cap(log, options.cap)
    whole = apart = log
    log = with_rewards(log, costs=objective_of(log, options.objective) == "profit")
    known = None
    if options.delays_from is not None:
        known = known_delays(survey(log), known_share(options.delays_from))
        log, apart = log.after(known.displays), apart.after(known.displays)
    kinds = list(dict.fromkeys([*(one.name for one in apart.meta.outcomes), *limited]))
    surveyed, *others = surveys([log, *(events_of(apart, name) for name in kinds)])
    clusters = None if options.cluster_by is None else read_clusters(surveyed.log, options.cluster_by)
    sets = read_sets(surveyed.log)
    splits = read_groups(surveyed.log, options.by)
    deployment = deployment_of(vars(options), log.meta.deployment)
    asked = deployment.kept
    if asked is not None and sets is not None:
        raise ParameterError(
            f"{deployment.named('keep_for')}: the displays of log {log.meta.name!r} have their own eligible actions, "
            "and a kept action may not be eligible later.",
            remedy="`keep_for='none'` keeps no action.",
        )
    units = None if asked is None else read_units(surveyed.log, asked)
    found = resolve_propensities(surveyed, options.propensity) if units is None else _of_units(surveyed, units, options)
    if units is not None:
        refuse_unkept(log, units, found)
        clusters, splits = _nesting(units, clusters), (units.first_or_later(), *splits)
    outcomes = dict(zip(kinds, others, strict=True))
    return Basis(surveyed, found, known, clusters, capped, sets, outcomes, splits, units, whole)


def _of_units(survey: Survey, units: Units, options: ReplayOptions) -> Propensities:
    """Return the propensities with which units were shown their action."""
    log, mode = survey.log, options.propensity
    if mode == "estimate:context":
        raise ParameterError(
            "`propensity='estimate:context'` fits the action of each display to its context, and with `keep_for` that "
            "of the first display decides.",
            remedy="give the logged propensities, or `propensity='estimate'` if the logger ignored the context.",
        )
    if mode == "estimate":
        # Of the first displays alone: how often a unit comes back may depend on its action.
        return by_unit(frequencies(survey, np.bincount(units.action, minlength=log.n_actions)), log, units)
    return by_unit(resolve_propensities(survey, mode), log, units)


def _nesting(units: Units, clusters: Column | None) -> Column:
    """Return the clusters of a replay whose units keep actions: the users, or larger ones in which all of these lie.

    Raise ParameterError where the displays of a user are in several clusters.
    """
    if clusters is None:
        return units.users
    users = units.users.code
    of = np.empty(units.users.count, np.int64)
    of[users] = clusters.code
    if (of[users] != clusters.code).any():
        raise ParameterError(
            f"`cluster_by='{clusters.by}'` cuts the displays of {units.asked.column} apart, and these hang together, "
            f"as `keep_for='{units.asked.text}'` says.",
            remedy=f"leave `cluster_by` out: intervals go by {units.asked.column} then.",
        )
    return clusters


def objective_of(log: Log, asked: ObjectiveName | None) -> ObjectiveName:
    """Return the objective of a replay: what was asked for, else the log's own, else profit where it has costs.

    Raise ParameterError if profit is asked for, and the log does not say what its displays cost.
    """
    if asked == "profit" and not has_costs(log):
        raise ParameterError(
            f"`objective='profit'` needs what displays cost, and log {log.meta.name!r} does not say it.",
            remedy="name the column of costs in the spec (`cost` in [display]), or take `objective='revenue'`.",
        )
    return asked or log.meta.objective or ("profit" if has_costs(log) else "revenue")


def refuse_on_units(basis: Basis, units: Units, options: ReplayOptions, *, begins: bool) -> None:
    """Raise ParameterError at what cannot be replayed where units keep their action."""
    own, name = f"`keep_for='{units.asked.text}'`", basis.survey.log.meta.name
    leave = "leave one of the two out: `keep_for='none'` keeps no action."
    for refused, what, remedy in (
        (basis.propensities.tilted, f"the displays of log {name!r} are no even sample of the traffic, and so units are "
         "not whole", "`keep_for='none'` keeps no action."),
        (options.sampler in ("keep", "queue"), f"`sampler='{options.sampler}'` would be biased: a choice that waits "
         "for its display is given up where a later display of a unit is due", "use `sampler='rejection'`."),
        (options.doubly_robust, "`doubly_robust` asks the policy at every display", leave),
        (options.final is not None, "`final` asks the policy at every display", leave),
        (begins, "what a policy learned does not say which unit keeps what", "begin without it, or " + leave),
        (options.reward == "observed", "`reward='observed'` has no horizon for displays that wait",
         "use `reward='eventual'`."),
        (options.accept_quantile > 0, "`accept_quantile` weighs single displays", "leave it out."),
        (options.repeats > 1, "`repeats` read the log in orders that tear units apart", "leave it out."),
        (options.bootstrap > 0 and options.propensity == "estimate",
         "`bootstrap` cannot estimate the propensities of units anew",
         "give the logged propensities, or `propensity='uniform'`; or leave the bootstrap out."),
    ):  # fmt: skip
        if refused:
            raise ParameterError(f"{own}: {what}.", remedy=remedy)


def _explores(
    log: Log, deployment: Deployment, options: ReplayOptions, survey: Survey, clock: ReplayClock, sampler: SamplerName,
    matched: Thinning, usable: npt.NDArray[np.int64],
) -> tuple[Explores | None, Thinning | None]:  # fmt: skip
    """Return the first rounds in which a deployment explores, and how the log is thinned where the logger chooses.

    The first is None where the policy chooses from the first round on, the second where actions are drawn uniformly,
    among displays that are matched. Raise ParameterError at what excludes exploring.
    """
    exploration, kept = deployment.exploration, deployment.kept
    if exploration is None:
        return None, None
    asked = deployment.named("explore_first")
    for refused, other, why, remedy in (
        (sampler == "queue", "`sampler='queue'`", "each round is served from the queue of a choice",
         "use `sampler='rejection'`, or `explore_first=0`."),
        (options.doubly_robust, "`doubly_robust`", "the policy chooses nothing at the first displays",
         "leave it out, or do not explore: `explore_first=0`."),
        (exploration.as_logger and kept is not None, "`keep_for`", "units that keep an action are accepted whole",
         "explore uniformly, or with `keep_for='none'`."),
    ):  # fmt: skip
        if refused:
            raise ParameterError(f"{other} excludes {asked}: {why}.", remedy=remedy)
    rounds = rounds_of(deployment, survey, clock)
    if not exploration.as_logger:
        return Explores(rounds, np.flatnonzero(usable)), None
    if log.meta.kept_share < 1.0:
        raise ParameterError(
            f"{asked}: log {log.meta.name!r} keeps the displays of some actions, and does not say what the logging "
            "policy would have shown at the others.",
            remedy="explore uniformly, or replay the log with all actions.",
        )
    # One c decides a rejection; of keep, the action that waits longest.
    share = least_acceptance(matched, usable) if sampler == "keep" else float(matched.c.max())
    return Explores(rounds, np.zeros(0, np.int64)), logger_thinning(log, share)


def refuse_untold(policy: Any, rewards: RewardRange, *, told_costs: bool) -> None:
    """Raise ParameterError if a policy takes no costs, or no refunds, and is told some; it names those that do."""
    for takes, has, what, instead in (
        ("takes_costs", told_costs, "the cost of a display at once", "tell it revenue alone, `learn_from='revenue'`"),
        ("takes_refunds", rewards.taken_back > 0.0, "refunds", "leave refunds out of the log"),
    ):
        if has and not getattr(policy, takes, True):
            can = ", ".join(name for name in POLICIES if getattr(resolve(name), takes) and resolve(name).learns)
            raise ParameterError(
                f"{policy.name} has no place for {what}: {policy.why_not_negative}.",
                remedy=f"{instead}, or take one of {can}.",
            )


def refuse_on_parts(log: Log, propensities: Propensities, options: ReplayOptions) -> None:
    """Raise ParameterError at options that average over all displays of a log that is no even sample of the traffic."""
    if not propensities.tilted:
        return
    weighted = propensities.weights is not None
    cause = (
        "has display weights, so that its displays are not those of the traffic"
        if weighted
        else "keeps the displays of some actions, with propensities that depend on the context"
    )
    remedy = "leave it out: a replay thins by the weights." if weighted else (
        "leave it out: a rejection replay is right; or replay the log with all actions."
    )  # fmt: skip
    for name, asked in (("`doubly_robust`", options.doubly_robust), ("`final`", options.final is not None)):
        if asked:
            what = f"{name} averages over all displays of log {log.meta.name!r}, which {cause}."
            raise ParameterError(what, remedy=remedy)
    if not weighted:
        _refuse_on_a_choice(log, parse_guardrails(options.guardrails))
        if options.by:
            raise ParameterError(
                f"`by` compares groups with the logging policy, whose displays in log {log.meta.name!r} are no even "
                "sample of those that a replay is valued on: it " + cause + ".",
                remedy="leave it out; or replay the log with all actions.",
            )
        return
    estimated = bool(options.bootstrap) and options.propensity == "estimate"
    for asked, what, remedy in (
        (correct_by(options.immature) is not None, "`immature='correct'` cannot weigh the delays of log {}",
         "use `immature='drop'`."),
        (options.delays_from is not None, "`delays_from` cannot weigh the delays of log {}",
         "leave it out, or give the delays with `delays`."),
        (estimated, "`bootstrap` cannot estimate the propensities of log {} anew",
         "give the logged propensities, or leave the bootstrap out."),
    ):  # fmt: skip
        if asked:
            raise ParameterError(f"{what.format(repr(log.meta.name))}, which {cause}.", remedy=remedy)


def _limited_kinds(log: Log, guardrails: Sequence[Guardrail]) -> list[str]:
    """Return the names of the kinds of events that guardrails limit, each once.

    Raise UnknownNameError if the log does not have a kind, ParameterError if a share is limited of what may be below 0,
    or refunds from above, which holds however many there are.
    """
    kinds = []
    for one in guardrails:
        try:
            kinds.append(name_kind(log, one.outcome))
        except UnknownNameError as error:
            raise UnknownNameError(f"`guardrails` {one.text!r}: {error.what}", remedy=error.remedy) from None
        if one.below and one.outcome == REFUNDS and may_be_below_0(log, REFUNDS):
            raise ParameterError(
                f"`guardrails` {one.text!r}: values of refunds are below 0, and more refunds make them smaller.",
                remedy="limit them from below: 'refunds > -0.001'.",
            )
        if one.quantity == "relative uplift" and may_be_below_0(log, one.outcome):
            raise ParameterError(
                f"`guardrails` {one.text!r}: values of {one.outcome} may be below 0, and no share of them is defined.",
                remedy=f"limit the difference itself: '{one.outcome} {'< +' if one.below else '> -'}0.001'.",
            )
    return list(dict.fromkeys(kinds))


def _refuse_on_a_choice(log: Log, guardrails: Sequence[Guardrail]) -> None:
    """Raise ParameterError at limits relative to the logging policy where propensities of kept actions vary.

    On a choice of actions whose propensities depend on the display, a replay is valued on the traffic, the logging
    policy where it showed a kept action: of a policy that does what the logging policy did, that difference is not 0,
    and no interval of it answers what was asked.
    """
    for one in guardrails:
        if one.quantity != "value":
            raise ParameterError(
                f"`guardrails` {one.text!r} compares with the logging policy, whose displays in log {log.meta.name!r} "
                "are no even sample of those that a replay is valued on: the log keeps the displays of some actions, "
                "with propensities that depend on the context.",
                remedy=f"limit the value itself, '{one.outcome} {'<' if one.below else '>'} 0.02'; or replay the log "
                "with all actions.",
            )
