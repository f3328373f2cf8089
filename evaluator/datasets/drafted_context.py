"""``[context]`` and ``[leakage]`` of a drafted spec: which columns a policy may see."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import polars as pl

from evaluator.datasets.column_looks import Look
from evaluator.datasets.draft_lines import Line

# So many conversions on so small a share of the rows: by chance once in a million.
_CONVERSIONS, _SHARE = 20, 0.5
_MANY = 1_000


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
