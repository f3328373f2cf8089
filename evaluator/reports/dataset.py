"""The documents of a dataset, and of a validation with its counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evaluator.errors import LogError
from evaluator.log import Log
from evaluator.log.times import dated, time_words
from evaluator.reports import document as doc
from evaluator.reports.numbers import count_text, significant_text
from evaluator.units import ROUND, SECONDS, format_duration

# Actions in the short form.
_ACTIONS = 4
_TRUTHS = ("revenue", "cost", "profit", "unsubscribe")


def document(described: dict[str, Any] | Log, layout: doc.Layout) -> doc.Document:
    """Return what `evaluator.datasets.show` says of a dataset, or of a log: everything, or a short form for one screen.

    For a log that breaks a rule of logs, the document names the rule.
    """
    if not isinstance(described, Log):
        return doc.Document("datasets show", f"The log {described['name']}", _facts(described, layout))
    return doc.Document("log", described.meta.name, _sections_of_log(described, layout))


def validation_document(report: dict[str, Any]) -> doc.Document:
    """Return what `evaluator.datasets.validate` found: the verdict first, and every count that is not 0."""
    sound = report["ok"]
    counts = ((name.replace("_", " "), count_text(value)) for name, value in report["counts"].items() if value)
    head = doc.answer(
        "Sound" if sound else "Not sound", f": {report['name']}" + ("" if sound else ", rows were left out"),
        colour="green" if sound else "yellow",
    )  # fmt: skip
    sections = (head, doc.section("", _named([*counts, *_set_rows(report["eligible"])])))
    return doc.Document("datasets validate", f"Validation of {report['name']}", sections)


def _sections_of_log(log: Log, layout: doc.Layout) -> tuple[doc.Section, ...]:
    from evaluator.reading.summary import log_facts

    try:
        log.checked()
    except LogError as error:
        return (doc.section("", doc.paragraph(repr(log)), doc.paragraph(str(error), style="bold yellow")),)
    if not len(log):
        return (doc.section("", doc.paragraph(repr(log))),)
    return _facts({"name": log.meta.name, "spec": None, "log": log_facts(log).to_dict()}, layout)


def _facts(facts: dict[str, Any], layout: doc.Layout) -> tuple[doc.Section, ...]:
    """Return the sections on a log and its spec: how large it is, what it showed, and all that is known of it."""
    spec, log = facts["spec"], facts["log"]
    title = f"  {spec['title']}" if spec else ""
    heading = doc.section("", doc.paragraph(doc.run(facts["name"], "bold"), title), id="log")
    about = [("licence", spec["licence"]), ("homepage", spec.get("homepage", ""))] if spec else []
    if log is None:
        said = doc.section("", doc.paragraph(f"The spec alone: {facts['missing']}"))
        return (heading, *([doc.section("", _named(about))] if about else []), said)
    # Counts of 0, of steps that the adapter did not need, are left out.
    counts = {name: value for name, value in log["counts"].items() if layout.full or (value and name not in log)}
    # The short form says these in its answer.
    answered = () if layout.full else ("displays", "time", "followed until", "propensities")
    facts_of_log = [row for row in _log_rows(log) if row[0] not in answered]
    rows = [*facts_of_log, *((name.replace("_", " "), count_text(value)) for name, value in counts.items())]
    truth = facts.get("truth", [])
    few = truth if layout.full or len(truth) <= 3 else [*truth[:2], truth[-1]]
    actions = log["top_actions"] if layout.full else log["top_actions"][:_ACTIONS]
    first = [heading, _answer(log, layout)] if layout.page else [_answer(log, layout), heading]
    columns = ("action", "displays", "conversions")
    counted_actions = [(one["label"], f"{one['displays']:,}", f"{one['conversions']:,}") for one in actions]
    shown = doc.section("Most shown", doc.table(columns, counted_actions))
    truths = [(row["chooses"], *(f"{row[number]:.4f}" for number in _TRUTHS)) for row in few]
    true = [doc.section("True values a display", doc.table(("chooses", *_TRUTHS), truths))] if few else []
    # The log's own words: they name no option of this package.
    noted = doc.Bullets(tuple(doc.words(replace(doc.run(note), verbatim=True)) for note in log["notes"]))
    notes = [doc.section("Notes", noted)] if log["notes"] else []
    everything = doc.section("", _named([*about, *rows]))
    if layout.page:
        drawn = doc.picture("What did it show?", "share of displays; each action has its own colour", "shown")
        return (
            *first, drawn, shown,
            *doc.fold("All that is known of it", "sizes, times, delays, fingerprint", [everything], charts=("log",)),
            *doc.fold("True values", "what each choice earns a display", true),
            *doc.fold("Notes", "of the log itself", notes),
        )  # fmt: skip
    omitted = [
        "counts that are 0" if len(counts) < len(log["counts"]) else "",
        doc.counted(len(log["top_actions"]) - len(actions), "more action"),
        "more true values" if len(few) < len(truth) else "",
    ]
    rest = (doc.name_omitted(*omitted),) if any(omitted) and not layout.full else ()
    return (*first, shown, everything, *true, *notes, *rest)


def _answer(log: dict[str, Any], layout: doc.Layout) -> doc.Section:
    """Return how large a log is, over which time, and how its displays were followed."""
    tick = log["tick"]
    until = _until(log["observed_until"], log["time_range"][1], tick)
    known = f"{_span(log['time_range'], tick)}; followed until {until}; propensities: {log['propensity']}."
    tiles = [
        (significant_text(log["conversions_per_display"], 3), "conversions a display"),
        (significant_text(log["reward_per_display"], 3), "reward a display"),
        (f"{log['actions']:,}", "actions"),
    ]
    delays = log["delay_quantiles"]
    if delays:
        tiles.append((_delay(delays["p50"], tick), "until half of the conversions seen had come"))
    return doc.answer(
        f"{log['displays']:,} displays", f" and {log['conversions']:,} conversions", known,
        tiles=tiles if layout.page else (),
    )  # fmt: skip


def _log_rows(log: dict[str, Any]) -> list[tuple[str, str]]:
    tick = log["tick"]
    return [
        ("displays", f"{log['displays']:,}"),
        ("conversions", f"{log['conversions']:,} ({significant_text(log['conversions_per_display'], 4)} per display)"),
        ("reward per display", f"{significant_text(log['reward_per_display'], 6)}"),
        ("refunds", _refunds(log["refunds"])),
        ("cost per display", _costs(log["costs"])),
        ("actions", f"{log['actions']:,}"),
        ("time", _span(log["time_range"], tick)),
        ("followed until", _until(log["observed_until"], log["time_range"][1], tick)),
        (
            "attribution window",
            "none" if log["attribution_window"] is None else _delay(log["attribution_window"], tick),
        ),
        ("propensities", log["propensity"]),
        ("context dimensions", str(log["context_dimensions"] or "none")),
        ("numbers about each action", str(log["action_vector_dimensions"] or "")),
        ("columns to group by", ", ".join(log["kept_columns"])),
        ("delays", ", ".join(f"{q} {_delay(v, tick)}" for q, v in log["delay_quantiles"].items()) or "no conversions"),
        *_set_rows(log["eligible"]),
        *((f"outcome {outcome['name']}", _outcome(outcome, log)) for outcome in log["outcomes"]),
        ("fingerprint", log["fingerprint"][:16]),
    ]


def _named(rows: Iterable[tuple[str, str]]) -> doc.Grid:
    """Return a table of names and texts, without the names whose text is empty."""
    return doc.names((name, text) for name, text in rows if text)


def _set_rows(sets: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the rows on eligible actions, from `evaluator.reading.facts.SetFacts`."""
    if sets is None:
        return []
    smallest, largest, distinct, changes = (sets[name] for name in ("smallest", "largest", "distinct", "changes"))
    size = (
        f"{largest:,}"
        if smallest == largest
        else f"{smallest:,} to {largest:,}, {significant_text(sets['mean'], 4)} on average"
    )
    vary = {
        "never": "the same at every display",
        "with time": f"{distinct:,} sets, which change with time ({changes:,} {'time' if changes == 1 else 'times'})",
        "otherwise": f"{distinct:,} sets, which differ between displays ({changes:,} unlike the one before)",
    }[sets["vary"]]
    rows = [("eligible actions", f"{size}; {vary}")]
    for what in ("never_eligible", "never_logged", "hardly_eligible"):
        actions = sets[what]
        if actions["count"]:
            more = ", ..." if actions["count"] > len(actions["labels"]) else ""
            labels = ", ".join(actions["labels"])
            rows.append((what.replace("_", " "), f"{actions['count']:,} ({labels}{more})"))
    return rows


