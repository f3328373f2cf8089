"""The document of a study of delays: what the log can see, how late conversions come, and which window to use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evaluator.delays.study.changes import POWER, DelayDrift
from evaluator.delays.study.fitting import narrow_components
from evaluator.delays.study.goodness import SCALES
from evaluator.delays.study.heterogeneity import LEVELS
from evaluator.delays.study.joint_rate import JointStudy
from evaluator.delays.study.result import FEWEST, DelayStudy, PeriodRate, between, period_words
from evaluator.delays.study.result import words as duration
from evaluator.delays.study.surrogates import Surrogate, SurrogateShare
from evaluator.estimates.confidence import Interval
from evaluator.log.delay_rows import DelayRows
from evaluator.reports import document as doc
from evaluator.reports.numbers import significant_text

_PERIODS_SHOWN = 10
_RATE = "Conversion rate on context"
# Sections of the short form up to the windows: the answer, which log, the windows.
_AFTER_WINDOWS = 3
_NAMED = 5


class _Kind(NamedTuple):
    """Words for the events of a study: what they are, and what is said of them once."""

    name: str
    about: str = ""


def document(study: DelayStudy, layout: doc.Layout) -> doc.Document:
    """Return the document of a study, its answer first: of conversions or of sales, then refunds and each outcome."""
    build = _page if layout.page else _whole if layout.full else _brief
    kinds = [(study, _Kind("conversions" if study.refunds is None else "sales"))]
    if study.refunds is not None:
        kinds.append((study.refunds, _Kind("refunds", " (conversions with a value below 0)")))
    kinds += [(of, _Kind(f"{name} events", " (called conversions below)")) for name, of in study.outcomes.items()]
    sections = [*build(study, kinds[0][1], layout)]
    if kinds[1:] and build is _brief:
        others = [_other(study, of, kind, kinds[0][1].name) for of, kind in kinds[1:]]
        sections.insert(_AFTER_WINDOWS, doc.section("Other events", doc.names(others)))
    if study.surrogates and build is not _brief:
        found = ((of.outcome, surrogate_conclusion(study, of, kinds[0][1].name).words) for of in study.surrogates)
        before = doc.section("Outcomes before the reward", doc.names(found))
        early = "how early they come, and how often the reward follows"
        sections += doc.fold("Outcomes before the reward", early, [before]) if layout.page else [before]
    for of, kind in kinds[1:] if build is not _brief else ():
        # The answer is of the first kind; what it would be of others stands among the numbers.
        more = build(of, kind, layout)
        plain = [replace(part, id="" if part.id in (doc.ANSWER, "log") else part.id) for part in more]
        about = [part for part in plain if not part.charts]
        sections += doc.fold(f"The {kind.name}", "how late they come", about) if layout.page else plain
    if not layout.full:
        groups = "" if study.rows.group is None else "the groups"
        periods = "" if study.rows.periods is None else "the periods"
        sections.append(doc.name_omitted("the quantiles", "the laws", "the tail", groups, periods))
    return doc.Document("delays", f"Delays of conversions in {study.rows.name}", tuple(sections))


def _other(study: DelayStudy, of: DelayStudy, kind: _Kind, rewards: str) -> tuple[str, doc.Wordable]:
    """Return what the short form says of another kind than the first: how late they come, and their window.

    Of an outcome that comes earlier than the reward, also how often the reward follows it.
    """
    late = next(q for q in of.quantiles if q.level == 0.9)
    interval = between(of.rows, late.low, late.high)
    rest = f" until 90 % of {of.conversions:,} are in {interval}; window: {_window(of, of.advice.recommended)}"
    earlier = [one for one in study.surrogates if one.earlier and study.outcomes[one.outcome] is of]
    clauses = doc.lines("", *(surrogate_clause(one, rewards) for one in earlier)) if earlier else ""
    return kind.name, doc.words(doc.run(duration(of.rows, late.corrected), "bold"), rest, clauses)


def _log(study: DelayStudy, kind: _Kind, layout: doc.Layout) -> doc.Section:
    displays = "" if study.rows.displays is None else f" of {study.rows.displays:,} displays"
    known = layout if layout.dates else replace(layout, dates=_dates(study))
    events = f"{study.conversions:,} {kind.name}{kind.about}{displays}"
    return doc.which_log(study.rows.name, f"delays of {events}", layout=known)


def _dates(study: DelayStudy) -> str:
    """Return the first and the last day of the displays; an empty text where the log has no dates."""
    periods = study.rows.periods
    if periods is None or periods.day is None:
        return ""
    days = [periods.label(day, study.rows.tick_seconds) for day in (0, len(periods.displays) - 1)]
    return "" if days[0].isdecimal() else " to ".join(days)


def _answer(study: DelayStudy, kind: _Kind, layout: doc.Layout) -> doc.Section:
    """Return the answer: when 90 % of the conversions are in, how many are still to come, and which window to take."""
    rows, advice = study.rows, study.advice
    late, half = (next(q for q in study.quantiles if q.level == level) for level in (0.9, 0.5))
    level = f"{100 * study.fit.confidence:g} %"
    given = "" if rows.limit is None else f", of those that come within {duration(rows, study.fit.longest)}"
    interval = between(rows, late.low, late.high)
    sentences: list[doc.Wordable] = [
        doc.words(
            f"{level} interval {interval}{given}; half are in after ", doc.run(duration(rows, half.corrected), "bold"),
            f". {_still_to_come(study)}",
        ),
        doc.words("Recommended window: ", doc.run(_window(study, advice.recommended), "bold"), f", {advice.reason}."),
    ]  # fmt: skip
    changes = study.drift is not None and study.drift.changed
    if not layout.page:
        sentences.append(doc.words("Law: ", study.missing["laws"] if study.choice is None else study.choice.verdict))
    tiles = [(duration(rows, half.corrected), f"until half of the {kind.name} are in")]
    tiles.append((duration(rows, advice.recommended), "is the recommended window"))
    share = _share_seen(study)
    if share is not None and rows.limit is not None:
        tiles.append((_percent_left(share), "of the conversions of these displays are still to come"))
    if study.choice is not None:
        best = study.choice.comparison.best_fit.family
        tiles.append(
            (best if study.choice.fits else "no law", "fits best" if study.choice.fits else f"fits; {best} is nearest")
        )
    if changes:
        rests = [doc.mark(None, drift_verdict(study).verdict)]
    elif study.drift is None:
        rests = [doc.mark(None, f"no test of a change: {study.missing['drift']}")]
    else:
        rests = [doc.mark(True, "no change of the delays is shown")]
    if rows.group is not None:
        test = study.heterogeneity
        good = True if test is not None and test.p > test.level else None
        rests.append(doc.mark(good, f"by {rows.by}: {groups_verdict(study).verdict}"))
    return doc.answer(
        duration(rows, late.corrected), f" until 90 % of the {kind.name} are in", *sentences,
        colour="yellow" if changes or not late.bounded else "",
        tiles=tiles if layout.page else (), rests=rests if layout.page else (),
    )  # fmt: skip


def _share_seen(study: DelayStudy) -> float | None:
    """Return the share of the conversions seen so far, of periods old enough to say; None where that is not known."""
    old = [rate for rate in study.rates if rate.corrected is not None]
    expected = sum(rate.corrected * rate.displays for rate in old if rate.corrected is not None)
    return min(sum(rate.conversions for rate in old) / expected, 1.0) if expected else None


def _still_to_come(study: DelayStudy) -> str:
    rows, share = study.rows, _share_seen(study)
    if rows.limit is None:
        return "Every display was followed to its end: none is still to come."
    least, most = int(rows.limit.min()), int(rows.limit.max())
    if least == most:
        return f"Every display was followed for {duration(rows, most)}."
    followed = f"Displays were followed for {duration(rows, least)} to {duration(rows, most)}"
    if share is None:
        return f"{followed}."
    return f"{followed}: {_percent_left(share)} of their conversions are still to come."


def _percent_left(share: float) -> str:
    """Return what a share leaves of the whole.

    >>> _percent_left(0.98), _percent_left(0.999)
    ('about 2 %', 'less than 1 %')
    """
    left = 100.0 * (1.0 - share)
    return f"about {left:.0f} %" if left >= 0.95 else "less than 1 %"


def _page(study: DelayStudy, kind: _Kind, layout: doc.Layout) -> Iterator[doc.Section]:
    rows = study.rows
    yield _log(study, kind, layout)
    yield _answer(study, kind, layout)
    colours = "" if rows.limit is None else "; orange: as seen, blue: corrected for what is still to come"
    yield doc.picture("When do they come?", f"share that has come by a delay{colours}", "arrival")
    if rows.periods is not None:
        yield doc.picture("Does it change?", f"conversions per display of each {rows.periods.name}{colours}", "change")
    yield doc.section("What a window keeps", _windows(study, page=True))
    found = list(_findings(study))
    numbers = [
        doc.section("Found", doc.names(found)),
        doc.section("How late", _quantiles(study)),
        doc.named("Law", _law(study)),
        doc.named("Tail", [("index alpha", tail_sentence(study))]),
    ]
    yield from doc.fold("The delays", "quantiles, law and tail", numbers, charts=("cdf", "density"))
    if rows.group is not None:
        groups = doc.section(f"By {rows.by}", _groups(study), doc.paragraph(groups_verdict(study).words))
        yield from doc.fold("The groups", f"by {rows.by}", [groups], charts=("groups",))
    if rows.periods is not None:
        periods = doc.section(f"Drift by {rows.periods.name}", *_drift(study))
        yield from doc.fold("The periods", f"each {rows.periods.name} of the log", [periods], charts=("rates",))
    if study.joint is not None:
        yield from doc.fold(_RATE, "and whether the model holds", [_joint(study, study.joint)], charts=("calibration",))
    sight = [doc.listed("What the log can see", study.sight), doc.section("Windows", _advice(study))]
    yield from doc.fold("What it rests on", "what the log can see of delays", sight)


def _findings(study: DelayStudy) -> Iterator[tuple[str, doc.Wordable]]:
    """Yield the result of each test in a line."""
    rows = study.rows
    yield "law", study.missing["laws"] if study.choice is None else study.choice.verdict
    if rows.group is not None:
        yield f"by {rows.by}", groups_verdict(study).brief
    if rows.periods is not None:
        yield f"drift by {rows.periods.name}", drift_verdict(study).brief
    if study.joint is None and "joint" in study.missing:
        yield "rate on context", f"withheld: {study.missing['joint']}"


def _brief(study: DelayStudy, kind: _Kind, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the answer and the windows, then the tests and what the log can see."""
    yield _answer(study, kind, layout)
    yield _log(study, kind, layout)
    yield doc.section("Windows", _windows(study))
    found = [row for row in _findings(study) if row[0] != "law"]
    if found:
        yield doc.section("Found", doc.names(found))
    if study.joint is not None:
        yield _joint(study, study.joint)
    yield doc.listed("What the log can see", study.sight)


