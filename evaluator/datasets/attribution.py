"""The attribution window of a log: in ticks, and cutting the conversions that come later than it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evaluator.errors import ParameterError, SpecError, UsageError
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.units import ROUND, SECONDS, duration_ticks, parse_whole, ticks_words

# Count of the conversions that were cut.
CUT = "conversions_beyond_attribution_window"


def spec_window(window: str | int | None, tick: str, *, name: str) -> int | None:
    """Return the window of a spec in ticks.

    Raises
    ------
    SpecError
        The window is a duration, but the log counts rounds, or one shorter than a tick.
    """
    if window is None:
        return None
    if isinstance(window, str) and window.strip().isdecimal():
        window = int(window)
    if isinstance(window, int):
        if not 0 <= window < 2**63:
            raise SpecError(f"{name}: attribution_window = {window} is no delay.", hint="give ticks, from 0 on.")
        return window
    if tick == ROUND:
        raise SpecError(
            f"{name}: attribution_window = {window!r}, but times are rounds.", hint="give it as a number of rounds."
        )
    try:
        ticks = duration_ticks(window, SECONDS[tick])
    except ParameterError as error:
        raise SpecError(f"{name}: attribution_window = {window!r} is no duration.", hint=error.hint) from None
    if 0 < ticks < 1:
        raise SpecError(
            f"{name}: attribution_window = {window!r} is less than a tick of the log ({tick}).", hint="give more."
        )
    return round(ticks)


def asked_window(window: str | int | None, tick: str) -> int | None:
    """Return the window that a call asks for in ticks: ``8h``, or a number of ticks.

    Raises
    ------
    UsageError
        The window is a duration where the log counts rounds, or is shorter than a tick.
    """
    if window is None:
        return None
    text = str(window)
    try:
        ticks = parse_whole(text)
        if ticks is None and tick == ROUND:
            raise UsageError(f"`attribution_window={text!r}`, but this log counts rounds.", hint="give rounds: 2000.")
        if ticks is None:
            ticks = round(duration_ticks(text, SECONDS[tick]))
    except ParameterError as error:
        raise UsageError(f"`attribution_window={text!r}` is no duration: {error.what}", hint=error.hint) from None
    if ticks < 1:
        raise UsageError(f"`attribution_window={text!r}` is less than a tick of the log ({tick}).", hint="give more.")
    return ticks


def cut_note(conversions: int, window: str | int, tick: str) -> str:
    """Return the sentence that says what a shorter window cut."""
    text = str(window).strip()
    words = ticks_words(int(text), None if tick == ROUND else SECONDS[tick]) if text.isdecimal() else text
    return f"{conversions:,} conversions later than an attribution window of {words} were cut."


def cut_log(log: Log, window: str | int) -> Log:
    """Return a log that is followed for a shorter window, without the conversions later than it.

    Raises
    ------
    UsageError
        The log was followed, or cut, for less than that; or its known truth counts all conversions.
    """
    ticks, followed = asked_window(window, log.meta.tick), log.meta.attribution_window
    assert ticks is not None
    if followed is not None and ticks > followed:
        raise UsageError(
            f"`attribution_window={str(window)!r}` is longer than {ticks_words(followed, log.meta.tick_seconds)}: log "
            f"{log.meta.name!r} holds no conversion later than that after its display.",
            hint="give a shorter one, or convert its source anew with the longer one.",
        )
    if "expected_reward" in log.schema.names:
        raise UsageError(
            f"`attribution_window` does not apply to {log.meta.name!r}: its known truth counts all conversions.",
            hint="leave it out; `window` cuts them for the policy.",
        )
    of = to_numpy(log.conversions["display_id"])
    kept = to_numpy(log.conversions["time"]) - to_numpy(log.take(of, ["time"])["time"]) <= ticks
    cut = int(np.count_nonzero(~kept))
    conversions = log.conversions.filter(pa.array(kept))
    meta = log.meta
    counts = {**meta.counts, CUT: meta.counts.get(CUT, 0) + cut, "conversions": conversions.num_rows}
    notes = (*meta.notes, cut_note(cut, window, meta.tick)) if cut else meta.notes
    changed = log.with_meta(attribution_window=ticks, counts=counts, notes=notes)
    return changed.with_conversions(conversions).as_sound_as(log)
