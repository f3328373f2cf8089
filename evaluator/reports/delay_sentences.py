"""The conclusions of a study of delays in sentences: a verdict and its reasons."""

from __future__ import annotations

import math
from typing import NamedTuple

from evaluator.delays.study.changes import POWER, DelayDrift
from evaluator.delays.study.fitting import narrow_components
from evaluator.delays.study.joint_rate import JointStudy
from evaluator.delays.study.result import FEWEST, DelayStudy, since_words
from evaluator.delays.study.result import words as duration
from evaluator.delays.study.surrogates import Surrogate, SurrogateShare
from evaluator.estimates.confidence import Interval
from evaluator.log.times import Periods
from evaluator.reports.document import Words, lines, run, words
from evaluator.reports.numbers import significant_text

_NAMED = 5


class Conclusion(NamedTuple):
    """A verdict, the rest of its line, and further lines."""

    verdict: str
    rest: str
    more: tuple[str, ...] = ()
    alarming: bool = False

    def __str__(self) -> str:
        return "; ".join((f"{self.verdict}{self.rest}", *self.more))

    @property
    def words(self) -> Words:
        """The conclusion with its verdict in bold."""
        return words(run(self.verdict, "bold yellow" if self.alarming else "bold"), lines(self.rest, *self.more))

    @property
    def brief(self) -> Words:
        """The conclusion without its further lines, unless it is alarming."""
        return (self if self.alarming else self._replace(more=())).words


def groups_verdict(study: DelayStudy) -> Conclusion:
    """Return the conclusion on whether all groups have the same delays."""
    test = study.heterogeneity
    if test is None:
        return Conclusion("not compared", f": {study.missing['heterogeneity']}")
    rest = (
        f": statistic {significant_text(test.statistic, 4)}, p = {test.p:.2g}, {len(test.groups)} groups tested on "
        f"{test.rows:,} conversions, the {test.compared} largest in pairs"
    )
    more = []
    differing = [pair for pair in test.pairs if pair.adjusted_p <= test.level]
    if differing:
        names = ", ".join(f"{pair.first} and {pair.second}" for pair in differing[:_NAMED])
        others = f" and {len(differing) - _NAMED} more pairs" if len(differing) > _NAMED else ""
        more.append(f"{test.groups_differing} of {test.compared} differ from another: {names}{others}")
        more.append("policies that assume one delay law for all arms may favour the fast ones")
    if test.pooled:
        more.append(f"{len(test.pooled)} groups of fewer than {FEWEST} conversions are pooled in the test")
    return Conclusion("the groups differ" if test.p <= test.level else "no difference shown", rest, tuple(more))


def spike_sentences(study: DelayStudy) -> list[str]:
    """Return sentences on the components of the best mixture that are only ties of delays."""
    if study.choice is None:
        return []
    return [
        f"a component of the mixture ({spike.share:.0%} of it) is a spike at {duration(study.rows, spike.delay)}, no "
        "wider than the fit or the time stamps can tell: it may be ties, a rule of some system, or the stamps, and is "
        "no evidence of a subpopulation with a law of its own"
        for spike in narrow_components(study.choice.comparison.best_fit)
    ]


def tail_sentence(study: DelayStudy) -> str:
    """Return a sentence with the tail index and its interval."""
    tail = study.tail
    if tail is None:
        return study.missing["tail"]
    text = (
        f"{tail.alpha:.3g} [{tail.low:.3g}, {tail.high:.3g}] if the tail is a power law, which is not tested, above "
        f"{duration(study.rows, tail.threshold)} "
    )
    return text + f"({tail.exceedances:,} delays)" + "".join(f"; {note}" for note in tail.notes)


def drift_verdict(study: DelayStudy) -> Conclusion:
    """Return the conclusion on whether delays change along the log."""
    drift, periods = study.drift, study.rows.periods
    if drift is None or periods is None:
        return Conclusion(study.missing["drift"], "")
    verdict = "no change shown"
    if drift.changed:
        after = "" if drift.change_after is None else periods.label(drift.change_after, study.rows.tick_seconds)
        named = f"{periods.name} {after}" if after.isdecimal() else after
        verdict = f"delays change, most likely after {named}"
    rest = f" (p = {drift.p:.2g}; flagged without drift {drift.false_alarms:.0%} of the time)"
    if not drift.changed:
        rest = f" (p = {drift.p:.2g}){_could_be_shown(study, drift, periods)}"
    doubt = drift.changed and study.rows.deduplicated
    more = ["de-duplication alone can do this (see above): look at `deduplicate='all'`"] if doubt else []
    if study.newest is not None:
        new = study.newest
        high = f"{new.high:.2f}" if math.isfinite(new.high) else "more than 20"
        more.insert(
            0,
            f"displays since {since_words(study.rows, new)} have delays {_times(new.ratio)} as long as those before "
            f"({new.low:.2f} to {high} at {new.fit.confidence:.0%}), if short and long ones changed alike",
        )
    return Conclusion(verdict, rest, tuple(more), drift.changed)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if math.isfinite(ratio) else "more than 20 times"