def _whole(study: DelayStudy, kind: _Kind, layout: doc.Layout) -> Iterator[doc.Section]:
    rows = study.rows
    yield _answer(study, kind, layout)
    yield _log(study, kind, layout)
    yield doc.section("Windows", _windows(study), _advice(study))
    yield doc.section("How late", _quantiles(study))
    yield doc.listed("What the log can see", study.sight)
    yield doc.named("Law", _law(study))
    if rows.group is not None:
        yield doc.section(f"By {rows.by}", _groups(study), doc.paragraph(groups_verdict(study).words))
    yield doc.named("Tail", [("index alpha", tail_sentence(study))])
    if rows.periods is not None:
        yield doc.section(f"Drift by {rows.periods.name}", *_drift(study))
    if study.joint is not None:
        yield _joint(study, study.joint)
    elif "joint" in study.missing:
        yield doc.section(_RATE, doc.paragraph(doc.run("withheld", "bold"), f": {study.missing['joint']}"))


def _quantiles(study: DelayStudy) -> doc.Grid:
    """Return the table of the quantiles of delays."""
    rows = study.rows
    return doc.table(
        ("share come", "as seen", "corrected", f"{study.fit.confidence:.0%} interval"),
        [
            (f"{q.level:.0%}", duration(rows, q.naive), duration(rows, q.corrected), between(rows, q.low, q.high))
            for q in study.quantiles
        ],
        folds=True,
    )


