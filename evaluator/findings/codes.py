"""The codes of all findings, in the order in which a report names them; `catalogue` explains each code.

A new finding needs three things: a line here, an entry of the catalogue, and the code that detects it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evaluator.findings.finding import Finding, Severity


@dataclass(frozen=True)
class Code:
    """Kind of a finding.

    Parameters
    ----------
    name
        Name of the kind in `evaluate explain`, JSON and ``--fail-on``.
    severity
        Severity of each finding of this kind.
    of_intervals
        Whether it is an assumption of the intervals that not every replay makes: short reports print it as well.
    """

    name: str
    severity: Severity
    of_intervals: bool = False

    def found(self, what: str, remedy: str = "", *, about: str = "", **numbers: Any) -> Finding:
        """Return a finding of this kind; `Finding` describes the parameters."""
        return Finding(
            code=self.name, severity=self.severity, what=what, remedy=remedy, about=about, numbers=numbers
        )  # fmt: skip


# Warnings of a comparison.
SAME_ROUNDS = Code("same-rounds", "warn")
LINE_LEFT_OUT = Code("line-left-out", "warn")
COMMON_HORIZON = Code("common-horizon", "warn")

# Warnings of an audit.
NOT_IN_TWINS = Code("not-in-twins", "warn")
COARSE_TIMES_OF_TWINS = Code("coarse-times-of-twins", "warn")
BIASED_REPLAY = Code("biased-replay", "warn")
LOW_COVERAGE = Code("low-coverage", "warn")
SHORT_TWINS = Code("short-twins", "warn")

# Warnings of a replay. First, warnings about its run.
NO_ROUNDS = Code("no-rounds", "fail")
TIME_STAMPS_DECIDE = Code("time-stamps-decide", "warn")
MOVING_SETS = Code("moving-sets", "warn")
ONLY_EXPLORED = Code("only-explored", "warn")
NO_PUSH = Code("no-push", "warn")
FAST_CALENDAR = Code("fast-calendar", "warn")
KEPT_LONGER = Code("kept-longer", "warn")
FIRST_DISPLAYS_WEIGH = Code("first-displays-weigh", "warn")
SHARE_OF_TRAFFIC = Code("share-of-traffic", "warn")
WALL_CLOCK_OFF = Code("wall-clock-off", "warn")
ENDED_BY_ACTION = Code("ended-by-action", "warn")
LITTLE_LEARNED = Code("little-learned", "warn")
TILTED_SETS = Code("tilted-sets", "warn")
ACCEPTANCE_OFF = Code("acceptance-off", "warn")
PROPENSITIES_OFF = Code("propensities-off", "warn")
# Warnings that are known before the run, from the log and the options.
BINDING_PROPENSITY = Code("binding-propensity", "warn")
UNUSABLE_ACTIONS = Code("unusable-actions", "warn")
RAREST_ACTION = Code("rarest-action", "warn")
QUARANTINED_BY_OUTCOME = Code("quarantined-by-outcome", "warn")
UNSETTLED_FIT = Code("unsettled-fit", "warn")
UNKNOWN_FOLLOW_UP = Code("unknown-follow-up", "warn")
YOUNG_DISPLAYS = Code("young-displays", "warn")
UNEVEN_WEIGHTS = Code("uneven-weights", "warn")
NO_WEIGHTED_VALUE = Code("no-weighted-value", "warn")
INDEX_OR_LABEL = Code("index-or-label", "warn")
TARGET_NEVER_SHOWN = Code("target-never-shown", "warn")
TARGET_NOT_ELIGIBLE = Code("target-not-eligible", "warn")
NOT_UNIFORM = Code("not-uniform", "warn")
SHARE_BELOW_ACCEPTANCE = Code("share-below-acceptance", "warn")
COARSE_TIMES = Code("coarse-times", "warn")
PROPENSITIES_REPLACED = Code("propensities-replaced", "warn")
WINDOW_ENDS_REWARDS = Code("window-ends-rewards", "warn")
SHORT_WINDOW = Code("short-window", "warn")
NO_DELAYS = Code("no-delays", "warn")
DWARFED_COLUMN = Code("dwarfed-column", "warn")
OUTSIDE_LEARNED_REWARDS = Code("outside-learned-rewards", "warn")
UNKNOWN_TRAINING = Code("unknown-training", "warn")
COSTS_AND_DELAYS = Code("costs-and-delays", "warn")
LATE_REFUNDS = Code("late-refunds", "warn")
CONVERSION_GAP = Code("conversion-gap", "warn")
HEAVY_REWARDS = Code("heavy-rewards", "warn")
REWARDS_OF_OWN_UNIT = Code("rewards-of-own-unit", "warn")
CLUSTERS_CHANGE_NOTHING = Code("clusters-change-nothing", "warn")
UNNAMED_CLUSTERS = Code("unnamed-clusters", "warn")
OUTCOME_NOT_FOLLOWED = Code("outcome-not-followed", "warn")
OUTCOME_FOLLOW_UP_UNKNOWN = Code("outcome-follow-up-unknown", "warn")
OUTCOME_MAXIMUM_UNKNOWN = Code("outcome-maximum-unknown", "warn")
# Warnings from what its rounds showed.
FEW_ROUNDS = Code("few-rounds", "warn")
RARE_REFERENCE = Code("rare-reference", "warn")
QUEUE_RAN_DRY = Code("queue-ran-dry", "warn")
SHORT_OF_HORIZON = Code("short-of-horizon", "warn")
BURSTS = Code("bursts", "warn")
LONG_WAIT = Code("long-wait", "warn")
CLIPPED = Code("clipped", "warn")
SMALLEST_REWARD_SEEN = Code("smallest-reward-seen", "warn")
LARGEST_REWARD_SEEN = Code("largest-reward-seen", "warn")
# Warnings about other targets and about the interval.
FINAL_EXPLORES = Code("final-explores", "warn")
FINAL_TIES = Code("final-ties", "warn")
WEIGHTS_OFF = Code("weights-off", "warn")
FEW_WEIGHTED_REWARDS = Code("few-weighted-rewards", "warn")
FEW_CLUSTERS = Code("few-clusters", "warn")
NO_SPREAD = Code("no-spread", "warn")
MIXED_HORIZONS = Code("mixed-horizons", "warn")
PROPENSITIES_NOT_RESAMPLED = Code("propensities-not-resampled", "warn")

# Assumptions of a replay.
ELIGIBLE_SETS = Code("eligible-sets", "assumption")
NO_WEAR_OUT = Code("no-wear-out", "assumption")
INDEPENDENT_DISPLAYS = Code("independent-displays", "assumption")
INDEPENDENT_CLUSTERS = Code("independent-clusters", "assumption", of_intervals=True)
PROPENSITIES = Code("propensities", "assumption")
PROPENSITIES_AS_GIVEN = Code("propensities-as-given", "assumption", of_intervals=True)
CLOCK = Code("clock", "assumption")
SCHEDULE = Code("schedule", "assumption")
PUSHES = Code("pushes", "assumption")
EXPLORES_FIRST = Code("explores-first", "assumption")
KEEPS_ACTIONS = Code("keeps-actions", "assumption")
KEPT_ROUNDS = Code("kept-rounds", "assumption")
TRAFFIC_OF_ACTIONS = Code("traffic-of-actions", "assumption")
SAMPLED_LOG = Code("sampled-log", "assumption")
DELAYS_WITHIN_STAMPS = Code("delays-within-stamps", "assumption")
YOUNG_CORRECTED = Code("young-corrected", "assumption", of_intervals=True)
RULE_OUTSIDE_SETS = Code("rule-outside-sets", "assumption")
QUEUE_ORDER = Code("queue-order", "assumption")
KEPT_CHOICES = Code("kept-choices", "assumption")
OBSERVED_REWARDS = Code("observed-rewards", "assumption")
FIRST_DISPLAYS_LEFT_OUT = Code("first-displays-left-out", "assumption")
LAST_DISPLAYS_LEFT_OUT = Code("last-displays-left-out", "assumption")
WARM_START = Code("warm-start", "assumption")
KNOWN_DELAYS = Code("known-delays", "assumption")
REWARDS_WITHIN_WINDOW = Code("rewards-within-window", "assumption")
CLIPPED_ACCEPTANCE = Code("clipped-acceptance", "assumption")
CAPPED_REWARDS = Code("capped-rewards", "assumption", of_intervals=True)
OBJECTIVE = Code("objective", "assumption")
LEARNS_FROM = Code("learns-from", "assumption")
REWARD_SCALE = Code("reward-scale", "assumption")
ANY_ORDER = Code("any-order", "assumption")
GROUPS = Code("groups", "assumption", of_intervals=True)
DOUBLY_ROBUST = Code("doubly-robust", "assumption", of_intervals=True)

# Notes that a log carries about itself.
LOG_NOTE = Code("log-note", "note")

CODES: dict[str, Code] = {code.name: code for code in tuple(globals().values()) if isinstance(code, Code)}
_RANK = {name: rank for rank, name in enumerate(CODES)}
_SEVERITIES: tuple[Severity, ...] = ("fail", "warn", "assumption", "note")


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repetitions, the most severe first, and in the order of their codes within a severity."""
    distinct = {(finding.code, str(finding), finding.about): finding for finding in findings}
    return tuple(
        sorted(distinct.values(), key=lambda finding: (_SEVERITIES.index(finding.severity), _RANK[finding.code]))
    )
