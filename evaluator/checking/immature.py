"""Displays too young to be judged, and logs that do not say that they have some."""

from __future__ import annotations

from evaluator.checking.finding import Finding
from evaluator.checking.follow_up import MANY_MISSING
from evaluator.checking.propensities import p_words
from evaluator.checking.tables import Tables
from evaluator.units import format_duration

# Share of the displays beyond which leaving them out leaves another log.
MANY_IMMATURE = 0.5


def immature_displays(t: Tables) -> Finding:
    """Say how many displays were not followed long enough, and whether conversions stop where the log says they do."""
    name, survey, follow = "immature displays", t.logged.survey, t.logged.follow_up
    log, meta, n = survey.log, survey.log.meta, len(survey.log)
    until, window = meta.observed_until, meta.attribution_window
    immature = None
    if until is not None and window is not None:
        immature = n - survey.displays_until(until - window)
    missing = follow.beyond / max(len(follow.delay), 1)
    numbers = {"immature": immature, "observed_until": until, "attribution_window": window,
               "expected_after_last_conversion": follow.beyond, "missing_share": missing}  # fmt: skip
    if follow.stopped:
        end = "at its end" if until is None else f"before observed_until = {until}"
        return Finding(
            name=name, verdict="fail" if missing >= MANY_MISSING else "warn",
            number=f"{follow.beyond:,} conversions ({missing:.1%}) missing after the last one, p "
                   f"{p_words(follow.p_value)}",
            statistic=float(follow.beyond), p_value=follow.p_value, effect=missing, numbers=numbers,
            means=f"The log stops looking {end} and does not say so: earlier displays had conversions at ages at "
                  "which the "
            "last ones have none. Young displays count as failures, and actions shown late look worse than they are.",
            do="Say in the spec until when conversions were followed ([log] observed_until), and for how long after a "
            "display (attribution_window).",
        )  # fmt: skip
    if until is not None and window is None:
        return Finding(
            name=name, verdict="warn", number="no attribution window", numbers=numbers,
            means="The log stops looking at some time, but nothing says how long conversions take, so nothing says "
                  "which "
            "displays are too young to be judged.",
            do="Give the spec an attribution_window, or every replay a --window; `evaluate delays` recommends one.",
        )  # fmt: skip
    if immature is None:
        return Finding(
            name=name, verdict="pass", number="none: displays were followed to their end", numbers=numbers,
            statistic=float(follow.beyond), p_value=follow.p_value, effect=missing,
            means="Conversions go on after the last display as they did before, as far as the log can tell.",
        )  # fmt: skip
    share = immature / n
    many = share > MANY_IMMATURE
    seconds = log.meta.tick_seconds
    long = f"{window:,} rounds" if seconds is None else format_duration((window or 0) * seconds)
    return Finding(
        name=name, verdict="warn" if many else "pass", number=f"{share:.1%} were not followed for {long}",
        numbers={**numbers, "immature_share": share}, effect=share, statistic=float(follow.beyond),
        p_value=follow.p_value,
        means=f"{immature:,} displays are left out of a replay, or corrected by the delay CDF."
        + (" That is most of the log." if many else ""),
        do="Use --immature correct, a shorter attribution_window, or a log that was followed longer." if many else "",
    )  # fmt: skip
