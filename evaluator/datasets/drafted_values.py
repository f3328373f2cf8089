"""Which column of a drafted table holds what a conversion is worth, and in one currency."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.datasets.column_looks import PARTS, VALUES, Look, rank_of

_CURRENCY = {"currency", "currencies", "ccy"}


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
