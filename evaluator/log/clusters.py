"""Which displays hang together: those of one user, of one part of the log's clock, or of one group of a column."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.schema import kept_columns, words
from evaluator.results.json_documents import Count, omitted
from evaluator.units import SECONDS, duration_ticks, parse_whole

Codes = npt.NDArray[np.int32]

# Parts of the clock are named so: every:1d, or every:5000 where the log counts rounds.
EVERY = "every:"
_UNITS = ", ".join(SECONDS)
# Columns of these names hold users, the first the most surely; a device is one only where its name says it is an id.
_PEOPLE = ("uid", "user", "visitor", "customer", "member", "person", "client", "account", "household", "cookie")
_USERS = re.compile(rf"(?:anonymous|anon)?({'|'.join(_PEOPLE)}|deviceid)(?:id|key|hash|uuid|no|number)?s?")
# Named among the columns to keep, it asks for those whose names say that they hold users, where a source has any.
LIKE_USERS = "*users"
# Of fewer values a column says of what kind a user is, not who.
_FEWEST_USERS = 100
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each display. Displays of different clusters are taken as independent, those of one are not.

    Parameters
    ----------
    by
        Choice of clusters as it was asked for: a column, or ``every:`` and a duration.
    code
        Cluster of each display, from 0 in the order of their first displays, shape (n,) int32.
    count
        Number of different clusters.
    unnamed
        Number of displays without a value in the column: each is a cluster of its own.
    """

    by: str
    code: Annotated[Codes, *omitted]
    count: Count
    unnamed: Count


def source_columns(by: str | None) -> list[str]:
    """Return what a source must keep to cluster its displays: the column, where one is named."""
    return [] if by is None or by.startswith(EVERY) else [by]


def like_users(names: Iterable[str]) -> list[str]:
    """Return those names that say that a column holds users, the one that says so most surely first.

    >>> like_users(["country", "account", "User_ID", "device"])
    ['User_ID', 'account']
    """
    alike = [(place, name) for name in names if (place := _place(name)) is not None]
    return [name for _, name in sorted(alike)]


def read_users(log: Log, named: str | None) -> Clusters | None:
    """Return which displays are of one user; None where no column is known to say so.

    Parameters
    ----------
    log
        Log whose displays are of users.
    named
        Choice of clusters (`read_clusters`), if any. A column that it names is that of the users, unless the log keeps
        one whose name says so more plainly, such as ``user_id``, and which has the values of many.

    Examples
    --------
    >>> from evaluator import load
    >>> read_users(load("synthetic", limit=1000), "every:100") is None
    True
    """
    alike = like_users(kept_columns(log.schema.names))
    if named is not None and not named.startswith(EVERY) and (_place(named) is not None or not alike):
        return read_clusters(log, named)
    for name in alike:
        found = read_clusters(log, name)
        if found.count - found.unnamed >= _FEWEST_USERS:
            return found
    return None if named is None or named.startswith(EVERY) else read_clusters(log, named)


def _place(name: str) -> int | None:
    """Return how surely a column of this name holds users, from 0; None where its name does not say so."""
    found = _USERS.fullmatch(re.sub("[^a-z]", "", name.lower()))
    return None if found is None else (*_PEOPLE, "deviceid").index(found[1])


