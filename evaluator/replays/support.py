"""What the log says too little of: rare actions, small propensities, a target's actions never shown, gaps, bursts.

*Gaps* are hours without conversions at times of day that usually have many: an outage, or a hole in the log. Displays
shown before and during a gap lose conversions and still count as judged, so values come out too low. The conversions'
own times are enough to see it, and they are in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluator.escape import shortened
from evaluator.findings import codes
from evaluator.findings.codes import CONVERSION_GAP
from evaluator.findings.finding import Finding
from evaluator.log.eligible import SetCodes
from evaluator.log.schema import ELIGIBLE, is_target, to_numpy
from evaluator.log.times import time_words
from evaluator.log.vectors_of_displays import TakenActions
from evaluator.policies.static import FixedAction
from evaluator.replays.rounds.propensity import Propensities, Thinning
from evaluator.replays.rounds.survey import Survey

if TYPE_CHECKING:
    from evaluator.replays.plan import ReplayPlan

# Rounds without an action, over those with it, from which it is worth a warning.
MUCH_SMALLER = 3.0
# A c that is so small a share of a uniform logger's is worth a scan of the propensities.
_TINY = 0.01
# Quantiles of the propensities that a replay could accept by.
_QUANTILES = (0.01, 0.05)
_NAMED = 5
_LISTED = 20
Ints = npt.NDArray[np.int64]
DAY, WEEK = 24, 168
# None is no chance where so many are usual: exp(-20) is 2e-9.
USUAL = 20
# Hours beyond this many (a century) come from times in the wrong unit.
_MOST_HOURS = 1_000_000
# Bursts: a policy that serves all the traffic plays one through before its conversions come, and knows them all when
# the next one begins. A replay has only a K-th of its rounds, but the delays of whole bursts: feedback is spread
# over the rounds otherwise than live, though as many rounds late on average. What is measured is how many displays
# follow one within a short or a median delay, at the most, over the mean number. `tests/statistical/test_bursts.py`:
# below 2.5, with daily rhythms of any amplitude, replays and live runs of `ucb1` agree; with ten minutes of a
# hundred times the traffic every six hours (6.8) they differ by a twentieth of the value. On the wall clock they
# agree there, too.
# Peak over mean from which it is said, and the fewest displays within the delay for which it is no chance.
BURSTY, FEWEST = 2.5, 50.0
_LEVELS = (0.25, 0.5)


def acceptances(matched: Thinning, usable: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the probability with which rejection and keep accept a display of each action's at least, shape (K,).

    inf for an action without a usable display: it decides nothing for the others. Where nothing is thinned it is the
    share of the action among the usable displays, shape (K,), which no outcome moves.
    """
    share = np.where(usable > 0, usable / max(int(usable.sum()), 1), np.inf)
    if matched.propensities.rule is None:
        return share
    smallest = np.where(np.isnan(matched.propensities.smallest), np.inf, matched.propensities.smallest)
    c = np.maximum(matched.c, smallest)
    c = np.where(usable > 0, c, np.inf)
    return np.minimum(c, share) if matched.propensities.even else c


def least_acceptance(matched: Thinning, usable: npt.NDArray[np.int64]) -> float:
    """Return the smallest of `acceptances`; one c for all actions where displays are rejected by it."""
    least = float(acceptances(matched, usable).min())
    if matched.propensities.rule is not None:
        least = min(least, float(matched.c.min(where=usable > 0, initial=1.0)))
    return min(least, 1.0)


def leaves_out(plan: ReplayPlan) -> str:
    """Return the option that leaves out the actions without a usable display.

    ``used`` where reading the log can tell which these are: they were never shown, or not followed for the attribution
    window of the log itself. Else, and where a part of the log was put aside, the labels of the others.
    """
    survey, usable = plan.survey, plan.usable
    if not plan.has_split and (survey.log.meta.attribution_window is not None or not survey.shown[usable == 0].any()):
        return "`actions='used'`"
    kept = [survey.log.labels[k] for k in np.flatnonzero(usable)]
    return f"`actions='{','.join(kept)}'`" if len(kept) <= _LISTED else "`actions` with the labels of the others"


def unusable_warning(plan: ReplayPlan) -> list[Finding]:
    """Return a warning if some action has no display that can be judged; otherwise none."""
    labels = plan.log.labels
    none = np.flatnonzero(plan.usable == 0)
    if not len(none):
        return []
    one = len(none) == 1
    named = ", ".join(labels[k] for k in none[:_NAMED]) + (f" and {len(none) - _NAMED:,} more" * (len(none) > _NAMED))
    young = int(plan.survey.shown[none].sum())
    why = (
        f"{young:,} displays of {'it' if one else 'them'} came too late in the log to be used"
        if young
        else f"{'it was' if one else 'they were'} never shown"
    )
    return [
        codes.UNUSABLE_ACTIONS.found(
            f"Action{'' if one else 's'} {named} {'has' if one else 'have'} no usable display: {why}. Nothing is "
            f"known of {'its value' if one else 'their values'}, the best fixed action is that of the others, and a "
            f"policy that chooses {'it' if one else 'one of them'} waits in vain.",
            f"{leaves_out(plan)} leaves {'it' if one else 'them'} out.",
            about=labels[none[0]] if one else "",
            actions=len(none),
        )
    ]


