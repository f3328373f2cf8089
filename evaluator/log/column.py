"""A column that a log keeps, or several crossed, and the group of each display by it.

One column has a group for each of its values. Crossed columns, `country+device`, have one for each combination that the
log shows. What is then made of the groups depends on what they are for:

- *Values* (`read_values`) are groups as they are, for delays and checks by a column.
- *Named groups* (`read_groups`) are few enough to read. A column of numbers is cut at its quartiles, at values that
  displays have: where a quartile is the same as the next, or nothing lies above it, the two quarters are one group.
  Words that are all numbers, as a CSV file has them, are cut too where they are more than could be named. The clock
  can be cut into parts like a column: `every:1d`. Crossed columns are cut first and crossed then.
- *Clusters* (`read_clusters`) are displays that hang together, such as those of one user. Displays without a value are
  each a cluster of its own, and parts of the clock are clusters too.

Which groups are named follows from the log's displays alone, never from what they earned or from what a policy did
with them, so that all policies have the same groups, and naming them costs no error. A group that says nothing is not
named: with K actions that are shown alike, about one display in K is accepted, and so a group is named from
`FEWEST` K displays on, and no more than the `MOST` largest are. The others are pooled into one, and counted.

Which displays are of one user, as far as the names of a log's columns tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError, UsageError
from evaluator.log.contract import Log
from evaluator.log.schema import WEIGHT, is_number, kept_columns, words
from evaluator.log.times import time_words
from evaluator.results.json_documents import Count, omitted
from evaluator.units import SECONDS, duration_ticks, parse_whole

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Crosses columns: no shell gives it a meaning of its own, and a comma lists columns one after the other.
CROSS, BETWEEN = "+", " + "
# Name of the group of the displays whose cell is empty.
MISSING = "(missing)"
# Displays an action from which on a group is named: about as many rounds of a replay.
FEWEST = 100
# Groups named at most.
MOST = 20
_QUARTILES = (0.25, 0.5, 0.75)
# A number as one writes it (what begins with needless zeros is a code), and whole ones that are written in full.
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_EXACT = 1e15
# Parts of the clock are named so: every:1d, or every:5000 where the log counts rounds.
EVERY = "every:"
# The options that name columns, as errors name them.
BY, CLUSTER_BY = "`by='{}'`", "`cluster_by='{}'`"
# Columns of these names hold users, the first the most surely; a device is one only where its name says it is an id.
_PEOPLE = ("uid", "user", "visitor", "customer", "member", "person", "client", "account", "household", "cookie")
_USERS = re.compile(rf"(?:anonymous|anon)?({'|'.join(_PEOPLE)}|deviceid)(?:id|key|hash|uuid|no|number)?s?")
# Named among the columns to keep, it asks for those whose names say that they hold users, where a source has any.
LIKE_USERS = "*users"
# Of fewer values a column says of what kind a user is, not who.
_FEWEST_USERS = 100


@dataclass(frozen=True, eq=False)
class Column:
    """Groups of displays by a column of a log, by several crossed, or by the clock.

    Displays of different clusters are taken as independent, those of one are not.

    Parameters
    ----------
    by
        Name of the column, names of crossed ones with plus signs between, or ``every:`` and a duration.
    code
        Number of each display's group, from 0, shape (n,).
    count
        Number of different groups.
    unnamed
        Number of displays without a value that are each a group of its own.
    labels
        Name of each group, pooled ones last; clusters have none.
    pooled
        Number of groups in the last one; 0 where every group is named.
    """

    by: str
    code: Annotated[Codes, *omitted]
    count: Count
    unnamed: Count = 0
    labels: Annotated[tuple[str, ...], *omitted] = ()
    pooled: Annotated[int, *omitted] = 0

    @property
    def named(self) -> int:
        """Number of groups that are named."""
        return len(self.labels) - (self.pooled > 0)


def columns_of(by: str | None) -> tuple[str, ...]:
    """Return the columns that an option ``by`` names, separated by commas; crossed ones are one.

    >>> columns_of("device, country, device+country")
    ('device', 'country', 'device+country')
    """
    if by is None:
        return ()
    columns = [name.strip() for name in by.split(",")]
    if not all(columns):
        raise ParameterError(
            f"`by='{by}'` names an empty column.", remedy="separate columns by single commas: device,country."
        )
    return tuple(dict.fromkeys(columns))


def parts_of(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the columns that a name crosses; of columns whose own names have plus signs, the longest that fits.

    Raises ParameterError where a name beside a plus sign is empty.

    >>> parts_of("device + country", ["device", "country"]), parts_of("c+++device", ["c++", "device"])
    (('device', 'country'), ('c++', 'device'))
    """
    if CROSS not in name or name in known:
        return (name,)
    pieces, parts = name.split(CROSS), list[str]()
    while pieces:
        joined = {n: CROSS.join(pieces[:n]).strip() for n in range(len(pieces), 0, -1)}
        n = next((n for n, part in joined.items() if part in known), 1)
        parts.append(joined[n])
        pieces = pieces[n:]
    if not all(parts):
        raise ParameterError(
            f"`{name}` crosses an empty column.", remedy="cross columns by single plus signs: device+country."
        )
    return tuple(dict.fromkeys(parts))


