"""What numbers, a check of the log and an audit on twins of it say of the conditions under which a variant ships.

Check and audit are read as their `to_dict` gives them: what ran just now and what lies in a folder are one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from evaluator.checks.dependence import WEAR_OUT
from evaluator.checks.steadiness import MANY_LOST, OUTAGES
from evaluator.comparisons.differences import FoundDifferences, PlausibleDifferences, why_none
from evaluator.comparisons.expected import (
    FIRST_PART,
    Uplift,
    expected_difference,
    expected_share,
    find_uplift,
    share_of_baseline,
)
from evaluator.comparisons.rule import Look, ShipRule
from evaluator.comparisons.variants import CommonHorizon, line_of
from evaluator.comparisons.verdict import Candidate, Condition, Harm, Target, Verdict, decide, level_at
from evaluator.estimates.confidence import Interval, with_honest_kind
from evaluator.estimates.standard_errors import NEEDED
from evaluator.estimates.weighted_difference import NEEDED_OF_MONEY, WeightedDifference
from evaluator.options.deployment import EVENT
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.kind_values import GuardrailAnswer

# Beyond so many times the log nobody plans.
_MOST = 100.0
_Z80 = 0.8416212335729143
# How a bootstrap is asked for where none was wanted.
_BOOTSTRAP = 200
_BY_THE_RUN = "the number of rounds compared depended on the run", "a smaller `horizon`"
_NO_FOLLOW_UP = (
    "nothing says how long conversions take, so that young displays may count as failures",
    "an attribution_window in the spec, or a `window`",
)
# Of a comparison in which no number decides, so that nothing is checked; and before the check that another one needs.
UNCHECKED = Condition("checks", None, "the log was not checked")
TO_CHECK = Condition("checks", None, "the log is to be checked")


class _Judged(NamedTuple):
    """The difference of a candidate, also as a share of the baseline's value, and whether it is told to exceed a limit.

    Of a difference that does not say what to expect, nothing else is said: `known` is False. `decides` says whether it
    is a number by which a verdict is given, or that the displays tell and something else forbids: worth a check.
    """

    interval: Interval | None
    target: Target
    condition: Condition
    share: Interval | None = None
    known: bool = False
    decides: bool = False


def find_verdict(
    plans: Sequence[ReplayPlan],
    results: Sequence[ReplayResult],
    found: FoundDifferences,
    *,
    at: Sequence[ReplayResult],
    baseline: int,
    horizon: CommonHorizon,
    rule: ShipRule,
    plausible: PlausibleDifferences | None = None,
    look: Look | None = None,
    harmed: Mapping[int, tuple[Harm, ...]] = MappingProxyType({}),
) -> Verdict | None:
    """Return the verdict of a comparison of which the log is not yet checked; None without a variant to decide on.

    What decides between policies that do not learn is their weighted difference, or, where displays have no weights,
    what these runs earned; else the difference of expected values, from the common resampled logs. Each at 1 - alpha /
    m, for m variants; alpha is that of the look (`evaluator.comparisons.verdict.level_at`).

    Where a pair in `found` has neither a weighted nor a realised difference, its values cannot be compared, whatever is
    expected of them. `at` has the results as they were at the common horizon, with their values on resampled logs
    (`at_horizon`); `plausible` the differences with the largest rewards that are plausible, None where bounds are
    known; `harmed`, by variant, the groups for which it is worse than the baseline.
    """
    others = tuple(i for i in range(len(plans)) if i != baseline)
    if not others:
        return None
    judge = _Judge(plans, results, at, baseline, others, horizon, rule, look)
    candidates = []
    for i in others:
        judged = judge.difference(i, found)
        if plausible is not None and judged.target == "realised" and judged.condition.met is not None:
            judged = _with_plausible(judged, judge.difference(i, plausible.found), plausible)
        conditions = [judged.condition]
        if results[i].guardrails:
            conditions.append(_guardrails(results[i].guardrails))
        conditions += [_propensities(plans[i]), TO_CHECK if judged.decides else UNCHECKED]
        like = judge.not_told_from(i, found, judged.target)
        candidates.append(
            Candidate(
                line_of(i, results[i]), "wait", judged.interval, judged.target, tuple(conditions),
                judge.uplift(i, judged), like, harmed.get(i, ()),
            )
        )  # fmt: skip
    level, line = plans[0].options.level, line_of(baseline, results[baseline])
    return decide(candidates, rule=rule, level=level, baseline=line, look=look)


class _Judge(NamedTuple):
    """What the differences of a comparison are judged by; fields as of `find_verdict`, `others` the variants judged."""

    plans: Sequence[ReplayPlan]
    results: Sequence[ReplayResult]
    at: Sequence[ReplayResult]
    baseline: int
    others: tuple[int, ...]
    horizon: CommonHorizon
    rule: ShipRule
    look: Look | None

    def level(self, target: Target) -> float:
        """Return the level of each of the intervals that decide, adjusted for their number."""
        return 1.0 - (1.0 - level_at(self.look, target, self.plans[0].options.level)) / len(self.others)

    def difference(self, i: int, found: FoundDifferences) -> _Judged:
        """Judge the difference of a variant to the baseline by what decides between the two."""
        at, of = self.at[i], self.at[self.baseline]
        both, own = (self.plans[i], self.plans[self.baseline]), found.between(i, self.baseline)
        target: Target = "expected" if at.resampled and of.resampled else "realised"
        if (weighted := found.weighted_between(i, self.baseline, self.level("weighted"))) is not None:
            judged = self._weighted(i, found, weighted)
            return judged._replace(decides=judged.interval is not None or weighted.rewards >= NEEDED)
        realised = found.realised_between(i, self.baseline, self.level(target))
        if realised is None:
            return _unknown(None, target, own.why_not, "a baseline whose values can be compared")
        if target == "expected" and own.why_not_expected == FIRST_PART:
            return _unknown(None, target, FIRST_PART, "a longer `horizon`")
        if target == "expected":
            expected = expected_difference(at, of, level=self.level(target))
            if expected.interval is None or math.isnan(expected.interval.low):
                few = "the log has too few clusters for an interval of what to expect"
                more = (
                    "a longer log: on this one the two hardly ever differ"
                    if expected.why_not
                    else "a log of more clusters"
                )
                return _unknown(None, target, expected.why_not or few, more)
            if not self.horizon.fixed:
                return _unknown(expected.interval, target, *_BY_THE_RUN)
            interval = expected.interval
            share = expected_share(at, of, level=self.level(target))
        else:
            interval = realised
            share = share_of_baseline(
                partial(found.realised_between, i, self.baseline), self.results[self.baseline].value,
                level=self.level(target),
            )  # fmt: skip
            missing = _why_biased(both) or _why_runs_do_not_tell(both, self.horizon)
            if missing is not None:
                return _unknown(interval, target, *missing)
        if biased := _why_biased(both):
            return _unknown(interval, target, *biased)
        return self._interval(i, interval, target, share)._replace(decides=True)

    def _interval(self, i: int, interval: Interval, target: Target, share: Interval | None) -> _Judged:
        """Return whether a difference, at the adjusted level, lies above the limit of the rule.

        The difference is in reward per round, or, for a rule in per cent, a share of the baseline's value.
        """
        rule = self.rule
        asked, limit = share if rule.relative else interval, rule.limit_text
        if asked is None:
            what = "per cent mean nothing of a baseline whose value is not told to lie above 0"
            return _unknown(interval, target, what, "a rule in reward per round, such as `ship_if='uplift > 0'`")
        if asked.low > rule.limit:
            condition = Condition("difference", True, f"its interval lies above {limit}")
        elif asked.high <= rule.limit:
            condition = Condition("difference", False, f"its interval does not reach beyond {limit}")
        else:
            what = f"its interval holds {limit}" if rule.limit == 0 else f"its interval does not lie above {limit}"
            remedy = _more_displays(asked, rule.limit, int(self.plans[i].maturity.used))
            condition = Condition("difference", None, what, remedy)
        return _Judged(interval, target, condition, share, known=True)

    def _weighted(self, i: int, found: FoundDifferences, of: WeightedDifference) -> _Judged:
        """Return the same of a weighted difference, which knows whether either end rests on rewards enough."""
        if of.withheld:
            more = "right propensities, or a longer log of more rewards and users"
            return _unknown(None, "weighted", of.withheld, more)
        if not self.plans[i].maturity.known:
            return _unknown(of.value, "weighted", *_NO_FOLLOW_UP)

        def value_at(level: float) -> Interval | None:
            weighted = found.weighted_between(i, self.baseline, level)
            return None if weighted is None else weighted.value

        value = self.results[self.baseline].value
        share = share_of_baseline(value_at, value, level=self.level("weighted")) if of.value.n else None
        judged = self._interval(i, of.value, "weighted", share)
        met = judged.condition.met
        if not of.value.n:
            both = "both show every action with the same probability at every display: they are one policy"
            return judged._replace(condition=replace(judged.condition, what=both))
        if met is None or (of.low_known if met else of.high_known):
            return judged
        what = (
            f"its rewards differ in size and are worth {math.floor(of.rewards):,} of equal weight: fewer than "
            f"{NEEDED_OF_MONEY} tell nothing by this end of the interval"
        )
        return _unknown(of.value, "weighted", what, f"about {NEEDED_OF_MONEY / of.rewards:.2g} times as many displays")

    def uplift(self, i: int, judged: _Judged) -> Uplift | None:
        """Return a difference that says what to expect in the words of who decides."""
        difference, baseline = judged.interval, self.results[self.baseline]
        if not judged.known or difference is None or not difference.n:
            return None
        limit = self.rule.limit * baseline.value.estimate if self.rule.relative else self.rule.limit
        return find_uplift(self.plans[i], self.results[i], baseline, difference, judged.share, limit=limit)

    def not_told_from(self, i: int, found: FoundDifferences, target: Target) -> tuple[int, ...]:
        """Return the other variants from which a variant's difference, of the kind that decides, is not told from 0."""
        level = self.level(target)

        def difference_to(j: int) -> Interval | None:
            if target == "expected":
                return expected_difference(self.at[i], self.at[j], level=level).interval
            if target == "realised":
                return found.realised_between(i, j, level)
            weighted = found.weighted_between(i, j, level)
            return None if weighted is None else weighted.value

        intervals = {j: difference_to(j) for j in self.others if j != i}
        return tuple(j for j, of in intervals.items() if of is not None and of.low <= 0.0 <= of.high)


