"""What a row of a drafted table may be beside a display: an event of any kind, a place of a slate, one of several."""

from __future__ import annotations

from collections.abc import Iterable

from evaluator.datasets.column_looks import Look
from evaluator.datasets.draft_lines import Line

CHECK = "please check: "
_REQUESTS = {"request", "slate", "auction", "pageview", "impression", "display", "decision", "query", "search"}
_CHOICES = {"variant", "variation", "arm", "treatment", "group", "bucket", "cell", "template", "message"}
_HOLDERS = {"experiment", "experiments", "study", "campaign", "canvas"}
_IDS = {"id", "name", "key", "uuid", "no", "number"}
# Names of a column that are quoted.
_NAMED = 4


def event_lines(looks: Iterable[Look], part: str) -> tuple[Look, list[Line], bool] | None:
    """Return the column of kinds of events, what to ask of it, and whether some rows are surely no displays.

    Parameters
    ----------
    looks
        Columns of a table.
    part
        What its rows are to be: displays, or conversions.
    """
    for look in looks:
        if (kinds := look.event_kinds) is None:
            continue
        values = sorted(look.text.drop_nulls().unique().to_list())
        named = ", ".join(values[:_NAMED]) + (", ..." if len(values) > _NAMED else "")
        said = (
            f"rows are events of {len(values)} kinds ({look.name!r}: {named}), not {part} alone: write the rows of "
            "displays and those of conversions into a file each, and draft from both (--conversions)"
        )
        return look, [Line("", comment=CHECK + said)], part == "displays" and all(kinds)
    return None


def repeated_request(looks: Iterable[Look]) -> Look | None:
    """Return the column of what several rows share by its name: a request, a slate; None without one."""
    for look in looks:
        of = look.words & _REQUESTS
        rows = len(look.text) - look.text.null_count()
        if of and look.words <= _REQUESTS | _IDS and not look.is_time and look.numbers_are_ids and (
            rows <= 20 * look.distinct < 20 * rows
        ):  # fmt: skip
            return look
    return None


def repeated_order(looks: Iterable[Look], clock: Look, of_display: str) -> tuple[Look, str] | None:
    """Return the column of orders that several conversions share, and what to ask of it; None without one.

    Parameters
    ----------
    looks, clock
        Columns of the table of conversions, and the one that says when they came.
    of_display
        Column of that table that holds the ids of displays.
    """
    for look in looks:
        ids = look.present.filter(clock.present.is_not_null()).drop_nulls()
        names = look.is_order or (look.is_id and look.says_outcome and not look.says_value)
        if names and look is not clock and look.name != of_display and ids.n_unique() < len(ids):
            rows = f"{len(ids):,} rows of {ids.n_unique():,}"
            return look, f"rows repeat these, {rows}: is it one conversion, and which display gets it?"
    return None


def holder_of(action: Look | None, looks: Iterable[Look]) -> Look | None:
    """Return the column of the experiments, or campaigns, that actions belong to, where there are several."""
    if action is None:
        return None
    known = _HOLDERS if action.words & _CHOICES else _HOLDERS - {"campaign", "canvas"}
    for look in looks:
        tests = bool(look.words & {"test", "flag", "feature"}) and bool(look.words & _IDS)
        if look is not action and look.distinct > 1 and not look.is_time and (
            (look.words & known and look.words <= known | _IDS)
            or (tests and look.words <= {"test", "flag", "feature", "ab"} | _IDS)
        ):  # fmt: skip
            return look
    return None


def user_column(looks: Iterable[Look]) -> Look | None:
    """Return the column of the users whom several rows may share, the best filled one; None without one."""
    users = [look for look in looks if look.is_user and look.distinct < len(look.text) - look.text.null_count()]
    # One that is no address of a person goes first.
    return min(users, key=lambda look: ("email" in look.words, look.text.null_count()), default=None)
