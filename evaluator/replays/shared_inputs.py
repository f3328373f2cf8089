"""What all replays of a log share, whatever policy and window they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.log import Log
from evaluator.log.bounds import CapLoss, with_bounds, with_cap
from evaluator.log.column import Column, read_clusters, read_groups
from evaluator.log.reward_kinds import events_of, refuse_counted, with_rewards
from evaluator.options.shared import PropensityMode
from evaluator.replays.guardrails import limited_kinds, parse_guardrails
from evaluator.replays.objective import objective_of
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.eligible_actions import EligibleSets, read_sets
from evaluator.replays.rounds.held_out import known_share
from evaluator.replays.rounds.known_delays import KnownDelays, known_delays
from evaluator.replays.rounds.propensity import Propensities, resolve_propensities
from evaluator.replays.rounds.survey import Survey, survey


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
    _until: dict[int, tuple[Survey, Propensities]] = field(default_factory=dict, repr=False)

    def until(self, displays: int, mode: PropensityMode | None) -> tuple[Survey, Propensities]:
        """Return what the log told once so many displays had been shown, read once for all who ask the same."""
        if displays not in self._until:
            surveyed = survey(self.survey.log.until(displays))
            self._until[displays] = surveyed, resolve_propensities(surveyed, mode)
        return self._until[displays]


def read_basis(log: Log, options: ReplayOptions) -> Basis:
    """Return what all replays of a log share, or of what `delays_from` leaves of it."""
    limited = limited_kinds(log, parse_guardrails(options.guardrails))
    capped = None
    log = with_bounds(log, least=options.reward_min, most=options.reward_max)
    if options.cap is not None:
        refuse_counted(log, "capped rewards (`cap`)")
        log, capped = with_cap(log, options.cap)
    apart, log = log, with_rewards(log, costs=objective_of(log, options.objective) == "profit")
    surveyed = survey(log)
    known = None
    if options.delays_from is not None:
        known = known_delays(surveyed, known_share(options.delays_from))
        surveyed, apart = survey(log.after(known.displays)), apart.after(known.displays)
    clusters = None if options.cluster_by is None else read_clusters(surveyed.log, options.cluster_by)
    sets = read_sets(surveyed.log)
    kinds = dict.fromkeys([*(one.name for one in apart.meta.outcomes), *limited])
    outcomes = {name: survey(events_of(apart, name)) for name in kinds}
    found = resolve_propensities(surveyed, options.propensity)
    splits = read_groups(surveyed.log, options.by)
    return Basis(surveyed, found, known, clusters, capped, sets, outcomes, splits)
