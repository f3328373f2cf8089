"""All checks of a log: what `evaluate check` prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evaluator.checks.coordinates import cut_contexts
from evaluator.checks.dependence import chance_of_one
from evaluator.checks.options import CheckOptions
from evaluator.checks.registry import CHECKS, OF_CONVERSIONS, number_tested
from evaluator.checks.result import ALARMS, POWER_Z, CheckResult, Verdict, with_causes
from evaluator.checks.tables import CheckInput, Tables, count, count_events, followed_displays
from evaluator.checks.timeline import asked_of_timeline, follow_up, read_timeline
from evaluator.errors import UnknownNameError, nearest
from evaluator.estimates.standard_errors import NEEDED, expected_rewards
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.column import Column, read_clusters, read_users
from evaluator.log.log_tables import PropensityKind
from evaluator.log.reward_kinds import counted_outcomes, refunds_at_once, with_rewards
from evaluator.log.schema import to_numpy
from evaluator.options.deployment import ALL_BUT_NOISE, KeptFor, parse_kept
from evaluator.replays.rounds.propensity import resolve_propensities
from evaluator.replays.rounds.survey import surveys
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import Count, JsonDocument, Positive, in_document
from evaluator.results.tabular import NUMBER, TEXT, arrow_table

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluator.replays.kept_units import Units

# Normal quantiles: of a difference at a level of 95 %, told on 80 % of logs.
_TOLD_Z = 1.96 + POWER_Z


@dataclass(frozen=True)
class InReplay:
    """What a replay of a log has to tell from: of a policy that tries all actions alike, as the log's own data go.

    Parameters
    ----------
    rounds, conversions
        Expected number of rounds, and of the conversions of their displays.
    rewards
        Number of rewards of equal weight that these conversions are worth
        (`evaluator.estimates.standard_errors`): less where a few are large.
    smallest_uplift
        Difference to the log's mean reward, as a share of it, that the mean of so many rounds tells on 80 % of such
        logs; nan where there is not `enough` for an interval.
    """

    rounds: float
    conversions: float
    rewards: float
    smallest_uplift: float

    @in_document
    @property
    def enough(self) -> bool:
        """Whether an interval holds at all: with at least `NEEDED` rewards of equal weight."""
        return self.rewards >= NEEDED


def in_replay(t: Tables) -> InReplay:
    """Return what a replay of a log has to tell from.

    With a propensity for each action, its round waits 1/p displays for an action; with others, a display is accepted
    with the probability c that rejection has. Rounds on displays that are too young to be judged count for nothing.
    """
    log, constant, displays = t.logged.survey.log, t.logged.constant, max(t.logged.usable, 1)
    if constant is not None:
        shown = constant[t.usable > 0]
        accepted = float(1.0 / (1.0 / shown).mean()) if len(shown) else 0.0
    else:
        accepted = t.logged.propensities.quantile(log, 0.0)
    rounds = min(accepted, 1.0) * t.logged.usable
    display, value = t.logged.earned
    used = display < displays
    value = value[used]
    _, of = np.unique(display[used], return_inverse=True)
    earned = np.bincount(of, value).astype(np.float64)
    mean, rewards = float(earned.sum()) / displays, expected_rewards(earned[earned != 0.0], displays, rounds)
    told = math.nan
    if rewards >= NEEDED and mean > 0.0:
        spread = max(float((earned**2).sum()) / displays - mean**2, 0.0)
        told = _TOLD_Z * math.sqrt(spread / rounds) / mean
    return InReplay(rounds, len(value) * rounds / displays, rewards, told)


@dataclass(frozen=True, eq=False)
class CheckReport(JsonDocument, ShownInNotebooks):
    """Whether a log is fit for replay.

    Parameters
    ----------
    dataset, displays, conversions, actions
        Name of the log, and its numbers of displays, conversions and actions.
    propensity
        Kind of the propensities as they were read: logged, uniform, estimated or absent.
    assumption
        Clause that says what an estimate that uses these propensities rests on.
    left_out
        Sentences on the rows that were left out of the log, and on rewards that some checks do not see; empty without
        any.
    options
        Options of the checks, as they were asked for.
    replay
        What a replay of the log has to tell from.
    checks
        Result of each check, in the order of `evaluator.checks.registry.CHECKS`.
    """

    schema: ClassVar[str] = "evaluate.check/2"

    dataset: str
    displays: Positive
    conversions: Count
    actions: Positive
    propensity: PropensityKind
    assumption: str
    left_out: str
    options: CheckOptions
    replay: InReplay
    checks: tuple[CheckResult, ...]

    @in_document
    @property
    def fit(self) -> bool:
        """Whether no check failed; how much a log that is fit can tell is in `replay`."""
        return not self.having("fail")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks warn of, and what makes the log unfit, the worst first."""
        return tuple(one.finding() for verdict in ALARMS for one in self.having(verdict))

    def having(self, verdict: Verdict) -> tuple[CheckResult, ...]:
        """Return the results with a verdict."""
        return tuple(f for f in self.checks if f.verdict == verdict)

    @property
    def tested(self) -> tuple[CheckResult, ...]:
        """Return the results that rest on a test of this log."""
        # How displays of one cluster hang together says how wide intervals are to be, not whether the log is fit.
        tested = {check.name for check in CHECKS if check.tested and "clusters" not in check.needs}
        return tuple(f for f in self.checks if f.verdict != "not applicable" and f.name in tested)

    @property
    def check_table(self) -> pa.Table:
        """`checks`, one row each: name, code, verdict, numbers, what they mean for a replay, and the remedy."""
        words = dict.fromkeys(("name", "code", "verdict", "number", "what", "remedy", "shows", "follows_from"), TEXT)
        numbers = dict.fromkeys(("statistic", "p_value", "effect"), NUMBER)
        return arrow_table({**words, **numbers}, ({**vars(one), "code": one.code} for one in self.checks))

    def __getitem__(self, name: str) -> CheckResult:
        """Return the result of a check.

        Raises
        ------
        UnknownNameError
            No check has this name.
        """
        by_name = {f.name: f for f in self.checks}
        if name not in by_name:
            raise UnknownNameError(f"No check is called {name!r}.", remedy=nearest(name, by_name))
        return by_name[name]

    def __repr__(self) -> str:
        bad = ", ".join(f"{f.name}: {f.verdict}" for f in self.checks if f.verdict in ("warn", "fail"))
        fit = "not fit" if not self.fit else "fit" if self.replay.enough else "too small"
        return f"CheckReport({self.dataset}: {fit} for replay{'; ' if bad else ''}{bad})"


