"""Everything a replay decides before its first round; `--dry-run` prints it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import ParameterError, PropensityError
from evaluator.log import Log
from evaluator.log.bounds import CapLoss, with_reward_cap, with_reward_max
from evaluator.log.clusters import Clusters, read_clusters
from evaluator.options.shared import PropensityMode
from evaluator.policies.base import Need, Setting
from evaluator.replays.loop.samplers import SamplerName, choose_sampler, sure_rounds
from evaluator.replays.options import ReplayOptions
from evaluator.replays.parts import even_conversions, refuse_on_parts
from evaluator.replays.rarest import least_acceptance
from evaluator.replays.rounds.clock import ReplayClock, on_clock, start_clock
from evaluator.replays.rounds.held_out import held_out
from evaluator.replays.rounds.known_delays import KnownDelays, known_delays
from evaluator.replays.rounds.maturity import Maturity, judge_maturity
from evaluator.replays.rounds.propensity import Propensities, display_weights, resolve_propensities
from evaluator.replays.rounds.reward_range import reward_range
from evaluator.replays.rounds.shares import known_share
from evaluator.replays.rounds.stream import LogRounds, vectors_of
from evaluator.replays.rounds.survey import Survey, survey
from evaluator.replays.rounds.thinning import Thinning, thinning
from evaluator.replays.rounds.window import ReplayWindow, resolve_window
from evaluator.replays.told_delays import fit_on_clock, told_delays
from evaluator.replays.within import followed_for, share_within
from evaluator.replays.words.clusters import check_clusters, said_of_clusters
from evaluator.replays.words.plan import assumptions, warnings
from evaluator.units import NO_WINDOW


@dataclass(frozen=True)
class ReplayPlan:
    """A replay with every choice made.

    Parameters
    ----------
    survey
        Survey of the log.
    policy, options
        Policy to replay, and the options as they were asked for.
    clock, window, propensities, maturity, sampler
        Choices of the replay that follow from these two and from the log.
    matched
        Thinning of the log before the policy's choices are matched to it.
    by_action
        Thinning of the log to estimate each action's value.
    rounds
        Displays that the replay uses, not thinned.
    setting
        Setting that the policy is told before its first round.
    largest_reward
        Reward that no replayed display exceeds: the log's `reward_max`, or the largest of them.
    cdf
        Delay CDF of the log on the replay's clock; None without conversions.
    tau_window
        Share of the conversions that come within the window, of those that come as long as the log looked; nan without
        conversions.
    known
        Delays known before the replayed displays began, if the policy is to be told no more; None if it is told those
        of the log.
    told
        Survey of what else the policy is told from: the log, or what was known of it when the displays began that are
        left out for the final policy.
    warnings, assumptions
        Sentences that the result must carry.
    clusters
        Clusters of displays that hang together; None where displays are independent.
    bounded
        Whether no display can earn more than `setting.reward_max`; else it is the largest reward seen.
    capped
        Loss to a cap of the rewards; None without one.
    """

    survey: Survey
    policy: Any
    options: ReplayOptions
    clock: ReplayClock
    window: ReplayWindow
    propensities: Propensities
    maturity: Maturity
    sampler: SamplerName
    matched: Thinning
    by_action: Thinning
    rounds: LogRounds
    setting: Setting
    largest_reward: float
    cdf: DelayCDF | None
    tau_window: float
    known: KnownDelays | None
    told: Survey
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    clusters: Clusters | None = None
    bounded: bool = True
    capped: CapLoss | None = None

    @property
    def log(self) -> Log:
        """The log."""
        return self.survey.log

    @property
    def usable(self) -> npt.NDArray[np.int64]:
        """Used displays of each action, shape (K,)."""
        return self.survey.shown_first(len(self.rounds))

    @property
    def before(self) -> int:
        """Displays of the log before the replayed ones."""
        return 0 if self.known is None else self.known.displays

    @property
    def parted(self) -> bool:
        """Whether a part of the log was put aside before or after the replayed displays."""
        return self.before > 0 or self.options.final is not None

    @property
    def judged(self) -> range:
        """Displays on which the frozen policy is evaluated; none where that is not asked for."""
        asked = self.options.final is not None or self.policy.reads == "target"
        if self.sampler == "logged" or not (asked or (self.options.doubly_robust and not self.policy.learns)):
            return range(0)
        if self.propensities.tilted:
            return range(0)
        return range(0 if self.options.final is None else len(self.rounds), self.maturity.used)

    @property
    def recorded(self) -> bool:
        """Whether the choice of a policy that learns is kept at every display read, for the doubly robust value."""
        return self.options.doubly_robust and self.sampler == "rejection" and self.policy.learns

    @property
    def rewards_end_with_window(self) -> bool:
        """Whether only conversions within the policy's window are rewards: no other cut-off of the log is known."""
        return self.window.ends_rewards(self.log.meta)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "dataset": self.log.meta.name,
            "displays": len(self.log),
            "displays_before": self.before,
            "displays_used": len(self.rounds),
            "displays_judged": len(self.judged),
            "displays_immature": self.maturity.immature,
            "conversions": self.log.conversions.num_rows,
            "actions": self.log.n_actions,
            "tick": self.log.meta.tick,
            "schema_displays": {field.name: _type_name(field.type) for field in self.log.schema},
            "fingerprint": self.log.meta.fingerprint,
            "policy": self.policy.spec,
            "sampler": self.sampler,
            "clock": self.clock.kind,
            "traffic_share": self.clock.traffic_share,
            "sampling_rate": self.clock.sampling_rate,
            "window_rounds": None if self.window.rounds == NO_WINDOW else self.window.rounds,
            "window_ticks": self.window.ticks,
            "window": self.window.describe(self.clock),
            "tau_window": None if np.isnan(self.tau_window) else self.tau_window,
            "followed": followed_for(self.survey, self.clock),
            "propensity": self.propensities.kind,
            "policy_delays": self.setting.delay_cdf.source
            if self.setting.delay_cdf is not None and Need.DELAY_CDF in self.policy.needs
            else None,
            "reward_bound": {"largest": self.setting.reward_max, "known": self.bounded},
            "reward_cap": None if self.capped is None else self.capped._asdict(),
            "clusters": None if self.clusters is None else self.clusters.to_dict(),
            "options": self.options.to_dict(),
            "counts": dict(self.log.meta.counts),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, eq=False)
