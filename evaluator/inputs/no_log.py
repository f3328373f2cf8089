"""What to say to somebody who gives a frame, or anything else, where a log is wanted."""

from __future__ import annotations

from evaluator.errors import UsageError

# Names of columns that say what they hold, the surest first.
_NAMES = {
    "time": (
        "time", "timestamp", "ts", "datetime", "shown_at", "displayed_at", "shown", "impression_time", "event_time",
        "created_at", "date", "t",
    ),
    "action": (
        "action", "arm", "banner", "banner_id", "ad", "ad_id", "variant", "item", "item_id", "campaign", "campaign_id",
        "treatment",
    ),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "prob"),
    "conversion_time": (
        "conversion_time", "conversion_timestamp", "converted_at", "sold_at", "sold", "purchased_at", "purchase_time",
        "reward_time",
    ),
}  # fmt: skip
_NEEDED = ("time", "action", "conversion_time")
_SHOWN = 8


def no_log(given: object) -> UsageError:
    """Return the error that says how what is given becomes a log; of a frame, with the columns that its names tell.

    >>> import pyarrow
    >>> print(no_log(pyarrow.table({"shown_at": [1], "Banner": ["red"], "gain": [2]})).hint)
    write Log.from_frames(frame, time='shown_at', action='Banner', conversion_time=...); columns: shown_at, Banner, gain
    """
    kind = type(given)
    lazy = hasattr(given, "collect")
    if not (lazy or hasattr(given, "__arrow_c_stream__")):
        return UsageError(
            f"A {kind.__name__} is no log.",
            hint="give a Log, the name of a dataset, the path of a spec.toml or of a converted folder; of a frame of "
            "polars, pandas or pyarrow, Log.from_frames makes one.",
        )
    named = getattr(given, "column_names", getattr(given, "columns", ())) if not lazy else ()
    names = [str(name) for name in named]
    roles = ", ".join(f"{role}={column}" for role, column in _guessed(names).items())
    shown = f"{', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"
    said = f"; columns: {shown}" if shown and "=..." in roles else ""
    library = kind.__module__.partition(".")[0].removeprefix("_")
    return UsageError(
        f"A {kind.__name__} of {library} is no log yet: it does not say which columns are times and actions.",
        hint=f"write Log.from_frames(frame{'.collect()' if lazy else ''}, {roles}){said}",
    )


def _guessed(names: list[str]) -> dict[str, str]:
    """Return each role with its column, as Python writes it; ``...`` where one is needed and no name tells."""
    known = {name.lower(): name for name in reversed(names)}
    found = {}
    for role, usual in _NAMES.items():
        column = next((known[name] for name in usual if name in known), None)
        if column is not None or role in _NEEDED:
            found[role] = "..." if column is None else repr(column)
    return found