def pairs_to_expect(plans: Sequence[ReplayPlan], baseline: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs (variant, baseline) that are decided by expected values, and those that are ranked beside them.

    None, where no policy learns, or where a verdict would wait whatever is expected: so no log is resampled in vain.
    """
    of = plans[baseline]
    pairs = [
        (i, baseline) for i, plan in enumerate(plans)
        if i != baseline and _propensities(plan).met and not (_why_biased((plan, of)) or why_none(plan, of, 1))
    ]  # fmt: skip
    return tuple(pairs) if any(plans[i].policy.learns or of.policy.learns for i, _ in pairs) else ()


def _with_plausible(seen: _Judged, wider: _Judged, plausible: PlausibleDifferences) -> _Judged:
    """Return what is told whatever a display can earn: nothing where the largest plausible reward would change it."""
    interval = None if seen.interval is None else with_honest_kind(seen.interval)
    condition = seen.condition
    if wider.condition.met is condition.met:
        what = f"{condition.what}, also if a display can earn {plausible.bounds}"
        return seen._replace(interval=interval, condition=Condition("difference", condition.met, what))
    what = f"{condition.what} only if no display can earn {plausible.seen}: {plausible.bounds} is plausible"
    unknown = Condition("difference", None, what, plausible.remedy)
    return seen._replace(interval=interval, condition=unknown)


def _unknown(interval: Interval | None, target: Target, what: str, remedy: str) -> _Judged:
    return _Judged(interval, target, Condition("difference", None, what, remedy))


def _why_runs_do_not_tell(both: tuple[ReplayPlan, ReplayPlan], horizon: CommonHorizon) -> tuple[str, str] | None:
    """Return why what two runs earned decides nothing, and what would; None where it does."""
    if not horizon.fixed:
        return _BY_THE_RUN
    if any(plan.policy.learns for plan in both):
        other = "policies that learn fare otherwise in another run: these two say little of what to expect"
        return other, f"`bootstrap={_BOOTSTRAP}`"
    if any(plan.clusters is not None for plan in both):
        return "what these runs earned is of the clusters of this log, not of new ones", f"`bootstrap={_BOOTSTRAP}`"
    return None


def _why_biased(both: tuple[ReplayPlan, ReplayPlan]) -> tuple[str, str] | None:
    """Return why the values of either are not those that it would have live, and what mends it; None where they are."""
    for plan in both:
        if not plan.maturity.known:
            return _NO_FOLLOW_UP
        if plan.options.accept_quantile > 0.0:
            return "accepting by a quantile of the propensities buys rounds by bias", "no `accept_quantile`"
        if plan.sampler == "queue":
            return "the sampler queue is not right where rates move with time", "`sampler='keep'`"
        if plan.clock.kind == "wall" and plan.policy.learns:
            return "on the wall clock feedback comes in fewer rounds than it would live", "`clock='traffic'`"
    return None


def _more_displays(of: Interval, limit: float, displays: int) -> str:
    """Return between how many more displays would tell on 80 % of logs, if the difference is about what it is here.

    The half-width h shrinks with the root of the number of displays, and so does the standard error s, of which h is z
    times, z the normal quantile of the level: needed is h' + z_.8 h' / z < |d - limit|. The difference d is known to a
    standard error only, so that two numbers are given, for a difference of s further from the limit and of s less far.
    """
    from scipy.special import ndtri

    gap, half = abs(of.estimate - limit), (of.high - of.low) / 2.0
    error = half / float(ndtri(0.5 + of.level / 2.0))
    needed = half + _Z80 * error
    nearest = gap - error
    if not nearest > 0.0 or needed / nearest > math.sqrt(_MOST):
        return "a longer log: how much longer, this one does not tell"
    least, most = (_rounded(max((needed / far) ** 2 - 1.0, 0.0) * displays) for far in (gap + error, nearest))
    more = f"{least:,} to {most:,}" if least else f"up to {most:,}"
    return f"about {more} more displays like the {displays:,} replayed, if the difference is about what it is here"


def _rounded(number: float) -> int:
    """Return a number of displays in two digits."""
    digits = int(10 ** max(len(str(int(number))) - 2, 0))
    return math.ceil(number / digits) * digits


def _guardrails(answers: Sequence[GuardrailAnswer]) -> Condition:
    broken = [of.guardrail for of in answers if of.answer == "broken"]
    open_ = [of.guardrail for of in answers if of.answer == "cannot tell"]
    if broken:
        return Condition("guardrails", False, f"the guardrail {_listed(broken)} is broken")
    if open_:
        said = f"whether the guardrail {_listed(open_)} holds cannot be told"
        return Condition("guardrails", None, said, "more displays, for the guardrail's interval to leave its limit")
    return Condition("guardrails", True, f"{len(answers):,} of {len(answers):,} guardrails hold")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"'{one}'" for one in words)


def _propensities(plan: ReplayPlan) -> Condition:
    kind = plan.propensities.kind
    if kind == "logged":
        return Condition("propensities", True, "the propensities are the logged ones")
    if kind == "uniform":
        return Condition("propensities", True, "actions were logged uniformly at random")
    said = "propensities were estimated" if kind == "estimated" else "the log has no propensities"
    settle = (
        "the probability with which the logging policy chose the action shown, logged with every display; or, where it "
        "chose at random, `propensity='uniform'`"
    )
    return Condition("propensities", False, f"{said}, and nothing in the log tells whether they are right", settle)


def with_checks(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a verdict that knows whether the log is fit for replay.

    The check is what `evaluator.checks.run.CheckReport.to_dict` says of it.
    """
    failed = [of for of in found["checks"] if of["verdict"] == "fail"]
    warned = sum(of["verdict"] == "warn" for of in found["checks"])
    if failed:
        which = "the check" if len(failed) == 1 else "the checks"
        said = f"{which} {', '.join(of['name'] for of in failed)} failed: no number of this log can be believed"
        condition = Condition("checks", False, said, " ".join(of["remedy"] for of in failed if of["remedy"]))
    else:
        condition = _of_outage(found) or Condition(
            "checks", True, "no check of the log failed" + (f", {warned} warned" if warned else "")
        )
    verdict = verdict.with_condition([condition] * len(verdict.candidates))
    of_users = _of_users(found)
    return verdict if of_users is None else verdict.with_condition([of_users] * len(verdict.candidates))


def _of_outage(found: Mapping[str, Any]) -> Condition | None:
    """Return that many conversions may be lost, where a log is too short to tell an outage from a usual weekend."""
    gaps = next((of for of in found["checks"] if of["name"] == OUTAGES.name and of["verdict"] == "warn"), None)
    if gaps is None or gaps["numbers"]["lost_share"] < MANY_LOST:
        return None
    said = f"whether conversions are lost or stop on weekends is not known: {gaps['number']}, if they are"
    return Condition("checks", None, said, "a log of two weeks and more, or the missing conversions")


def _of_users(found: Mapping[str, Any]) -> Condition | None:
    """Return whether what users saw before is known not to matter, or allowed for; None where no users are known."""
    wear_out = next((of for of in found["checks"] if of["name"] == WEAR_OUT.name), None)
    column = None if wear_out is None else wear_out["numbers"].get("users")
    if wear_out is None or column is None:
        return None
    if wear_out["verdict"] == "pass":
        return Condition("users", True, f"rewards do not fall with what a {column} saw before")
    if wear_out["numbers"].get("earlier") == 0:
        return Condition("users", True, f"each {column} has one display")
    if found["options"].get("cluster_by") == column:
        return Condition("users", True, f"intervals are for new values of {column}")
    # A check that failed says itself what is to be done.
    settle = "" if wear_out["verdict"] == "fail" else f"`cluster_by='{column}'`"
    if wear_out["verdict"] == "not applicable":
        why = wear_out["what"]
        said = (
            f"whether rewards fall with what a {column} saw before is not known: {why[:1].lower()}{why[1:].rstrip('.')}"
        )
        return Condition("users", None, said, settle)
    return Condition("users", False, f"rewards fall with what a {column} saw before: {wear_out['number']}", settle)


def with_audit(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a verdict that knows whether replays are biased on such logs, of each candidate that the audit is about.

    An audit that shows no bias takes no ship away: what it could have detected says how much its silence means.

    The audit is what `evaluator.audits.result.Audit.to_dict` says of it.
    """
    return verdict.with_condition([_of_audit(verdict, of, found) for of in verdict.candidates])


def _of_audit(verdict: Verdict, of: Candidate, found: Mapping[str, Any]) -> Condition | None:
    """Return what an audit found of a candidate; None where it says nothing of it."""
    if failed := [one for one in found.get("not_in_twins", ()) if one["verdict"] == "fail"]:
        names = ", ".join(one["name"] for one in failed)
        what = f"the log failed the checks {names}, and the audit's twins are drawn without that"
        return Condition("audit", False, what, " ".join(one["remedy"] for one in failed if one["remedy"]))
    lines = (of.line, verdict.baseline)
    if any(line.window.replace(",", "") != str(found["options"]["window"] or "none") for line in lines):
        return None
    if any(line.learn_from and line.learn_from != found["options"]["learn_from"] for line in lines):
        return None  # what learns from another kind of events is not audited
    asked = {str(found["options"].get("learn_every") or EVENT), ""}
    if any(line.learns not in asked for line in lines):
        return None
    two = {line.policy for line in lines}
    policies = [one for one in found["policies"] if one["policy"] in two]
    if biased := [one["policy"] for one in policies if one["biased"]]:
        what = f"on twins of the log replays of {' and '.join(biased)} are biased"
        return Condition("audit", False, what, "another sampler, or a log whose propensities are larger")
    pair = next((one for one in found["pairs"] if {one["first"], one["second"]} == two), None)
    if pair is None:
        return None
    smallest = pair["expected" if of.target == "expected" else "alone"]["difference"]
    unseen = {
        "bias": max((one["detectable_bias"] or 0.0 for one in policies), default=0.0), "difference": smallest or 0.0,
    }  # fmt: skip
    silence = " or ".join(f"a {name} below {size:.2g}" for name, size in unseen.items() if size)
    silence = f"; {silence} could have gone unseen" if silence else ""
    return Condition("audit", True, f"replays show no bias on twins of the log{silence}")
