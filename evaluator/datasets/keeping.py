"""Columns of a source that a log keeps as they are, to group by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluator.datasets.spec import FileSpec
from evaluator.errors import UsageError
from evaluator.log import Log
from evaluator.log.clusters import LIKE_USERS, like_users
from evaluator.log.schema import OWN_COLUMNS, kept_columns


def columns_to_keep(spec: FileSpec, keep: Sequence[str], users: Callable[[], Sequence[str]]) -> dict[str, str]:
    """Return the columns to keep, by the names that the log gives them: those of the spec, and others by their own.

    Parameters
    ----------
    spec, keep
        Spec of the dataset, and the columns that are asked for; `LIKE_USERS` among them asks for those of users, if no
        other is kept.
    users
        Function that returns the columns of the source that look like ones of users.

    Raises
    ------
    UsageError
        A column is an outcome, or would get a name that the log uses itself.
    """
    # What decides whether a display is kept may look at its outcome.
    outcomes: set[object] = {*spec.leakage.columns, spec.display.weight}
    for c in spec.events().values():
        outcomes |= {c.indicator, c.time, c.delay, c.value, c.click, c.attributed}
    found = spec.keep | {name: name for name in keep if name not in spec.keep and name != LIKE_USERS}
    if LIKE_USERS in keep and not like_users(found):
        own = spec.display
        taken = {*outcomes, *OWN_COLUMNS, own.time, own.action, own.id, own.eligible}
        found |= {name: name for name in users() if name not in taken}
    for name, column in found.items():
        if column in outcomes:
            raise UsageError(
                f"{column!r} is known only after the outcome: groups by it differ for that reason alone.",
                hint="choose a column that is known before the display.",
            )
        if column == spec.display.eligible:
            raise UsageError(
                f"{column!r} lists the eligible actions: the log keeps them as such.", hint="choose another column."
            )
        if name in OWN_COLUMNS:
            raise UsageError(
                f"Column {column!r} of the source cannot be kept as {name!r}: every log has a column of that name.",
                hint=_another_name(spec, column),
            )
    return found


def _another_name(spec: FileSpec, column: str) -> str:
    if named := [name for name, of in spec.keep.items() if of == column and name not in OWN_COLUMNS]:
        return f"this dataset keeps it as {named[0]!r}."
    return f'give it another: keep = {{ own_{column} = "{column}" }} in the spec.'


def check_kept(log: Log, keep: Sequence[str]) -> None:
    """Raise UsageError unless a log that is not read from files has the columns to keep."""
    kept = kept_columns(log.schema.names)
    for column in keep:
        if column not in (*kept, LIKE_USERS):
            raise UsageError(
                f"Log {log.meta.name!r} keeps no column {column!r} (it keeps {', '.join(kept) or 'none'}).",
                hint=f"convert its source with `keep=['{column}']`.",
            )