def rarest_warning(plan: ReplayPlan) -> list[Finding]:
    """Return a warning if one action makes the rounds many times fewer than the other actions would; otherwise none.

    Of the sampler keep it is asked where the rounds that come all but surely are what policies are told or compared at.
    """
    survey, matched, usable, sampler, horizon = (
        plan.survey,
        plan.matched,
        plan.usable,
        plan.sampler,
        plan.options.horizon,
    )
    if sampler == "logged" or np.count_nonzero(usable) < 3:
        return []
    n = int(usable.sum())
    of_action = np.where(usable > 0, usable, np.inf) if sampler == "queue" else acceptances(matched, usable) * n
    order = np.argsort(of_action, kind="stable")
    rarest = int(order[0])
    with_it, without = float(of_action[rarest]), min(float(of_action[order[1]]), n)
    if with_it * MUCH_SMALLER > without or (horizon is not None and horizon <= with_it):
        return []
    by = f"top:{np.count_nonzero(usable) - 1}" if usable[rarest] == usable[usable > 0].min() else "naming the others"
    fewer = f"Leave it out by `actions='{by}'`"
    other = {
        "queue": ", or ask for a `horizon`",
        "keep": ", or ask for a `horizon`",
        "rejection": ", or take a larger c by `accept_quantile`, at the price of bias"
        if plan.per_display
        else ", or use `sampler='keep'`, which waits for it only when it is chosen",
    }[sampler]
    known = sampler != "queue" and matched.propensities.rule is not None
    least = f", smallest propensity {matched.propensities.smallest[rarest]:.2g}" if known else ""
    return [
        codes.RAREST_ACTION.found(
            f"Action {survey.log.labels[rarest]} ({usable[rarest]:,} displays{least}) decides how many rounds there "
            f"are: about {with_it:,.0f} of {n:,} displays, without it about {without:,.0f}.",
            f"{fewer}{other}.",
            about=survey.log.labels[rarest],
            rounds=with_it,
            without=without,
        )
    ]


class BindingDisplay(NamedTuple):
    """The display whose propensity makes the accepted displays many times fewer than those of nearly all others would.

    `cause` is a clause that names the propensity, its display and action, and how many displays it lets be accepted;
    `remedy` one that says what accepts more, and how many.
    """

    cause: str
    remedy: str


def binding_display(plan: ReplayPlan) -> BindingDisplay | None:
    """Return the display that decides how many are accepted, where few others have as small a propensity; else None.

    Cost: nothing, but where c is below a hundredth of a uniform logger's: once one scan, and 8 bytes a display.
    """
    found, matched = plan.matched.propensities, plan.matched
    c = np.where(plan.usable > 0, matched.c, np.inf)
    action = int(c.argmin())
    if found.rule is None or matched.clips or not c[action] * len(c) < _TINY:
        return None
    # Where each action has a c of its own, its own displays alone.
    only = action if c.max(where=np.isfinite(c), initial=0.0) > c[action] else None
    first, shown, smallest, among = plan.survey.once(
        ("smallest propensities", found.rule, only), lambda: _smallest_propensities(plan.survey, found, only)
    )
    n = len(plan.rounds)
    for quantile, wider in zip(_QUANTILES, among, strict=True):
        if wider >= MUCH_SMALLER * smallest:
            accepted = min(wider, 1.0) * n
            more = f"`accept_quantile={quantile:g}`, which accepts about {accepted:,.0f} at the price of bias"
            return BindingDisplay(
                f"the smallest propensity, {smallest:.2g} (display {first + plan.before}, action "
                f"{plan.log.labels[shown]}), decides how many displays are accepted: about {smallest * n:,.2g} of "
                f"{n:,}",
                f"{more}, or to correct that propensity if it is a mistake of the log",
            )
    return None