def source_columns(by: str | None) -> list[str]:
    """Return what a source must keep to group its displays: the columns that are named, if any, crossed or not."""
    named = (piece for piece in (by or "").split(CROSS) if not piece.strip().startswith(EVERY))
    return [columns] if (columns := CROSS.join(named).strip()) else []


def uncrossed(keep: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the columns to keep, those that are crossed each by itself; every log has the action to cross with."""
    crossed = ((name, part) for name in keep for part in parts_of(name, known))
    return [part for name, part in crossed if part != "action" or name == part]


def check_kept(log: Log, keep: Sequence[str]) -> None:
    """Raise UsageError unless a log that is not read from files has the columns to keep."""
    kept = kept_columns(log.schema.names)
    for column in uncrossed(keep, kept):
        if column not in (*kept, LIKE_USERS):
            raise UsageError(
                f"Log {log.meta.name!r} keeps no column {column!r} (it keeps {', '.join(kept) or 'none'}).",
                remedy=f"convert its source with `keep=['{column}']`.",
            )


def cross(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> tuple[Ints, Ints, Ints]:
    """Return which pairs of groups there are, in the order of the first's and then the second's, and each row's pair.

    >>> [of.tolist() for of in cross(np.array([1, 0, 1]), np.array([0, 2, 0]))]
    [[0, 1], [2, 0], [1, 0, 1]]
    """
    size = int(other.max(initial=0)) + 1
    pairs, code = np.unique(one.astype(np.int64) * size + other, return_inverse=True)
    return pairs // size, pairs % size, code.astype(np.int64, copy=False)


def read_values(
    log: Log, names: Sequence[str], displays: Ints, *, asked: str = BY, fractions: bool = True
) -> list[Column]:
    """Return the groups of some displays by the values of each column as they are, in one pass over the columns.

    The displays are given by their numbers, shape (n,), the columns, crossed or not, by their names, or ``action``.
    Raises ParameterError where the log keeps no such column, or its values are no groups, nor are fractions unless they
    are allowed, as they hardly ever come twice; `asked` is the option that names the columns, with ``{}`` where one
    stands.
    """
    parts = [_parts(log, name, asked, "action") for name in names]
    reads = list(dict.fromkeys(part for of in parts for part in of))
    for part in () if fractions else reads:
        if pa.types.is_floating(kind := log.schema.field(part).type):
            raise _no_groups(asked.format(part), part, kind)
    table, labels = log.take(displays, reads) if reads else {}, log.labels
    read = {part: _encoded(_chunks(table[part]), len(displays)) for part in reads}
    if "action" in read:
        read["action"] = read["action"][0], [labels[int(str(number))] for number in read["action"][1]]
    return [_as_column(of, *_crossed([read[part] for part in of])) for of in parts]


def read_groups(log: Log, by: str | None) -> tuple[Column, ...]:
    """Return the named groups of a log's displays by each column that an option ``by`` names, crossed or not.

    O(n) time, of crossed columns O(n log n); memory: 4 bytes a display, 8 more for numbers, 24 for crossed columns.
    Errors: ParameterError where the log keeps no such column, its values are vectors, or its displays have weights.
    """
    if by is not None and WEIGHT in log.schema.names:
        raise ParameterError(
            f"`by='{by}'`: displays of log {log.meta.name!r} have weights, by which no group's logged mean is known.",
            remedy="leave `by` out, or evaluate a log of all displays.",
        )
    crossed = [_parts(log, name, BY, clock=True) for name in columns_of(by)]
    # Crossed in another order, the pairs are the same.
    parts = {frozenset(of): of for of in reversed(crossed)}.values()
    cut = ((of, *_crossed([_cut(log, part) for part in of])) for of in reversed(parts))
    return tuple(_pooled(_as_column(*of), fewest=FEWEST * log.n_actions) for of in cut)


def read_clusters(log: Log, by: str, asked: str = CLUSTER_BY) -> Column:
    """Return the clusters of a log's displays, in the order of their first displays; those without a value are last.

    They are named by a column that the log keeps (``keep`` of `evaluator.datasets.load`), or by parts of the clock, cut
    at whole multiples of a duration: ``every:1d``, or ``every:5000`` where the log counts rounds. Or by several,
    crossed. Memory: 4 bytes a display and, meanwhile, the different values of the column. Raises ParameterError where
    the log keeps no such column, or the duration does not fit its clock; the message names what it has, and the option
    with which it was `asked` for.

    >>> from evaluator import load
    >>> found = read_clusters(load("synthetic", limit=1000), "every:100")
    >>> found.count, found.unnamed
    (10, 0)
    """
    parts = _parts(log, by, asked, clock=True)
    code: npt.NDArray[Any] | None = None
    empty = np.zeros(len(log), np.bool_)
    for part in parts:
        if part.startswith(EVERY):
            own, _ = _parts_of_clock(log, _ticks(log, part, asked))
        else:
            own, labels = _encoded(log.arrays(part), len(log))
            if None in labels:
                empty |= own == labels.index(None)
        code = own if code is None else cross(code, own)[2]
    found = pa.array(code, mask=empty).dictionary_encode()
    named = len(found.dictionary)
    numbers: Codes = np.array(found.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int32)
    alone = np.flatnonzero(empty)
    numbers[alone] = named + np.arange(len(alone))
    return Column(CROSS.join(parts), numbers, named + len(alone), len(alone))


def _parts(log: Log, name: str, asked: str, *more: str, clock: bool = False) -> tuple[str, ...]:
    """Return the columns of a log that a name crosses, if it keeps them and their values are groups."""
    kept = [*more, *kept_columns(log.schema.names)]
    parts, whose = parts_of(name, kept), f"{asked.format(name)}: log {log.meta.name!r}"
    for part in parts:
        if clock and part.startswith(EVERY):
            if part in kept:
                raise ParameterError(f"{whose} keeps a column of that name.", remedy="rename the column.")
        elif part.startswith(EVERY) and part not in kept:
            raise ParameterError(f"{whose} has no groups by parts of the clock here.", remedy="name a column.")
        elif part not in kept:
            remedy = f"read or convert its source anew with `keep=['{part}']`"
            raise ParameterError(
                f"{whose} keeps no column {part!r} (it keeps {', '.join(kept) or 'none'}).",
                remedy=f"{remedy}; or take parts of the clock: every:1d." if asked == CLUSTER_BY else f"{remedy}.",
            )
        elif pa.types.is_nested(kind := log.schema.field(part).type):
            raise _no_groups(asked.format(name), part, kind)
    return parts


def grouping_columns(log: Log) -> list[str]:
    """Return the columns that a log keeps and whose values are groups: vectors are none."""
    schema = log.schema
    return [name for name in kept_columns(schema.names) if not pa.types.is_nested(schema.field(name).type)]


def _no_groups(asked: str, column: str, kind: pa.DataType) -> ParameterError:
    return ParameterError(
        f"{asked}: column {column!r} holds values of type {kind}, which are no groups.",
        remedy="name a column of words or of whole numbers, such as a device or a country.",
    )


def _as_column(parts: Sequence[str], code: npt.NDArray[Any], labels: Sequence[str | None]) -> Column:
    shown = tuple(MISSING if label is None else label for label in labels)
    return Column(CROSS.join(parts), code.astype(np.int32, copy=False), len(shown), labels=shown)


def _crossed(parts: Sequence[tuple[npt.NDArray[Any], list[str | None]]]) -> tuple[npt.NDArray[Any], list[str | None]]:
    """Return the groups of crossed columns, in the order of the first's, then the second's."""
    code, labels = parts[0]
    if len(parts) > 1:
        labels = [label_of_part(label) for label in labels]
    for own, names in parts[1:]:
        first, second, code = cross(code, own)
        other = [label_of_part(label) for label in names]
        labels = [f"{labels[i]}{BETWEEN}{other[j]}" for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    return code, labels


def label_of_part(label: str | None) -> str:
    """Return a column's label as those of crossed columns have it: in quotes where it reads like one of these itself.

    >>> BETWEEN.join(map(label_of_part, ["a + b", "c"])), BETWEEN.join(map(label_of_part, ["a", "b + c"]))
    ("'a + b' + c", "a + 'b + c'")
    """
    if label is None:
        return MISSING
    return repr(label) if BETWEEN in label else label


def _chunks(column: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    first = 0
    for chunk in column.chunks:
        yield first, chunk
        first += len(chunk)


def _encoded(column: Iterable[tuple[int, pa.Array]], n: int) -> tuple[Codes, list[str | None]]:
    """Return the number of each display's value, and the values, in the order of their first displays."""
    code, number = np.empty(n, np.int32), dict[str | None, int]()
    for first, values in column:
        found = words(values).dictionary_encode(null_encoding="encode")
        of = [number.setdefault(label, len(number)) for label in found.dictionary.to_pylist()]
        code[first : first + len(found)] = np.array(of, np.int32)[found.indices.to_numpy(zero_copy_only=False)]
    return code, list(number)


def _parts_of_clock(log: Log, ticks: int) -> tuple[Codes, Ints]:
    """Return which part of the clock each display is in, counted from 0, and when each part began."""
    code, begun, last, count = np.empty(len(log), np.int32), [np.zeros(0, np.int64)], None, -1
    for first, batch in log.batches(["time"]):
        part = batch["time"] // ticks
        new = np.diff(part, prepend=part[0] - 1 if last is None else last) != 0
        code[first : first + len(part)] = count + np.cumsum(new)
        begun.append(part[new] * ticks)
        last, count = part[-1], int(code[first + len(part) - 1])
    return code, np.concatenate(begun)


def _ticks(log: Log, by: str, asked: str) -> int:
    length, seconds, asked = by.removeprefix(EVERY).strip(), log.meta.tick_seconds, asked.format(by)
    rounds = parse_whole(length)
    if seconds is None:
        if not rounds:
            raise ParameterError(
                f"{asked}: log {log.meta.name!r} counts rounds, not time.", remedy="name rounds: every:5000."
            )
        return rounds
    if rounds is not None:
        raise ParameterError(
            f"{asked}: log {log.meta.name!r} has times.", remedy=f"name a duration: every:1d ({', '.join(SECONDS)})."
        )
    ticks = round(duration_ticks(length, seconds))
    if ticks < 1:
        raise ParameterError(f"{asked} is out of range.", remedy="take at least one tick of the log: every:1d.")
    return ticks


def _cut(log: Log, column: str) -> tuple[Codes, list[str | None]]:
    """Return the group of each display by one column, and the groups: words by frequency, quarters, or times."""
    if column.startswith(EVERY):
        code, begun = _parts_of_clock(log, _ticks(log, column, BY))
        seconds = log.meta.tick_seconds
        return code, [f"from {time_words(time, seconds, start=int(begun[0]))}" for time in begun.tolist()]
    if is_number(log.schema.field(column).type):
        return _quarters(_numbers(log, column))
    code, values = _encoded(log.arrays(column), len(log))
    labels = [MISSING if value is None else value for value in values]
    known = [label for label in labels if label != MISSING]
    if len(known) > MOST and all(map(_DECIMAL.fullmatch, known)):
        return _quarters(np.array([math.nan if x == MISSING else float(x) for x in labels])[code])
    shown = np.bincount(code, minlength=len(labels))
    order = sorted(range(len(labels)), key=lambda i: (-int(shown[i]), labels[i]))
    return renumbered(code, order, len(labels)), [labels[i] for i in order]


def _numbers(log: Log, column: str) -> Floats:
    """Return the number of each display, nan where it has none, shape (n,)."""
    value = np.empty(len(log))
    for first, values in log.arrays(column):
        found = values.cast(pa.float64(), safe=False)
        value[first : first + len(found)] = found.to_numpy(zero_copy_only=False)
    return value


def _quarters(value: Floats) -> tuple[Codes, list[str | None]]:
    """Return the quarter of each display's number, and between which numbers each quarter is."""
    known = ~np.isnan(value)
    if not known.any():
        return np.zeros(len(value), np.int32), [MISSING] if len(value) else []
    cuts = np.unique(np.quantile(value[known], _QUARTILES, method="inverted_cdf"))
    cuts = cuts[cuts < value[known].max()]
    code = np.searchsorted(cuts, value).astype(np.int32)
    code[~known] = len(cuts) + 1
    labels: list[str | None] = []
    for quarter in range(len(cuts) + 1):
        own = value[code == quarter]
        labels.append(" to ".join(dict.fromkeys(_number_text(end) for end in (own.min(), own.max()))))
    return code, labels + [MISSING] * (not known.all())


def _number_text(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < _EXACT else f"{number:.6g}"


def renumbered(code: npt.NDArray[Any], kept: Sequence[int], groups: int) -> Codes:
    """Return codes by which the groups kept have their places, and all others together the place behind them."""
    place = np.full(groups, len(kept), np.int32)
    place[kept] = np.arange(len(kept))
    found: Codes = place[code]
    return found


def _pooled(column: Column, *, fewest: int) -> Column:
    """Return the groups, the small ones among them pooled into a last one."""
    shown = np.bincount(column.code, minlength=column.count)
    largest = np.argsort(-shown, kind="stable")[:MOST]
    kept = np.sort(largest[shown[largest] >= fewest]).tolist()
    pooled, labels = column.count - len(kept), tuple(column.labels[i] for i in kept)
    if pooled:
        labels = (*labels, f"other ({pooled:,} group{'s' * (pooled > 1)})")
    code = renumbered(column.code, kept, column.count)
    return Column(column.by, code, len(labels), labels=labels, pooled=pooled)


def read_users(log: Log, named: str | None) -> Column | None:
    """Return which displays are of one user; None where no column is known to say so.

    A column that is `named` as the choice of clusters (`read_clusters`), if any, is that of the users, unless the log
    keeps one whose name says so more plainly, such as ``user_id``, and which has the values of many. Parts of the clock
    beside it say nothing of users.

    >>> from evaluator import load
    >>> read_users(load("synthetic", limit=1000), "every:100") is None
    True
    """
    alike = like_users(kept_columns(log.schema.names))
    named = next(iter(source_columns(named)), "")
    if named and (_place(named) is not None or not alike):
        return read_clusters(log, named)
    for name in alike:
        found = read_clusters(log, name)
        if found.count - found.unnamed >= _FEWEST_USERS:
            return found
    return read_clusters(log, named) if named else None


def like_users(names: Iterable[str]) -> list[str]:
    """Return those names that say that a column holds users, the one that says so most surely first.

    >>> like_users(["country", "account", "User_ID", "device"])
    ['User_ID', 'account']
    """
    alike = [(place, name) for name in names if (place := _place(name)) is not None]
    return [name for _, name in sorted(alike)]


def _place(name: str) -> int | None:
    """Return how surely a column of this name holds users, from 0; None where its name does not say so."""
    found = _USERS.fullmatch(re.sub("[^a-z]", "", name.lower()))
    return None if found is None else (*_PEOPLE, "deviceid").index(found[1])
