"""Parts of a drafted spec that columns tell: its context, values of conversions, and which rows count."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import polars as pl

from evaluator.datasets.column_profile import PARTS, VALUES, Look, rank_of
from evaluator.datasets.draft_lines import Line

# So many conversions on so small a share of the rows: by chance once in a million.
_CONVERSIONS, _SHARE = 20, 0.5
_MANY = 1_000
_CURRENCY = {"currency", "currencies", "ccy"}
CHECK = "please check: "
_REQUESTS = {"request", "slate", "auction", "pageview", "impression", "display", "decision", "query", "search"}
_CHOICES = {"variant", "variation", "arm", "treatment", "group", "bucket", "cell", "template", "message"}
_HOLDERS = {"experiment", "experiments", "study", "campaign", "canvas"}
_IDS = {"id", "name", "key", "uuid", "no", "number"}
# Names of a column that are quoted.
_NAMED = 4


def context_lines(
    looks: Iterable[Look], converted: pl.Series | None, told: Collection[str], action: Look | None = None
) -> tuple[list[str], list[Line]]:
    """Return the columns that look like outcomes, and the lines of those that a policy may see or that are left out.

    Parameters
    ----------
    looks
        Columns of the displays without a role.
    converted
        Which of the displays converted; None where that is not known.
    told
        Columns of a second table, whose names no feature has without a word.
    action
        Column of the action, which no feature may tell; None where it is not known.
    """
    outcomes: list[str] = []
    lines: list[Line] = []
    left: list[Line] = []
    for look in looks:
        if look.says_outcome or look.says_delay or (converted is not None and follows_outcome(look, converted)):
            outcomes.append(look.name)
        elif look.may_say_propensity:
            said = f"left out: {look.name!r}: no feature; is it the probability of what was shown, or a weight?"
            left.append(Line("", comment=f"please check: {said}"))
        elif why := _why_left_out(look, told):
            left.append(Line("", comment=f"left out: {look.name!r}: {why}"))
        elif action is not None and tells_action(look, action):
            said = f"left out: {look.name!r}: it tells on every row which action was shown, another name of it?"
            left.append(Line("", comment=f"please check: {said}"))
        elif look.numbers is not None and not look.is_whole:
            lines.append(Line(look.name, "number", "guessed: numbers from {:g} to {:g}".format(*look.ends)))
        else:
            lines.append(Line(look.name, "category", f"guessed: {look.distinct:,} values"))
    doubt = [Line("", comment="please check: is each of these columns known before the display?")] if lines else []
    return outcomes, [*doubt, *lines, *left]


def _why_left_out(look: Look, told: Collection[str]) -> str | None:
    if look.is_time or look.cells.dtype.is_temporal():
        return "times, ever new"
    if look.is_id or look.is_user:
        return "identifies something; --cluster-by may name it"
    if look.distinct < 2:
        return "constant"
    if look.name in told:
        return "the table of conversions has such a column"
    if look.numbers is not None and not look.is_whole and max(map(abs, look.ends)) > 1:
        return 'numbers from {:g} to {:g}: name it, with scale = "standard" in [context]'.format(*look.ends)
    return f"{look.distinct:,} values" if look.distinct > _MANY else None


def tells_action(look: Look, action: Look) -> bool:
    """Whether each value of a column is of one action, as a name beside its number is.

    Values that few rows have are of one action by chance, so the values must be as few as the actions.
    """
    rows = look.filled & action.filled
    values, actions = look.text.filter(rows), action.text.filter(rows)
    pairs = pl.DataFrame({"value": values, "action": actions}).n_unique()
    return 1 < actions.n_unique() == values.n_unique() == pairs and 10 * pairs <= len(values)


def follows_outcome(look: Look, converted: pl.Series) -> bool:
    """Whether conversions are on values that so few other rows have that the column must have come with them."""
    count = int(converted.sum())
    if count < _CONVERSIONS or count == len(converted):
        return False
    if bool((look.filled == converted).all()):
        return True
    cells = look.text.fill_null("")
    values = cells.filter(converted).unique()
    # Of many values, or of a value each, the conversions have few whatever the column is.
    if len(values) * 5 > count and cells.filter(~converted).n_unique() > 1:
        return False
    return float(cells.is_in(values.implode()).mean() or 0) < _SHARE  # type: ignore[arg-type]


@dataclass(frozen=True)
class Worth:
    """What may hold the value of conversions.

    Parameters
    ----------
    found
        Columns of numbers, the likeliest first.
    mixed
        Sentence that says that their currencies differ, empty where they do not, or one column is in one of them.
    unread
        Column whose name says that it holds values, and whose cells are no numbers; None without one.
    """

    found: list[Look]
    mixed: str
    unread: Look | None


def worth_of(looks: Iterable[Look], every: Iterable[Look]) -> Worth:
    """Return what may hold the value of conversions.

    Parameters
    ----------
    looks
        Columns without another role.
    every
        All columns of the table.
    """
    named = [v for v in looks if v.says_value and not (v.words & _CURRENCY or v.is_time or v.is_order)]
    found = [v for v in named if v.numbers is not None and not v.is_flag]
    currencies = [v for v in every if v.words & _CURRENCY and v.numbers is None and v.distinct > 1]
    found.sort(
        key=lambda v: (
            bool(v.words & PARTS),
            bool(currencies) and v.currency is None,
            rank_of(sorted(v.words), VALUES) or 0,
            v.currency is None,
            "total" not in v.words,
        )
    )
    mixed = ""
    if currencies and found and found[0].currency is None:
        values = sorted(currencies[0].text.drop_nulls().unique().to_list())
        mixed = (
            f"its values are in {len(values)} currencies ({currencies[0].name!r}: {', '.join(values[:4])}"
            f"{', ...' if len(values) > 4 else ''}): convert them to one"
        )
    texts = [v for v in named if v.numbers is None and v.text.drop_nulls().str.contains(r"\d").any()]
    return Worth(found, mixed, None if found or not texts else texts[0])


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
    """Return the column of orders that several conversions share, with the question about it; None without a column.

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