def _smallest_propensities(
    survey: Survey, found: Propensities, only: int | None
) -> tuple[int, int, float, tuple[float, ...]]:
    """Return the first display with the smallest propensity, its action, that propensity, and `_QUANTILES` of all.

    Of all displays, or of those of one action.
    """
    log, n = survey.log, len(survey.log) if only is None else int(survey.shown[only])
    every, filled, display, shown = np.empty(n), 0, -1, -1
    smallest = np.inf
    for first, batch in log.batches(list(dict.fromkeys(("action", *found.reads)))):
        action, p = batch["action"], found.of(batch)
        at = np.arange(len(p)) if only is None else np.flatnonzero(action == only)
        mine = p[at]
        every[filled : filled + len(mine)] = mine
        filled += len(mine)
        if len(mine) and mine.min() < smallest:
            least = at[int(mine.argmin())]
            display, shown, smallest = first + int(least), int(action[least]), float(mine.min())
    places = [int(quantile * n) for quantile in _QUANTILES]
    every.partition(places)
    return display, shown, smallest, tuple(float(every[place]) for place in places)


def said_of_index(plan: ReplayPlan) -> list[Finding]:
    """Return the warning of a fixed action whose index is the label of another one."""
    policy, labels = plan.policy, plan.log.labels
    if not isinstance(policy, FixedAction) or not isinstance(policy.action, int):
        return []
    number = str(policy.action)
    if number not in labels or labels[policy.index] == number:
        return []
    return [
        codes.INDEX_OR_LABEL.found(
            f"{policy.spec} shows the action with index {number}, {labels[policy.index]!r}; another action has the "
            f"label {number!r}.",
            f'to mean the label, write it in quotes: {policy.name}:action="{number}"',
            about=policy.spec,
        )
    ]


def _named(plan: ReplayPlan, shown: npt.NDArray[np.bool_]) -> str:
    """Return the labels that a policy's column has and the log never shows, the most frequent ones first."""
    labels, counts = [label for label, any_ in zip(plan.log.labels, shown, strict=True) if any_], Counter[str]()
    for first, chunk in plan.log.arrays(plan.policy.reads):
        taken = chunk[: max(plan.maturity.used - first, 0)]
        strange = taken.filter(pc.invert(pc.is_in(taken, pa.array(labels, pa.string()))))
        counts.update({one["values"]: one["counts"] for one in pc.value_counts(strange).to_pylist()})
    most = counts.most_common(_NAMED)
    more = f", and {len(counts) - len(most):,} more" if len(counts) > len(most) else ""
    return f" ({', '.join(f'{shortened(label)!r} {n:,} times' for label, n in most)}{more})"


