"""The groups into which a column that a log keeps splits its displays, each named, and few enough to read.

A column of words has a group for each of them, a column of numbers one for each quarter of the displays, cut at values
that displays have: where a quartile is the same as the next, or nothing lies above it, the two quarters are one group.
Displays without a value are a group of their own.

Which groups are named follows from the log's displays alone, never from what they earned or from what a policy did
with them, so that all policies have the same groups, and naming them costs no error. A group that says nothing is not
named: with K actions that are shown alike, about one display in K is accepted, and so a group is named from
`FEWEST` K displays on, and no more than the `MOST` largest are. The others are pooled into one, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.schema import OWN_COLUMNS, WEIGHT

# Displays an action from which on a group is named: about as many rounds of a replay.
FEWEST = 100
# Groups named at most.
MOST = 20
MISSING = "(missing)"
_QUARTILES = (0.25, 0.5, 0.75)

Codes = npt.NDArray[np.int32]


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
            f"`by='{by}'` names an empty column.", hint="separate columns by single commas: device,country."
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
            hint="leave `by` out, or evaluate a log of all displays.",
        )
    return tuple(read_split(log, column) for column in columns_of(by))


def read_split(log: Log, column: str) -> Split:
    """Return the groups of a log's displays by a column. O(n) time; memory: 4 bytes a display, 8 more for numbers.

    Raises
    ------
    ParameterError
        The log keeps no such column, or its values are vectors.
    """
    kept = [name for name in log.schema.names if name not in OWN_COLUMNS]
    if column not in kept:
        raise ParameterError(
            f"`by`: log {log.meta.name!r} keeps no column {column!r} (it keeps {', '.join(kept) or 'none'}).",
            hint=f"read or convert its source anew with `keep=['{column}']`.",
        )
    kind = log.schema.field(column).type
    if pa.types.is_nested(kind):
        raise ParameterError(
            f"`by`: column {column!r} holds values of type {kind}, which are no groups.",
            hint="name a column of words or of numbers.",
        )
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        code, labels = _quarters(log, column)
    else:
        code, labels = _words(log, column)
    return _pooled(column, code, labels, fewest=FEWEST * log.n_actions)


def _words(log: Log, column: str) -> tuple[Codes, list[str]]:
    """Return the number of each display's word, and the words, most frequent first."""
    code, number = np.empty(len(log), np.int32), dict[str | None, int]()
    for first, batch in log.batches([column]):
        found = pa.array(batch[column]).cast(pa.string()).dictionary_encode(null_encoding="encode")
        of = [number.setdefault(word, len(number)) for word in found.dictionary.to_pylist()]
        code[first : first + len(found)] = np.array(of, np.int32)[found.indices.to_numpy(zero_copy_only=False)]
    words = [MISSING if word is None else word for word in number]
    shown = np.bincount(code, minlength=len(words))
    order = sorted(range(len(words)), key=lambda i: (-int(shown[i]), words[i]))
    place = np.empty(len(words), np.int32)
    place[order] = np.arange(len(words))
    return place[code], [words[i] for i in order]


def _quarters(log: Log, column: str) -> tuple[Codes, list[str]]:
    """Return the quarter of each display's number, and what the quarters are."""
    value = np.empty(len(log))
    for first, batch in log.batches([column]):
        value[first : first + len(batch[column])] = batch[column]
    known = ~np.isnan(value)
    if not known.any():
        return np.zeros(len(value), np.int32), [MISSING] if len(value) else []
    cuts = np.unique(np.quantile(value[known], _QUARTILES, method="inverted_cdf"))
    cuts = cuts[cuts < value[known].max()]
    code = np.searchsorted(cuts, value).astype(np.int32)
    code[~known] = len(cuts) + 1
    least, most = value[known].min(), value[known].max()
    ends = [least, *cuts, most]
    labels = [f"{'above ' if i else ''}{low:g} to {high:g}" for i, (low, high) in enumerate(pairwise(ends))]
    return code, labels + [MISSING] * (not known.all())


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