def _law(study: DelayStudy) -> list[tuple[str, str]]:
    if study.choice is None:
        return [("none fitted", study.missing["laws"])]
    comparison, rows = study.choice.comparison, study.rows
    best = comparison.best_fit
    facts = [("verdict", study.choice.verdict)]
    parameters = ", ".join(_parameter(rows, name, value) for name, value in best.parameters.items())
    facts.append(("parameters", f"{best.family}: {parameters}"))
    facts.append(("AIC above it", ", ".join(f"{f.family} {f.aic - best.aic:,.0f}" for f in comparison.fits[1:]) or "-"))
    facts += [("spike", sentence) for sentence in spike_sentences(study)]
    # Laws whose likelihood has no strict maximum, by their note.
    unconverged = [fit for fit in comparison.fits if not fit.converged]
    for note in dict.fromkeys(fit.notes[0] for fit in unconverged):
        families = ", ".join(fit.family for fit in unconverged if fit.notes[0] == note)
        facts.append(("without maximum", f"{families}: {note}"))
    if rows.limit is not None:
        beyond = 1.0 - float(best.cdf(best.longest))
        facts.append((f"beyond {duration(rows, best.longest)}", f"{beyond:.1%} of the law, which no data speak for"))
    if best.conversions < study.conversions:
        facts.append(("fitted to", f"{best.conversions:,} of the conversions, drawn at random"))
    return facts