def _refunds(refunds: dict[str, float] | None) -> str:
    if refunds is None:
        return ""
    mean, smallest = significant_text(refunds["per_display"], 4), significant_text(refunds["smallest"], 6)
    return (
        f"{refunds['conversions']:,} of the conversions, {mean} per display; at the least a display has earned "
        f"{smallest}"
    )


def _costs(costs: dict[str, float] | None) -> str:
    if costs is None:
        return ""
    mean, smallest, largest = (significant_text(costs[name], 4) for name in ("per_display", "smallest", "largest"))
    return f"{mean}, from {smallest} to {largest}"


def _span(ends: list[int], tick: str) -> str:
    first, last = ends
    if tick == ROUND:
        return f"{first:,} to {last:,} rounds"
    seconds = SECONDS[tick]
    text = f"{first:,} to {last:,} {tick}"
    if dated(first, seconds):
        text = " to ".join(time_words(time, seconds, start=first) for time in ends)
    return f"{text} ({format_duration((last - first) * seconds)})"


def _until(until: int | None, last: int, tick: str) -> str:
    if until is None:
        return "every display to its end"
    if tick == ROUND:
        return f"{until:,}"
    seconds = SECONDS[tick]
    when = time_words(until, seconds, start=until) if dated(until, seconds) else f"{until:,} {tick}"
    return f"{when} ({format_duration((until - last) * seconds)} after the last display)" if until > last else when


def _outcome(outcome: dict[str, Any], log: dict[str, Any]) -> str:
    window, tick = outcome["attribution_window"], log["tick"]
    text = f"{outcome['events']:,} events, {significant_text(outcome['value_per_display'], 4)} per display"
    if outcome["reward"]:
        text += f", part of the reward, {'told' if outcome['told'] else 'not told'} to policies"
    text += "" if window is None else f", attribution window {_delay(window, tick)}"
    if outcome["observed_until"] != log["observed_until"]:
        text += f", followed until {_until(outcome['observed_until'], log['time_range'][1], tick)}"
    quantiles = outcome["delay_quantiles"]
    return f"{text}; delays p50 {_delay(quantiles['p50'], tick)}" if quantiles else text


def _delay(ticks: float, tick: str) -> str:
    return f"{ticks:,.0f} rounds" if tick == ROUND else format_duration(ticks * SECONDS[tick])
