"""A study of delays on the terminal: what the log can see, then how late, then which window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.study.goodness import SCALES
from evaluator.delays.study.joint_rate import JointStudy
from evaluator.delays.study.records import PeriodRate
from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.result_tables import GROUP_LEVELS
from evaluator.delays.study.words import between, words
from evaluator.log.delay_rows import DelayRows
from evaluator.report.console import ReportConsole
from evaluator.report.delay_sentences import Sentences, drift_said, groups_said, joint_said, spikes_said, tail_said
from evaluator.report.short import left_out
from evaluator.report.terminal import details, sentences
from evaluator.visible import visible

_PERIODS_SHOWN = 10
# Shares of the conversions that a screen holds.
_FEW_QUANTILES = (0.1, 0.5, 0.9, 0.99)


def print_study(console: ReportConsole, study: DelayStudy, *, full: bool = True) -> None:
    """Print a study of delays, of all conversions, or first of sales and then of refunds: all of it, or a screen."""
    show = _print_kind if full else _print_short
    if study.refunds is None:
        show(console, study, "conversions")
    else:
        show(console, study, "sales")
        console.print()
        show(console, study.refunds, "refunds (conversions with a value below 0)")
    if not full:
        rows = study.rows
        groups, periods = rows.group is not None, rows.periods is not None
        said = ["the groups" if groups else "", "the periods" if periods else ""]
        console.print(left_out("more quantiles", "the laws", "the tail", *said))


def _heading(study: DelayStudy, kind: str) -> Text:
    of = "" if study.rows.displays is None else f" of {study.rows.displays:,} displays"
    return Text.assemble(f"delays of {kind} in ", (visible(study.rows.name), "bold"), f": {study.conversions:,}{of}")


def _print_short(console: ReportConsole, study: DelayStudy, kind: str) -> None:
    """Print which window to take, what the log can see, how late conversions come, and what the tests found."""
    rows = study.rows
    console.print(_heading(study, kind))
    console.print(_advice(study))
    console.print(sentences("What the log can see", study.sight))
    console.print(_titled("How late", _quantiles(study, _FEW_QUANTILES)))
    console.print(_titled("Windows", _windows(study)))
    law = study.missing["laws"] if study.choice is None else study.choice.verdict
    found = [("law", Text(visible(law)))]
    if rows.group is not None:
        found.append((f"by {rows.by}", _in_short(groups_said(study))))
    if rows.periods is not None:
        found.append((f"drift by {rows.periods.name}", _in_short(drift_said(study))))
    if study.joint is None and "joint" in study.missing:
        found.append(("rate on context", Text(visible(f"withheld: {study.missing['joint']}"))))
    console.print(_titled("Found", _names(found)))
    if study.joint is not None:
        console.print(_titled("Conversion rate on context", *_joint(study, study.joint)))


def _names(rows: Sequence[tuple[str, Text]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, words_of in rows:
        table.add_row(name, words_of)
    return table


def _in_short(said: Sentences) -> Text:
    """Return a verdict, and what stands behind it where it alarms."""
    return _said(said if said.alarming else said._replace(more=()))


def _print_kind(console: ReportConsole, study: DelayStudy, kind: str) -> None:
    rows = study.rows
    console.print(_heading(study, kind))
    console.print(sentences("What the log can see", study.sight))
    console.print(_titled("How late", _quantiles(study)))
    console.print(details("Law", _law(study)))
    console.print(_titled("Windows", _windows(study)))
    console.print(Padding(_advice(study), (0, 0, 0, 2), expand=False))
    if rows.group is not None:
        console.print(_titled(f"By {rows.by}", _groups(study)))
        console.print(Padding(_said(groups_said(study)), (0, 0, 0, 2), expand=False))
    console.print(details("Tail", [("index alpha", tail_said(study))]))
    if rows.periods is not None:
        console.print(_titled(f"Drift by {rows.periods.name}", _drift(study)))
    if study.joint is not None:
        console.print(_titled("Conversion rate on context", *_joint(study, study.joint)))
    elif "joint" in study.missing:
        console.print(
            _titled("Conversion rate on context", _said(Sentences("withheld", f": {study.missing['joint']}")))
        )


def _titled(title: str, *parts: RenderableType) -> RenderableType:
    return Group(
        Text(f"\n{visible(title)}", style="bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in parts)
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        table.add_column(column, justify="right", overflow="fold")
    return table


def _between(study: DelayStudy, low: float, high: float) -> Text:
    return Text(between(study.rows, low, high))


def _quantiles(study: DelayStudy, levels: Sequence[float] = ()) -> Table:
    """Return how late the shares of conversions come that have these levels, all of them for none."""
    table = _table("share come", "as seen", "corrected", f"{study.fit.confidence:.0%} interval")
    some = [q for q in study.quantiles if q.level in levels] or study.quantiles
    for q in some:
        of = study.rows
        table.add_row(f"{q.level:.0%}", words(of, q.naive), words(of, q.corrected), _between(study, q.low, q.high))
    return table


def _law(study: DelayStudy) -> list[tuple[str, str]]:
    if study.choice is None:
        return [("none fitted", study.missing["laws"])]
    comparison, rows = study.choice.comparison, study.rows
    best = comparison.best_fit
    said = [("verdict", study.choice.verdict)]
    shown = ", ".join(_parameter(rows, name, value) for name, value in best.parameters.items())
    said.append(("parameters", f"{best.family}: {shown}"))
    said.append(("AIC above it", ", ".join(f"{f.family} {f.aic - best.aic:,.0f}" for f in comparison.fits[1:]) or "-"))
    said += [("spike", text) for text in spikes_said(study)]
    for note, names in _without_maximum(comparison.fits).items():
        said.append(("without maximum", f"{', '.join(names)}: {note}"))
    if rows.limit is not None:
        beyond = 1.0 - float(best.cdf(best.longest))
        said.append((f"beyond {words(rows, best.longest)}", f"{beyond:.1%} of the law, which no data speak for"))
    if best.conversions < study.conversions:
        said.append(("fitted to", f"{best.conversions:,} of the conversions, drawn at random"))
    return said


def _parameter(rows: DelayRows, name: str, value: float) -> str:
    """Return a parameter of a law as one reads it: delays as durations, means of their logarithms as medians."""
    if name not in SCALES and not name.startswith("mu"):
        return f"{name} {value:.4g}"
    said, delay = (name, value) if name in SCALES else (f"exp({name})", np.exp(value))
    # Whole rounds would hide what is estimated.
    return f"{said} {words(rows, delay) if rows.tick_seconds else f'{delay:.4g} rounds'}"


def _without_maximum(fits: Sequence[DelayFit]) -> dict[str, list[str]]:
    """Return the laws whose likelihood has no strict maximum, by what is said of them."""
    found: dict[str, list[str]] = {}
    for fit in fits:
        if not fit.converged:
            found.setdefault(fit.notes[0], []).append(fit.family)
    return found


def _windows(study: DelayStudy) -> Table:
    table = _table("window", "rounds", "keeps", f"{study.fit.confidence:.0%} interval", "loses")
    for window in study.windows:
        share = window.share
        rounds = "" if window.rounds is None else f"{window.rounds:,.0f}"
        label = window.label(study.rows)
        if study.rows.limit is not None and share.window >= share.longest:
            beyond = "all" if share.identified else "unknown"
            table.add_row(label, rounds, beyond, "beyond what the log shows" if beyond == "unknown" else "", "")
            continue
        table.add_row(
            label, rounds, f"{share.tau:.1%}", Text(f"[{share.low:.1%}, {share.high:.1%}]"), f"{share.lost:.1%}"
        )
    return table


def _advice(study: DelayStudy) -> Text:
    advice = study.advice
    text = Text.assemble("recommended: ", (_window(study, advice.recommended), "bold"))
    text.append(f": {visible(advice.reason)}\n")
    if advice.mean is None or advice.twice_mean is None:
        text.append(f"2 x mean: none, {advice.mean_source}")
    else:
        text.append(f"2 x mean: {_window(study, advice.twice_mean)} ({advice.mean_source})")
    return text


def _window(study: DelayStudy, ticks: float) -> str:
    rate = study.rows.rate
    both = study.rows.tick_seconds is not None and np.isfinite(rate)
    return words(study.rows, ticks) + (f" = {ticks * rate:,.0f} rounds" if both else "")


def _groups(study: DelayStudy) -> Table:
    level = f"{study.fit.confidence:.0%} interval"
    table = _table(study.rows.by, "conversions", *(f"{q:.0%}" for q in GROUP_LEVELS), f"of 50%: {level}")
    for group in study.groups:
        low, high = group.fit.quantile_intervals([0.5])
        label = f"{len(group.members)} others" if len(group.members) > 1 else group.label
        quantiles = (words(study.rows, q) for q in group.fit.quantiles(GROUP_LEVELS))
        table.add_row(label, f"{group.conversions:,}", *quantiles, _between(study, low[0], high[0]))
    return table


def _said(said: Sentences) -> Text:
    text = Text.assemble((visible(said.verdict), "bold yellow" if said.alarming else "bold"))
    return text.append("\n".join(map(visible, (said.rest, *said.more))))


def _drift(study: DelayStudy) -> RenderableType:
    drift, periods = study.drift, study.rows.periods
    if drift is None or periods is None:
        return _said(drift_said(study))
    table = _table(periods.name, "displays", "converted", "corrected", *(f"{level:.0%}" for level in drift.levels))
    days = {day.day: day for day in drift.days}
    for rate in _some(study.rates):
        day = days.get(rate.period)
        quantiles = [""] * len(drift.levels) if day is None else [words(study.rows, q) for q in day.quantiles]
        corrected = "too new" if rate.corrected is None else f"{rate.corrected:.2%}"
        label = periods.label(rate.period, study.rows.tick_seconds)
        table.add_row(label, f"{rate.displays:,}", f"{rate.seen:.2%}", corrected, *quantiles)
    spans = sorted(day.longest for day in drift.days)
    if not np.isfinite(spans[-1]):
        return Group(_said(drift_said(study)), table)
    young = "" if spans[0] == spans[-1] else ", or of what the period could show if that is less"
    note = Text(f"quantiles given a delay of at most {words(study.rows, spans[-1])}{young}", style="dim")
    return Group(_said(drift_said(study)), table, note)


def _joint(study: DelayStudy, joint: JointStudy) -> tuple[RenderableType, ...]:
    table = _table("displays", "", "converted", "corrected", f"{study.options.level:.0%} interval")
    for name, rate in (("all", joint.rate), ("immature", joint.immature)):
        if rate.displays:
            interval = Text(f"[{rate.low:.3%}, {rate.high:.3%}]")
            table.add_row(name, f"{rate.displays:,}", f"{rate.naive:.3%}", f"{rate.corrected:.3%}", interval)
    return table, Text("\n".join(map(visible, joint_said(study, joint))))


def _some(rates: tuple[PeriodRate, ...]) -> Iterable[PeriodRate]:
    """Return all periods, or evenly spaced ones."""
    if len(rates) <= _PERIODS_SHOWN:
        return rates
    return [rates[i] for i in np.linspace(0, len(rates) - 1, _PERIODS_SHOWN).round().astype(int)]
