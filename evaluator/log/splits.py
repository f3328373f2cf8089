"""The groups into which a column that a log keeps splits its displays, each named, and few enough to read.

A column of words has a group for each of them, a column of numbers one for each quarter of the displays, cut at values
that displays have: where a quartile is the same as the next, or nothing lies above it, the two quarters are one group.
Words that are all numbers, as a CSV file has them, are cut so, too, where they are more than could be named. Displays
without a value are a group of their own.

Which groups are named follows from the log's displays alone, never from what they earned or from what a policy did
with them, so that all policies have the same groups, and naming them costs no error. A group that says nothing is not
named: with K actions that are shown alike, about one display in K is accepted, and so a group is named from
`FEWEST` K displays on, and no more than the `MOST` largest are. The others are pooled into one, and counted.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.schema import WEIGHT, is_number, kept_columns, words

# Displays an action from which on a group is named: about as many rounds of a replay.
FEWEST = 100
# Groups named at most.
MOST = 20
MISSING = "(missing)"
_QUARTILES = (0.25, 0.5, 0.75)
# A number as one writes it; what begins with needless zeros is a code.
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
# Whole numbers up to here are written in full.
_EXACT = 1e15

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split:
    """Groups of a log's displays.

    Parameters
    ----------
    column
        Column that splits them.
    code
        Number of each display's group, shape (n,).
    labels
        Name of each group, largest first, quarters of numbers in their order; the pooled ones last.
    pooled
        Number of groups in the last one; 0 where every group is named.
    """

    column: str
    code: Codes
    labels: tuple[str, ...]
    pooled: int

    @property
    def named(self) -> int:
        """Number of groups that are named."""
        return len(self.labels) - (self.pooled > 0)


def columns_of(by: str | None) -> tuple[str, ...]:
    """Return the columns that an option ``by`` names, separated by commas.

    Raises
    ------
    ParameterError
        A name is empty.

    Examples
    --------
    >>> columns_of("device, country")
    ('device', 'country')
    """
    if by is None:
        return ()
    columns = [name.strip() for name in by.split(",")]
    if not all(columns):
        raise ParameterError(
            f"`by='{by}'` names an empty column.", remedy="separate columns by single commas: device,country."
        )
    return tuple(dict.fromkeys(columns))


def read_splits(log: Log, by: str | None) -> tuple[Split, ...]:
    """Return the groups of a log's displays by each column that an option ``by`` names.

    Raises
    ------
    ParameterError
        The log keeps no such column, or its displays are no even sample of the traffic.
    """
    if by is not None and WEIGHT in log.schema.names:
        raise ParameterError(
            f"`by='{by}'`: displays of log {log.meta.name!r} have weights, by which no group's logged mean is known.",
            remedy="leave `by` out, or evaluate a log of all displays.",
        )
    return tuple(read_split(log, column) for column in columns_of(by))


def read_split(log: Log, column: str) -> Split:
    """Return the groups of a log's displays by a column. O(n) time; memory: 4 bytes a display, 8 more for numbers.

    Raises
    ------
    ParameterError
        The log keeps no such column, or its values are vectors.
    """
    kept = kept_columns(log.schema.names)
    if column not in kept:
        raise ParameterError(
            f"`by`: log {log.meta.name!r} keeps no column {column!r} (it keeps {', '.join(kept) or 'none'}).",
            remedy=f"read or convert its source anew with `keep=['{column}']`.",
        )
    kind = log.schema.field(column).type
    if pa.types.is_nested(kind):
        raise ParameterError(
            f"`by`: column {column!r} holds values of type {kind}, which are no groups.",
            remedy="name a column of words or of numbers.",
        )
    if is_number(kind):
        code, labels = _quarters(_numbers(log, column))
    else:
        code, labels = _words(log, column)
        known = [label for label in labels if label != MISSING]
        if len(known) > MOST and all(map(_DECIMAL.fullmatch, known)):
            code, labels = _quarters(np.array([math.nan if x == MISSING else float(x) for x in labels])[code])
    return _pooled(column, code, labels, fewest=FEWEST * log.n_actions)


def _words(log: Log, column: str) -> tuple[Codes, list[str]]:
    """Return the number of each display's word, and the words, most frequent first."""
    code, number = np.empty(len(log), np.int32), dict[str | None, int]()
    for first, values in log.arrays(column):
        found = words(values).dictionary_encode(null_encoding="encode")
        of = [number.setdefault(word, len(number)) for word in found.dictionary.to_pylist()]
        code[first : first + len(found)] = np.array(of, np.int32)[found.indices.to_numpy(zero_copy_only=False)]
    labels = [MISSING if word is None else word for word in number]
    shown = np.bincount(code, minlength=len(labels))
    order = sorted(range(len(labels)), key=lambda i: (-int(shown[i]), labels[i]))
    place = np.empty(len(labels), np.int32)
    place[order] = np.arange(len(labels))
    return place[code], [labels[i] for i in order]


def _numbers(log: Log, column: str) -> Floats:
    """Return the number of each display, nan where it has none, shape (n,)."""
    value = np.empty(len(log))
    for first, values in log.arrays(column):
        found = values.cast(pa.float64(), safe=False)
        value[first : first + len(found)] = found.to_numpy(zero_copy_only=False)
    return value


def _quarters(value: Floats) -> tuple[Codes, list[str]]:
    """Return the quarter of each display's number, and between which numbers each quarter is."""
    known = ~np.isnan(value)
    if not known.any():
        return np.zeros(len(value), np.int32), [MISSING] if len(value) else []
    cuts = np.unique(np.quantile(value[known], _QUARTILES, method="inverted_cdf"))
    cuts = cuts[cuts < value[known].max()]
    code = np.searchsorted(cuts, value).astype(np.int32)
    code[~known] = len(cuts) + 1
    labels = []
    for quarter in range(len(cuts) + 1):
        own = value[code == quarter]
        labels.append(" to ".join(dict.fromkeys(_said(end) for end in (own.min(), own.max()))))
    return code, labels + [MISSING] * (not known.all())


def _said(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < _EXACT else f"{number:.6g}"


def _pooled(column: str, code: Codes, labels: list[str], *, fewest: int) -> Split:
    """Return the groups, the small ones among them pooled into a last one."""
    shown = np.bincount(code, minlength=len(labels))
    largest = np.argsort(-shown, kind="stable")[:MOST]
    named = np.sort(largest[shown[largest] >= fewest])
    place = np.full(len(labels), len(named), np.int32)
    place[named] = np.arange(len(named))
    pooled = len(labels) - len(named)
    names = [labels[i] for i in named]
    if pooled:
        names.append(f"other ({pooled:,} group{'s' * (pooled > 1)})")
    return Split(column, place[code], tuple(names), pooled)