class Basis:
    """What all replays of a log share, read once: its survey, propensities, clusters, and what was known before it."""

    survey: Survey
    propensities: Propensities
    known: KnownDelays | None
    clusters: Clusters | None
    capped: CapLoss | None
    _until: dict[int, tuple[Survey, Propensities]] = field(default_factory=dict, repr=False)

    def until(self, displays: int, mode: PropensityMode | None) -> tuple[Survey, Propensities]:
        """Return what the log told once so many displays had been shown, read once for all who ask the same."""
        if displays not in self._until:
            surveyed = survey(self.survey.log.until(displays))
            self._until[displays] = surveyed, resolve_propensities(surveyed, mode)
        return self._until[displays]


def read_basis(log: Log, options: ReplayOptions) -> Basis:
    """Return what all replays of a log share, or of what `delays_from` leaves of it."""
    capped = None
    if options.reward_max is not None:
        log = with_reward_max(log, options.reward_max)
    if options.reward_cap is not None:
        log, capped = with_reward_cap(log, options.reward_cap)
    surveyed = survey(log)
    known = None
    if options.delays_from is not None:
        known = known_delays(surveyed, known_share(options.delays_from))
        surveyed = survey(log.after(known.displays))
    clusters = None if options.cluster_by is None else read_clusters(surveyed.log, options.cluster_by)
    return Basis(surveyed, resolve_propensities(surveyed, options.propensity), known, clusters, capped)


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


def _pace(survey: Survey, propensities: Propensities, policy: Any, options: ReplayOptions) -> _Pace:
    log = survey.log
    sampler = _sampler(survey, policy, options, propensities)
    # The logger's own rounds are thinned by nothing but the displays' weights, so nothing of theirs is clipped either.
    of_sampler = display_weights(log) if sampler == "logged" else propensities
    quantile = 0.0 if sampler == "logged" else options.accept_quantile
    acceptance = of_sampler.quantile(log, quantile)
    if sampler == "logged" and of_sampler.rule is None:
        acceptance = 1.0
    clock = start_clock(survey, options.clock, traffic_share=options.traffic_share, acceptance=acceptance)
    window = resolve_window(options.window, clock, survey)
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
    basis = read_basis(log, options) if isinstance(log, Log) else log
    surveyed, log = basis.survey, basis.survey.log
    refuse_on_parts(log, basis.propensities, options)
    whole = _pace(surveyed, basis.propensities, policy, options)
    maturity = judge_maturity(surveyed, whole.window, whole.clock, options.immature)
    used, told = maturity.used, whole
    if options.final is not None:
        # Displays that are left out teach nothing: whatever is fitted, is to what was known when they began.
        used -= held_out(used, options.final)
        told = _pace(*basis.until(used, options.propensity), policy, options)
    clock, window, sampler, of_sampler = told.clock, told.window, told.sampler, told.of_sampler
    delays = of_log = _fit(surveyed, clock, window, options.seed)
    rewards = known_rewards = reward_range(surveyed, used)
    if told is not whole:
        delays = _fit(told.survey, clock, window, options.seed)
        known_rewards = reward_range(told.survey, used)
    vectors = vectors_of(log, policy=policy.name, reads=policy.reads) if policy.contextual else None
    check_clusters(basis.clusters, maturity.used)
    rounds = LogRounds(log, used, vectors, window.revealed(surveyed, on_clock(surveyed.delay, clock)))
    usable = surveyed.shown_first(used)
    if clock.kind != "wall":  # whose share is an acceptance rate that was fixed before
        of_sampler = _of_used(of_sampler, usable)
    matched = thinning(told.survey.log, of_sampler, per_action=sampler in ("keep", "queue"), quantile=told.quantile)
    horizon = _horizon(surveyed, policy, options, sampler, matched, usable)
    setting = Setting(
        n_actions=log.n_actions,
        dimension=rounds.dimension,
        rows=rounds.rows,
        window=window.rounds,
        horizon=horizon,
        delay_cdf=told_delays(
            told.survey,
            basis.known,
            clock,
            window,
            delays.even,
            cdf=delays.cdf,
            tau=delays.tau,
            delays=options.delays,
            horizon=horizon,
        ),
        reward_max=known_rewards.largest,
    )
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
        largest_reward=rewards.largest,
        cdf=of_log.cdf,
        tau_window=of_log.tau,
        known=basis.known,
        told=told.survey,
        warnings=(),
        assumptions=assumptions(
            basis, policy, options, clock, window, sampler, setting.delay_cdf, known_rewards, maturity.correction
        ),
        clusters=basis.clusters,
        bounded=rewards.bounded,
        capped=basis.capped,
    )
    return replace(plan, warnings=(*warnings(plan, told.acceptance, rewards), *said_of_clusters(plan)))