def said_of_target(plan: ReplayPlan) -> list[Finding]:
    """Return the warnings of a policy whose actions are a column of the log: those that no display can match."""
    log, name = plan.log, plan.policy.reads
    if not is_target(name) or not pa.types.is_string(log.schema.field(name).type):
        return []
    taken, shown = TakenActions(log, name), plan.survey.shown > 0
    unknown = outside = 0
    for first, batch in log.batches(["action", *([] if plan.sets is None else [ELIGIBLE])], coded=True):
        n = min(len(batch["action"]), plan.maturity.used - first)
        if n <= 0:
            break
        action = taken.following(len(batch["action"]))[:n]
        known = (action >= 0) & shown[action]
        unknown += int(n - known.sum())
        if plan.sets is not None:
            sets, at = batch[ELIGIBLE][:n], action[known]
            assert isinstance(sets, SetCodes)
            bits = sets.distinct[np.asarray(sets)[known], at // 8]
            outside += int(((bits >> (at % 8).astype(np.uint8) & 1) == 0).sum())
    used, spec = plan.maturity.used, plan.policy.spec
    said = []
    for count, code, what in (
        (unknown, codes.TARGET_NEVER_SHOWN, f"that the log never shows{_named(plan, shown) if unknown else ''}"),
        (outside, codes.TARGET_NOT_ELIGIBLE, "that is not eligible there"),
    ):
        if count:
            said.append(
                code.found(
                    f"At {count:,} of {used:,} displays ({count / used:.1%}) {spec} takes an action {what}. The values "
                    "are those of a policy that shows one of the others at random there.",
                    about=spec,
                    displays=count,
                    share=count / used,
                )
            )
    return said


class ConversionGap(NamedTuple):
    """Hours in a row without a conversion, from tick `start` until `end`.

    `usual` conversions came in the same hours of the days before and after, the smaller of the two. `weekly` says
    whether the same hours of a week before or after had as many, too; False where the log is too short to tell, so that
    the gap may be a usual weekend.
    """

    start: int
    end: int
    hours: int
    usual: int
    weekly: bool


# Of surveys that are in use: the variants of a study share one.
_FOUND: WeakKeyDictionary[Survey, list[ConversionGap]] = WeakKeyDictionary()


def conversion_gaps(survey: Survey) -> list[ConversionGap]:
    """Return the gaps in a log's conversions, in order of time.

    A run of hours without a conversion is a gap when the same hours of the nearest days before it had `USUAL` or more,
    of those after it as well and, in logs that hold them, of the weeks before and after. Nights, weekends, and traffic
    that grows or ends are none. Cost, once a survey: a sort of the hours that have conversions.
    """
    if survey not in _FOUND:
        _FOUND[survey] = _find_gaps(survey)
    return _FOUND[survey]


def _find_gaps(survey: Survey) -> list[ConversionGap]:
    seconds = survey.log.meta.tick_seconds
    if seconds is None or seconds > 3600.0:
        return []
    hour = max(round(3600.0 / seconds), 1)
    when = to_numpy(survey.log.conversions["time"]).astype(np.int64, copy=False)
    # The first of each display: a basket, or refunds booked in one night, are one event. None precedes its display.
    once = (np.diff(survey.display, prepend=-1) != 0) & (when >= survey.shown_at)
    if not once.any():
        return []
    of = when[once] // hour
    first = int(of.min())
    if int(of.max()) - first >= _MOST_HOURS:
        return []
    counts = np.bincount(of - first)
    total = np.concatenate(([0], np.cumsum(counts)))
    backwards, hours = total[-1] - total[::-1], len(counts)
    full = np.flatnonzero(counts)
    gaps = []
    for at in np.flatnonzero(np.diff(full) > 1):
        start, end = int(full[at]) + 1, int(full[at + 1])
        # What the days after let expect is the same of the log seen backwards.
        around = [_before(total, start, end), _before(backwards, hours - end, hours - start)]
        weeks = [
            int(total[end + shift] - total[start + shift])
            for shift in (-WEEK, WEEK)
            if start + shift >= 0 and end + shift < len(total)
        ]
        usual = int(min(around))
        if usual >= USUAL and all(week >= USUAL for week in weeks):
            gaps.append(ConversionGap((start + first) * hour, (end + first) * hour, end - start, usual, bool(weeks)))
    return gaps


def gap_warnings(survey: Survey) -> list[Finding]:
    """Return a warning of the longest gap of a log's conversions; none without."""
    gaps = conversion_gaps(survey)
    if not gaps:
        return []
    longest = max(gaps, key=lambda gap: gap.usual)
    times = "time" if len(gaps) == 2 else "times"
    more = f" (and {len(gaps) - 1} more {times})" if len(gaps) > 1 else ""
    when = gap_words(survey, longest, start=int(survey.shown_at[0]))
    return [
        CONVERSION_GAP.found(
            f"No conversion comes {when}{more}, where the same hours of the days around have {longest.usual:,} or "
            "more: an "
            "outage, or a hole in the log. Displays of that time and before it lose conversions but count as judged, "
            "so values are too low.",
            "evaluate check says which displays to keep.",
            hours=longest.hours,
            usual=longest.usual,
        )
    ]


def gap_words(survey: Survey, gap: ConversionGap, *, start: int) -> str:
    """Return from when to when a gap lasts; days are counted from the time `start`."""
    seconds = survey.log.meta.tick_seconds
    return f"from {time_words(gap.start, seconds, start=start)} to {time_words(gap.end, seconds, start=start)}"


def _before(total: Ints, start: int, end: int) -> float:
    """Return what the days before let expect: the same hours of the day before or, of a long run, the mean of the days.

    Where the log begins less than a day before: the day after, times what came before the run in shares of the same
    hours a day later, so that a log whose conversions only begin to come expects few.
    """
    long = end - start
    if long >= DAY:
        reach = min(-(-long // DAY), start // DAY) * DAY
        return float(total[start] - total[start - reach]) * float(long / reach) if reach else 0.0
    if start >= DAY:
        return float(total[end - DAY] - total[start - DAY])
    if end + DAY >= len(total) or total[start + DAY] - total[DAY] < USUAL:
        return 0.0
    share = min(float(total[start] / (total[start + DAY] - total[DAY])), 1.0)
    return float(total[end + DAY] - total[start + DAY]) * share


def peak_within_delay(survey: Survey) -> tuple[int, float]:
    """Return a delay in ticks, and the most displays that follow one within it, over the mean number.

    The number at the most is taken three standard deviations of chance lower. Of the first quartile and the median of
    the delays, the one with the larger ratio. The ratio is nan where it would
    be chance: few displays within the delay, delays of no more than ten time stamps, or no conversions.
    """
    if not len(survey.display) or not np.isfinite(survey.rate):
        return 0, float("nan")
    found = 0, float("nan")
    for delay in np.quantile(survey.delay_ticks, _LEVELS, method="lower").tolist():
        if survey.rate * delay >= FEWEST and not survey.blurs(delay):
            longest = survey.longest_span(delay)
            # The largest of many Poisson counts lies some deviations above what the traffic brings.
            ratio = (longest - 3.0 * np.sqrt(longest)) / (survey.rate * delay)
            found = found if found[1] >= ratio else (delay, ratio)
    return found