def _parameter(rows: DelayRows, name: str, value: float) -> str:
    """Return a parameter of a law as text: delays as durations, means of the logarithm of delays as medians."""
    if name not in SCALES and not name.startswith("mu"):
        return f"{name} {significant_text(value, 4)}"
    label, delay = (name, value) if name in SCALES else (f"exp({name})", np.exp(value))
    # An estimate needs more digits than whole rounds have.
    return f"{label} {duration(rows, delay) if rows.tick_seconds else f'{significant_text(delay, 4)} rounds'}"


def _windows(study: DelayStudy, *, page: bool = False) -> doc.Grid:
    """Return the table of the windows; on a page, which may be as narrow as a phone, without rounds and losses."""
    found: list[tuple[str, ...]] = []
    for window in study.windows:
        share = window.share
        rounds = "" if window.rounds is None else f"{window.rounds:,.0f}"
        label = window.label(study.rows)
        if study.rows.limit is not None and share.window >= share.longest:
            unknown = "beyond the log" if page else "beyond what the log shows"
            beyond = ("all", "") if share.identified else ("unknown", unknown)
            found.append((label, rounds, *beyond, ""))
        else:
            interval = f"[{share.low:.1%}, {share.high:.1%}]"
            found.append((label, rounds, f"{share.tau:.1%}", interval, f"{share.lost:.1%}"))
    columns = ("window", "rounds", "keeps", f"{study.fit.confidence:.0%} interval", "loses")
    kept = [0, 2, 3] if page else range(len(columns))
    return doc.table([columns[i] for i in kept], [[row[i] for i in kept] for row in found], folds=True)


def _advice(study: DelayStudy) -> doc.Paragraph:
    advice = study.advice
    if advice.mean is None or advice.twice_mean is None:
        mean = f"none, {advice.mean_source}"
    else:
        mean = f"{_window(study, advice.twice_mean)} ({advice.mean_source})"
    recommended = doc.run(_window(study, advice.recommended), "bold")
    return doc.paragraph("recommended: ", recommended, doc.lines(f": {advice.reason}", f"2 x mean: {mean}"))


def _window(study: DelayStudy, ticks: float) -> str:
    rate = study.rows.rate
    both = study.rows.tick_seconds is not None and np.isfinite(rate)
    return duration(study.rows, ticks) + (f" = {ticks * rate:,.0f} rounds" if both else "")


def _groups(study: DelayStudy) -> doc.Grid:
    found = []
    for group in study.groups:
        low, high = group.fit.quantile_intervals([0.5])
        label = f"{len(group.members)} others" if len(group.members) > 1 else group.label
        quantiles = (duration(study.rows, q.corrected) for q in group.quantiles)
        found.append((label, f"{group.conversions:,}", *quantiles, between(study.rows, low[0], high[0])))
    levels = (f"{level:.0%}" for level in LEVELS)
    return doc.table(
        (study.rows.by, "conversions", *levels, f"of 50%: {study.fit.confidence:.0%} interval"), found, folds=True
    )


