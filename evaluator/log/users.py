"""Which displays are of one user, as far as the names of a log's columns tell."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evaluator.log.column import Column, read_clusters, source_columns
from evaluator.log.contract import Log
from evaluator.log.schema import kept_columns

# Columns of these names hold users, the first the most surely; a device is one only where its name says it is an id.
_PEOPLE = ("uid", "user", "visitor", "customer", "member", "person", "client", "account", "household", "cookie")
_USERS = re.compile(rf"(?:anonymous|anon)?({'|'.join(_PEOPLE)}|deviceid)(?:id|key|hash|uuid|no|number)?s?")
# Named among the columns to keep, it asks for those whose names say that they hold users, where a source has any.
LIKE_USERS = "*users"
# Of fewer values a column says of what kind a user is, not who.
_FEWEST_USERS = 100


def read_users(log: Log, named: str | None) -> Column | None:
    """Return which displays are of one user; None where no column is known to say so.

    Parameters
    ----------
    log
        Log whose displays are of users.
    named
        Choice of clusters (`read_clusters`), if any. A column that it names is that of the users, unless the log keeps
        one whose name says so more plainly, such as ``user_id``, and which has the values of many. Parts of the clock
        beside it say nothing of users.

    Examples
    --------
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