def _could_be_shown(study: DelayStudy, drift: DelayDrift, periods: Periods) -> str:
    """Return a clause on the changes that the test finds on 4 of 5 such logs."""
    detectable = [change for change in drift.shown if change.ratio is not None]
    if not detectable:
        return ": such a log is too small to show a change, even of delays that become 20 times as long"
    changes: list[str] = []
    for change in detectable:
        after = periods.label(change.after, study.rows.tick_seconds)
        named = f"{periods.name} {after}" if after.isdecimal() else after
        changes.append(f"{change.ratio:.2f} times{'' if changes else ' as long'} after {named}")
    worst = max(change.ratio for change in detectable if change.ratio is not None)
    share = float(study.fit(study.advice.recommended / worst))
    sizes = f"{', or '.join(changes)}, would be found on {POWER:.0%} of such logs"
    return f": {sizes}; the recommended window would keep {share:.0%} then"


def surrogate_conclusion(study: DelayStudy, of: Surrogate, rewards: str) -> Conclusion:
    """Return how much earlier than the reward an outcome comes, how often the reward follows it, and what to do."""
    rows = study.rows
    rest = f": half come by {duration(rows, of.median)}, half of the {rewards} by {duration(rows, of.reward_median)}"
    windows = [(of.window, of.outcome), (of.reward_window, rewards)]
    known = [f"{duration(rows, ticks)} for {name}" for ticks, name in windows if math.isfinite(ticks)]
    how = f"long enough ({', '.join(known)})" if known else "to their end"
    more = [
        f"{of.followed:,} of {of.displays:,} displays were followed {how}; {of.with_outcome:,} of them have "
        f"{of.outcome}, {of.with_reward:,} have {rewards}",
        f"{rewards} follow on {_share(of.followed_by_reward)} of the displays with {of.outcome}"
        f"{_extremes(of.followed_by_reward)}",
        f"{of.outcome} comes first on {_share(of.reward_preceded)} of the displays with {rewards}"
        f"{_extremes(of.reward_preceded)}",
        _remedy(of),
    ]
    if of.with_outcome and of.with_reward:
        more.append("intervals take displays as independent; they are too narrow where users have several")
    return Conclusion("earlier" if of.earlier else "not earlier", rest, tuple(more), of.earlier and of.differs)


def surrogate_clause(of: Surrogate, rewards: str) -> str:
    """Return in a clause what an outcome that comes earlier says of the reward, and what to do about it."""
    share, extremes = of.followed_by_reward, ""
    if share.least is not None and share.most is not None:
        least, most = (f"{one.share.estimate:.1%} of {one.action}" for one in (share.least, share.most))
        extremes = f", from {least} to {most}"
    return (
        f"earlier than {rewards}, which follow on {_share(share)} of the displays with {of.outcome}{extremes}; "
        f"{_remedy(of)}"
    )


def _share(of: SurrogateShare) -> str:
    return _interval(of.pooled) if of.pooled.n else "an unknown share"


def _interval(of: Interval) -> str:
    return f"{of.estimate:.1%} [{of.low:.1%}, {of.high:.1%}]"


def _extremes(share: SurrogateShare) -> str:
    """Return the smallest and the largest share of an action."""
    if share.least is None or share.most is None:
        return ""
    least, most = (f"{_interval(one.share)} of {one.action}" for one in (share.least, share.most))
    return f", from {least} to {most} (intervals of {share.actions} actions at once)"


def _remedy(of: Surrogate) -> str:
    """Return what the shares of the actions mean for a policy that learns from the outcome."""
    if not of.foretells:
        all_displays = of.with_reward / max(of.followed, 1)
        return f"it is not shown to foretell the reward, which comes on {all_displays:.1%} of all displays"
    if of.differs:
        what = "a share depends on the action, so that it may mislead a policy (clickbait): compare"
        return f"{what} `learn_from='sales,{of.outcome}'`"
    if of.followed_by_reward.differs is None or of.reward_preceded.differs is None:
        return f"fewer than two actions have {FEWEST} such displays, so that it may mislead a policy unseen"
    return f"no difference between actions is shown: `learn_from='{of.outcome}'` teaches a policy by it"


def joint_sentences(study: DelayStudy, joint: JointStudy) -> list[str]:
    """Return sentences on what the joint model corrects for, and on whether it fits."""
    until = "conversions however late, as the law goes on"
    if joint.window is not None:
        until = f"conversions within the attribution window of {duration(study.rows, joint.window)}"
    sentences = [
        f"corrected: {until}, of these displays; traffic to come varies more than the interval",
        f"mean delay at the average context: {duration(study.rows, joint.mean_delay)}",
    ]
    return [*sentences, *joint.notes, _calibration(study, joint)]


def _calibration(study: DelayStudy, joint: JointStudy) -> str:
    check = joint.calibration
    by, part = check.worst
    low, high = (f"{end:.2%}" if by == "rate" else duration(study.rows, end) for end in (part.low, part.high))
    span = f"predicted rates of {low} to {high}" if by == "rate" else low if low == high else f"{low} to {high}"
    tested = (
        f"conversions so far were compared with those expected, in {len(check.by_rate)} parts of the displays by "
        f"predicted rate and {len(check.by_age)} by age: p = {check.p:.2g}; furthest off are displays "
        f"{'with' if by == 'rate' else 'followed for'} {span}: {part.seen:,} converted, {part.expected:,.0f} expected"
    )
    if not check.holds:
        return f"the model does not hold: its corrected rates may be off ({tested})"
    return (
        f"nothing speaks against the model ({tested}). Such a test finds a middling part that is off by "
        f"{check.detectable:.0%} on 4 of 5 logs, smaller differences less often, and nothing about conversions later "
        "than the displays were followed"
    )