def _drift(study: DelayStudy) -> Iterator[doc.Block]:
    drift, periods = study.drift, study.rows.periods
    yield doc.paragraph(drift_verdict(study).words)
    if drift is None or periods is None:
        return
    found = []
    days = {day.day: day for day in drift.days}
    for rate in _some(study.rates):
        day = days.get(rate.period)
        quantiles = [""] * len(drift.levels) if day is None else [duration(study.rows, q) for q in day.quantiles]
        corrected = "too new" if rate.corrected is None else f"{rate.corrected:.2%}"
        label = periods.label(rate.period, study.rows.tick_seconds)
        found.append((label, f"{rate.displays:,}", f"{rate.seen:.2%}", corrected, *quantiles))
    levels = (f"{level:.0%}" for level in drift.levels)
    yield doc.table((periods.name, "displays", "converted", "corrected", *levels), found, folds=True)
    spans = sorted(day.longest for day in drift.days)
    if np.isfinite(spans[-1]):
        young = "" if spans[0] == spans[-1] else ", or of what the period could show if that is less"
        longest = duration(study.rows, spans[-1])
        yield doc.paragraph(f"quantiles given a delay of at most {longest}{young}", style="dim")


def _joint(study: DelayStudy, joint: JointStudy) -> doc.Section:
    rates = doc.table(
        ("displays", "", "converted", "corrected", f"{study.options.level:.0%} interval"),
        [
            (
                name,
                f"{rate.displays:,}",
                f"{rate.naive:.3%}",
                f"{rate.corrected:.3%}",
                f"[{rate.low:.3%}, {rate.high:.3%}]",
            )
            for name, rate in (("all", joint.rate), ("immature", joint.immature))
            if rate.displays
        ],
        folds=True,
    )
    return doc.section(_RATE, rates, doc.paragraph(doc.lines(*joint_sentences(study, joint))))


def _some(rates: tuple[PeriodRate, ...]) -> Iterable[PeriodRate]:
    """Return all periods, or some that are evenly spaced if there are many."""
    if len(rates) <= _PERIODS_SHOWN:
        return rates
    return [rates[i] for i in np.linspace(0, len(rates) - 1, _PERIODS_SHOWN).round().astype(int)]


class Conclusion(NamedTuple):
    """A verdict, the rest of its line, and further lines."""

    verdict: str
    rest: str
    more: tuple[str, ...] = ()
    alarming: bool = False

    def __str__(self) -> str:
        return "; ".join((f"{self.verdict}{self.rest}", *self.more))

    @property
    def words(self) -> doc.Words:
        """The conclusion with its verdict in bold."""
        return doc.words(
            doc.run(self.verdict, "bold yellow" if self.alarming else "bold"), doc.lines(self.rest, *self.more)
        )

    @property
    def brief(self) -> doc.Words:
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
    drift = study.drift
    if drift is None:
        return Conclusion(study.missing["drift"], "")
    verdict = "no change shown"
    if drift.changed:
        after = "" if drift.change_after is None else period_words(study.rows, drift.change_after)
        verdict = f"delays change, most likely after {after}"
    rest = f" (p = {drift.p:.2g}; flagged without drift {drift.false_alarms:.0%} of the time)"
    if not drift.changed:
        rest = f" (p = {drift.p:.2g}){_could_be_shown(study, drift)}"
    doubt = drift.changed and study.rows.deduplicated
    more = ["de-duplication alone can do this (see above): look at `deduplicate='all'`"] if doubt else []
    if study.newest is not None:
        new = study.newest
        high = f"{new.high:.2f}" if math.isfinite(new.high) else "more than 20"
        more.insert(
            0,
            f"displays since {period_words(study.rows, new.since)} have delays {_times(new.ratio)} as long as those "
            f"before ({new.low:.2f} to {high} at {new.fit.confidence:.0%}), if short and long ones changed alike",
        )
    return Conclusion(verdict, rest, tuple(more), drift.changed)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if math.isfinite(ratio) else "more than 20 times"


def _could_be_shown(study: DelayStudy, drift: DelayDrift) -> str:
    """Return a clause on the changes that the test finds on 4 of 5 such logs."""
    detectable = [change for change in drift.shown if change.ratio is not None]
    if not detectable:
        return ": such a log is too small to show a change, even of delays that become 20 times as long"
    changes: list[str] = []
    for change in detectable:
        after = period_words(study.rows, change.after)
        changes.append(f"{change.ratio:.2f} times{'' if changes else ' as long'} after {after}")
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
