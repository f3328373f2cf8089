"""The document of a study of delays: what the log can see, how late conversions come, and which window to use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.study.goodness import SCALES
from evaluator.delays.study.heterogeneity import LEVELS
from evaluator.delays.study.joint_rate import JointStudy
from evaluator.delays.study.records import PeriodRate
from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.words import between
from evaluator.delays.study.words import words as duration
from evaluator.log.delay_rows import DelayRows
from evaluator.reports.delay_sentences import (
    drift_verdict,
    groups_verdict,
    joint_sentences,
    spike_sentences,
    tail_sentence,
)
from evaluator.reports.document import (
    Block,
    Document,
    Grid,
    Layout,
    Paragraph,
    Section,
    Wordable,
    column,
    grid,
    lines,
    listed,
    named,
    names,
    paragraph,
    run,
    section,
)
from evaluator.reports.numbers import significant_text
from evaluator.reports.shared_sections import name_omitted

_PERIODS_SHOWN = 10
# Levels of the quantiles of delays that fit on a screen.
_FEW_QUANTILES = (0.1, 0.5, 0.9, 0.99)
_RATE = "Conversion rate on context"


def document(study: DelayStudy, layout: Layout) -> Document:
    """Return the full or short document of a study, on all conversions, or on sales first and then on refunds."""
    sections_of = _whole if layout.full else _brief
    sections: list[Section] = []
    if study.refunds is None:
        sections += sections_of(study, "conversions")
    else:
        sections += sections_of(study, "sales")
        sections += sections_of(study.refunds, "refunds (conversions with a value below 0)")
    if not layout.full:
        groups = "" if study.rows.group is None else "the groups"
        periods = "" if study.rows.periods is None else "the periods"
        sections.append(name_omitted("more quantiles", "the laws", "the tail", groups, periods))
    return Document("delays", f"Delays of conversions in {study.rows.name}", tuple(sections))


def _heading(study: DelayStudy, kind: str) -> Paragraph:
    displays = "" if study.rows.displays is None else f" of {study.rows.displays:,} displays"
    return paragraph(f"delays of {kind} in ", run(study.rows.name, "bold"), f": {study.conversions:,}{displays}")


def _brief(study: DelayStudy, kind: str) -> Iterator[Section]:
    """Yield the sections on the window, on what the log can see, on the delays, and on the tests."""
    rows = study.rows
    yield section("", _heading(study, kind), _advice(study))
    yield listed("What the log can see", study.sight)
    yield section("How late", _quantiles(study, _FEW_QUANTILES))
    yield section("Windows", _windows(study))
    results: list[tuple[str, Wordable]] = [
        ("law", study.missing["laws"] if study.choice is None else study.choice.verdict)
    ]
    if rows.group is not None:
        results.append((f"by {rows.by}", groups_verdict(study).brief))
    if rows.periods is not None:
        results.append((f"drift by {rows.periods.name}", drift_verdict(study).brief))
    if study.joint is None and "joint" in study.missing:
        results.append(("rate on context", f"withheld: {study.missing['joint']}"))
    yield section("Found", names(results))
    if study.joint is not None:
        yield _joint(study, study.joint)


def _whole(study: DelayStudy, kind: str) -> Iterator[Section]:
    rows = study.rows
    yield section("", _heading(study, kind))
    yield listed("What the log can see", study.sight)
    yield section("How late", _quantiles(study))
    yield named("Law", _law(study))
    yield section("Windows", _windows(study), _advice(study))
    if rows.group is not None:
        yield section(f"By {rows.by}", _groups(study), paragraph(groups_verdict(study).words))
    yield named("Tail", [("index alpha", tail_sentence(study))])
    if rows.periods is not None:
        yield section(f"Drift by {rows.periods.name}", *_drift(study))
    if study.joint is not None:
        yield _joint(study, study.joint)
    elif "joint" in study.missing:
        yield section(_RATE, paragraph(run("withheld", "bold"), f": {study.missing['joint']}"))


def _table(columns: Sequence[str], rows: Iterable[Sequence[Wordable]]) -> Grid:
    """Return a table of names in the first column and numbers, which may be broken over lines on a narrow terminal."""
    numbers = [column(name, "number", folds=True) for name in columns[1:]]
    return grid([column(columns[0]), *numbers], rows)


def _quantiles(study: DelayStudy, levels: Sequence[float] = ()) -> Grid:
    """Return the table of the quantiles of delays at some levels, or at all levels if none is given."""
    rows = study.rows
    return _table(
        ("share come", "as seen", "corrected", f"{study.fit.confidence:.0%} interval"),
        [
            (f"{q.level:.0%}", duration(rows, q.naive), duration(rows, q.corrected), between(rows, q.low, q.high))
            for q in [q for q in study.quantiles if q.level in levels] or study.quantiles
        ],
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
    for note, families in _group_unconverged(comparison.fits).items():
        facts.append(("without maximum", f"{', '.join(families)}: {note}"))
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


def _group_unconverged(fits: Sequence[DelayFit]) -> dict[str, list[str]]:
    """Return the laws whose likelihood has no strict maximum, grouped by their note."""
    families: dict[str, list[str]] = {}
    for fit in fits:
        if not fit.converged:
            families.setdefault(fit.notes[0], []).append(fit.family)
    return families


def _windows(study: DelayStudy) -> Grid:
    table: list[tuple[str, ...]] = []
    for window in study.windows:
        share = window.share
        rounds = "" if window.rounds is None else f"{window.rounds:,.0f}"
        label = window.label(study.rows)
        if study.rows.limit is not None and share.window >= share.longest:
            beyond = ("all", "") if share.identified else ("unknown", "beyond what the log shows")
            table.append((label, rounds, *beyond, ""))
        else:
            interval = f"[{share.low:.1%}, {share.high:.1%}]"
            table.append((label, rounds, f"{share.tau:.1%}", interval, f"{share.lost:.1%}"))
    return _table(("window", "rounds", "keeps", f"{study.fit.confidence:.0%} interval", "loses"), table)


def _advice(study: DelayStudy) -> Paragraph:
    advice = study.advice
    if advice.mean is None or advice.twice_mean is None:
        mean = f"none, {advice.mean_source}"
    else:
        mean = f"{_window(study, advice.twice_mean)} ({advice.mean_source})"
    recommended = run(_window(study, advice.recommended), "bold")
    return paragraph("recommended: ", recommended, lines(f": {advice.reason}", f"2 x mean: {mean}"))


def _window(study: DelayStudy, ticks: float) -> str:
    rate = study.rows.rate
    both = study.rows.tick_seconds is not None and np.isfinite(rate)
    return duration(study.rows, ticks) + (f" = {ticks * rate:,.0f} rounds" if both else "")


def _groups(study: DelayStudy) -> Grid:
    table = []
    for group in study.groups:
        low, high = group.fit.quantile_intervals([0.5])
        label = f"{len(group.members)} others" if len(group.members) > 1 else group.label
        quantiles = (duration(study.rows, q.corrected) for q in group.quantiles)
        table.append((label, f"{group.conversions:,}", *quantiles, between(study.rows, low[0], high[0])))
    levels = (f"{level:.0%}" for level in LEVELS)
    return _table((study.rows.by, "conversions", *levels, f"of 50%: {study.fit.confidence:.0%} interval"), table)


def _drift(study: DelayStudy) -> Iterator[Block]:
    drift, periods = study.drift, study.rows.periods
    yield paragraph(drift_verdict(study).words)
    if drift is None or periods is None:
        return
    table = []
    days = {day.day: day for day in drift.days}
    for rate in _some(study.rates):
        day = days.get(rate.period)
        quantiles = [""] * len(drift.levels) if day is None else [duration(study.rows, q) for q in day.quantiles]
        corrected = "too new" if rate.corrected is None else f"{rate.corrected:.2%}"
        label = periods.label(rate.period, study.rows.tick_seconds)
        table.append((label, f"{rate.displays:,}", f"{rate.seen:.2%}", corrected, *quantiles))
    levels = (f"{level:.0%}" for level in drift.levels)
    yield _table((periods.name, "displays", "converted", "corrected", *levels), table)
    spans = sorted(day.longest for day in drift.days)
    if np.isfinite(spans[-1]):
        young = "" if spans[0] == spans[-1] else ", or of what the period could show if that is less"
        longest = duration(study.rows, spans[-1])
        yield paragraph(f"quantiles given a delay of at most {longest}{young}", style="dim")


def _joint(study: DelayStudy, joint: JointStudy) -> Section:
    table = _table(
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
    )
    return section(_RATE, table, paragraph(lines(*joint_sentences(study, joint))))


def _some(rates: tuple[PeriodRate, ...]) -> Iterable[PeriodRate]:
    """Return all periods, or some that are evenly spaced if there are many."""
    if len(rates) <= _PERIODS_SHOWN:
        return rates
    return [rates[i] for i in np.linspace(0, len(rates) - 1, _PERIODS_SHOWN).round().astype(int)]