def read_clusters(log: Log, by: str) -> Clusters:
    """Return the clusters of a log's displays, in one pass over one column.

    Memory: 4 bytes a display and, meanwhile, the different values of the column.

    Parameters
    ----------
    log
        The log whose displays are clustered.
    by
        Column that the log keeps (``keep`` of `evaluator.datasets.load`), or ``every:1d``: parts of the clock, cut at
        whole multiples of the duration; of a log that counts rounds, ``every:5000``.

    Raises
    ------
    ParameterError
        The log keeps no such column, or the duration does not fit its clock; the message names what it has.

    Examples
    --------
    >>> from evaluator import load
    >>> found = read_clusters(load("synthetic", limit=1000), "every:100")
    >>> found.count, found.unnamed
    (10, 0)
    """
    kept = kept_columns(log.schema.names)
    if by.startswith(EVERY):
        if by in kept:
            raise ParameterError(
                f"`cluster_by='{by}'`: log {log.meta.name!r} keeps a column of that name.", remedy="rename the column."
            )
        return _parts_of_clock(log, by)
    if by not in kept:
        raise ParameterError(
            f"`cluster_by='{by}'`: log {log.meta.name!r} keeps no such column (it keeps {', '.join(kept) or 'none'}).",
            remedy=f"read or convert its source anew with `keep=['{by}']`; or cluster by the clock: every:1d.",
        )
    code, number = np.empty(len(log), np.int32), dict[str, int]()
    for first, column in log.arrays(by):
        found = words(column).dictionary_encode()
        of = [number.setdefault(label, len(number)) for label in found.dictionary.to_pylist()]
        code[first : first + len(found)] = np.array([*of, -1])[
            found.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        ]
    alone = np.flatnonzero(code < 0)
    code[alone] = len(number) + np.arange(len(alone))
    return Clusters(by, code, len(number) + len(alone), len(alone))


def _parts_of_clock(log: Log, by: str) -> Clusters:
    ticks = _ticks(log, by)
    code, last, count = np.empty(len(log), np.int32), None, -1
    for first, batch in log.batches(["time"]):
        part = batch["time"] // ticks
        new = np.diff(part, prepend=part[0] - 1 if last is None else last) != 0
        code[first : first + len(part)] = count + np.cumsum(new)
        last, count = part[-1], int(code[first + len(part) - 1])
    return Clusters(by, code, count + 1, 0)


def _ticks(log: Log, by: str) -> int:
    length, seconds = by.removeprefix(EVERY).strip(), log.meta.tick_seconds
    rounds = parse_whole(length)
    if seconds is None:
        if not rounds:
            raise ParameterError(
                f"`cluster_by='{by}'`: log {log.meta.name!r} counts rounds, not time.",
                remedy="name rounds: every:5000.",
            )
        return rounds
    if rounds is not None:
        raise ParameterError(
            f"`cluster_by='{by}'`: log {log.meta.name!r} has times.", remedy=f"name a duration: every:1d ({_UNITS})."
        )
    ticks = round(duration_ticks(length, seconds))
    if ticks < 1:
        raise ParameterError(
            f"`cluster_by='{by}'` is out of range.", remedy="take at least one tick of the log: every:1d."
        )
    return ticks


def group_codes(log: Log, displays: Ints, columns: tuple[str, ...], *, asked: str) -> list[Ints]:
    """Return a number of each distinct value of some displays in some columns, an empty cell being one value.

    Parameters
    ----------
    log
        Log whose columns are read.
    displays
        Numbers of the displays, increasing, shape (n,).
    columns
        Names of columns that the log keeps.
    asked
        The option that names them, for errors, with ``{}`` where a column stands.

    Raises
    ------
    ParameterError
        A column is not in the log, or its values are no groups.
    """
    kept = kept_columns(log.schema.names)
    for name in columns:
        if name not in kept:
            raise ParameterError(
                f"{asked.format(name)}: log {log.meta.name!r} "
                f"keeps no such column (it keeps {', '.join(kept) or 'none'}).",
                remedy=f"read or convert its source anew with `keep=['{name}']`.",
            )
        kind = log.schema.field(name).type
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            raise ParameterError(
                f"{asked.format(name)}: values of type {kind} are no groups.",
                remedy="keep a column of words or whole numbers, such as a device or a country.",
            )
    read = log.take(displays, columns) if columns else {}
    return [_codes(read[name]) for name in columns]


def _codes(column: pa.ChunkedArray) -> Ints:
    words = column.combine_chunks()
    if pa.types.is_dictionary(words.type):
        words = words.dictionary_decode()
    codes: Ints = words.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)