class _Delays(NamedTuple):
    """Conversions that are an even sample, the delay CDF fitted to them, and the share of them within the window."""

    even: slice | npt.NDArray[np.int64]
    cdf: DelayCDF | None
    tau: float


def _fit(survey: Survey, clock: ReplayClock, window: ReplayWindow, seed: int) -> _Delays:
    even = even_conversions(survey.log, survey.display, seed)
    cdf = fit_on_clock(survey.delay[even], None if survey.limit is None else survey.limit[even], clock)
    return _Delays(even, cdf, share_within(survey, window, cdf, even))


def _horizon(
    survey: Survey,
    policy: Any,
    options: ReplayOptions,
    sampler: SamplerName,
    matched: Thinning,
    usable: npt.NDArray[np.int64],
) -> int:
    """Return the largest number of rounds.

    A policy that needs the horizon is told one that it reaches: with the number of displays, K times as many, it would
    be another policy than the one that goes live for so many rounds.
    """
    displays = int(usable.sum())
    if options.horizon is not None:
        return min(options.horizon, displays)
    if Need.HORIZON in policy.needs and sampler in ("rejection", "keep"):
        return max(sure_rounds(displays, least_acceptance(matched, usable)), 1)
    return displays


def _of_used(propensities: Propensities, usable: npt.NDArray[np.int64]) -> Propensities:
    """Return the propensities without the extremes of actions whose displays are not used: they decide no c."""
    if propensities.rule is None or not usable.any():
        return propensities
    known = [np.where(usable > 0, of, np.nan) for of in (propensities.smallest, propensities.largest)]
    return replace(propensities, smallest=known[0], largest=known[1])


def _type_name(kind: object) -> str:
    # Parquet calls the entries of a list otherwise than Arrow does.
    return str(kind).replace("element: ", "").replace("item: ", "")


def _sampler(survey: Survey, policy: Any, options: ReplayOptions, propensities: Propensities) -> SamplerName:
    requested = options.sampler
    if (options.clock == "wall" or options.doubly_robust) and requested is None and not policy.contextual:
        requested = "rejection"  # the only sampler whose acceptance rate is known beforehand, whatever is chosen
    sampler = choose_sampler(policy, requested, even=propensities.even, known=propensities.rule is not None)
    if propensities.rule is None and (sampler == "rejection" or (options.clock == "wall" and sampler != "logged")):
        raise PropensityError(
            f"Log {survey.log.meta.name!r} has no propensities, and the {sampler} sampler needs them"
            + (f" because {policy.name} reads contexts." if policy.contextual else "."),
            hint="choose what is true of the logging policy: `propensity='uniform'` (chose at random), estimate "
            "(ignored the context), estimate:context (chose by the logged context), or name a column in the spec.",
        )
    if options.doubly_robust and sampler not in ("rejection", "logged"):
        raise ParameterError(
            f"`doubly_robust` needs displays that are read in order and accepted alike, unlike `sampler='{sampler}'`.",
            hint="use `sampler='rejection'`.",
        )
    if options.final is not None and propensities.rule is None and sampler != "logged":
        raise PropensityError(
            f"`final` weighs displays by their propensities, and log {survey.log.meta.name!r} has none.",
            hint="choose what is true of the logging policy: `propensity='uniform'`, estimate or estimate:context.",
        )
    if options.clock == "wall" and sampler in ("keep", "queue"):
        raise PropensityError("`clock='wall'` needs a known acceptance rate.", hint="use `sampler='rejection'`.")
    return sampler