def check_log(log: Log, options: CheckOptions, advance: Callable[[int], None] = lambda displays: None) -> CheckReport:
    """Return whether a log is fit for replay (`evaluator.check`); tell `advance` of every display once.

    Refunds are taken off the sale at once: tests of delays are of sales, tests of rewards of what is left of them.
    Outcomes that count as rewards have tests of their own (`evaluator.checks.result.Check.by_kind`).
    Where the logger kept the action of its users, what it chose is what it showed at their first displays, and checks
    of its choices look at these alone.
    Cost: about seven passes of few columns, one of them with the contexts, and three for each outcome that counts;
    memory grows with the events, and with the first displays of users whose action was kept.
    """
    log = refunds_at_once(log)
    users = read_users(log, options.cluster_by)
    level = options.false_alarms / number_tested(clustered=options.cluster_by is not None, users=users is not None)
    clusters = users
    if users is None or users.by != options.cluster_by:
        clusters = None if options.cluster_by is None else read_clusters(log, options.cluster_by)
    counted = [one.name for one in counted_outcomes(log.meta)]
    tables, units = _tables(log, options, level, advance), _units(log, users)
    of_choices, propensities = tables, tables[0].logged.propensities
    if units is not None and units.kept and chance_of_one(tables[0], units) < ALL_BUT_NOISE:
        from evaluator.replays.kept_units import first_displays

        of_choices = _tables(first_displays(log, units), options, level)
    return CheckReport(
        dataset=log.meta.name,
        displays=len(log),
        conversions=log.conversions.num_rows,
        actions=log.n_actions,
        propensity=propensities.kind,
        assumption=propensities.assumption,
        left_out=" ".join(filter(None, [log.meta.left_out, _unseen_by_some(counted)])),
        options=options,
        replay=in_replay(tables[0]),
        checks=with_causes(
            check.find(
                of_choices if check.of_choices else tables,
                level=level,
                seed=options.seed,
                clusters=clusters,
                users=users,
                units=units,
            )
            for check in CHECKS
        ),
    )


def _tables(
    log: Log, options: CheckOptions, level: float, advance: Callable[[int], None] = lambda displays: None
) -> list[Tables]:
    """Return the tables of a log's conversions, and of each other kind of events that counts."""
    counted = [one.name for one in counted_outcomes(log.meta)]
    by_kind = dict(zip(["", *counted], surveys([log, *map(log.of_outcome, counted)]), strict=True))
    surveyed = by_kind[""]
    mode = options.propensity
    if mode is None and log.meta.propensity == "absent":
        mode = "estimate"
    propensities = resolve_propensities(surveyed, mode)
    coordinates, rewards = cut_contexts(log), with_rewards(log, costs=False)
    followed = min(map(followed_displays, by_kind.values()))
    inputs = []
    for name, seen in by_kind.items():
        timeline = read_timeline(log, asked_of_timeline(seen))
        when = to_numpy(seen.log.conversions["time"]).astype(np.int64, copy=False)
        follow = follow_up(seen, timeline, when, level=level / len(by_kind))
        inputs.append(CheckInput(seen, timeline, follow, coordinates, propensities, name, followed, rewards))
    return [count(inputs[0], advance), *map(count_events, inputs[1:])]


def _units(log: Log, users: Column | None) -> Units | None:
    """Return the units that may keep their action: as the log says of its deployment, else its users; None for none."""
    asked = parse_kept(log.meta.deployment.get("keep_for"))
    if asked is None and users is not None:
        asked = KeptFor(users.by, users.by, None)
    if asked is None:
        return None
    from evaluator.replays.kept_units import read_units

    return read_units(log, asked)


def _unseen_by_some(counted: Sequence[str]) -> str:
    """Return the sentence on what some checks do not see of outcomes that count as rewards; empty without any."""
    if not counted:
        return ""
    names = ", ".join(of.name for of in OF_CONVERSIONS)
    return f"These checks see conversions alone, not {', '.join(counted)}: {names}."
