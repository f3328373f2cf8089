"""What every source becomes: a `Log`.

Tables
------
displays
    ``display_id`` int64 (dense, in the order of the log), ``time`` int64 in ticks (sorted; see `shuffle_ties`),
    ``action`` int32 (index into `actions`), ``propensity`` float64 nullable; optionally
    ``context`` fixed_size_list<float>[p], ``action_set`` fixed_size_list<fixed_size_list<float>[d]>[K] (the K
    action vectors of that display), ``expected_reward`` fixed_size_list<float>[K] (the truth of a synthetic log),
    ``target`` and ``target:NAME`` fixed_size_list<float64>[K] (action probabilities of a policy to be evaluated; they
    sum to 1), or ``target:NAME`` string (label of the action that it takes),
    ``position`` int64 (number of the display in the traffic, dropped displays counted; absent: its number in the log),
    ``weight`` float64 (one over the probability with which the display got into the log), ``cost`` float64 >= 0 (what
    showing the display cost, in the unit of the values), ``eligible`` dictionary<int32, binary> (the actions that could
    have been shown, a bit an action, as `evaluator.log.eligible` packs them; all if absent). With it ``action_set`` may
    be list<fixed_size_list<float>[d]>, the vectors of the eligible actions alone, in their order. Any further column is
    a string or a number, kept from the source to group by.
events
    ``display_id`` int64, ``time`` int64 in ticks, ``value`` float64, and ``kind`` dictionary<int8, string>: empty for
    conversions, whose value is below 0 for refunds, or a name of the metadata's `outcomes`, which say whether they
    count as rewards (else their values are at least 0) and whether policies are told of them. Sorted by display, then
    time. Without ``kind`` all are conversions.
actions
    ``action`` int32 (0..K-1), ``label`` string, optionally ``features`` fixed_size_list<float>[d].

Displays that share one time: their order means nothing, so it is drawn, by a rule that needs no memory.

A file sorted by action inside its time stamps shows a replay each action in a block; a policy that changes its mind
once a round then hardly ever meets the action it wants. Which of two displays of one time comes first is therefore
decided by a hash of (seed, place in the order of the file), which depends on nothing else: not on how a file is cut
into chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import LogError, UnknownNameError, nearest
from evaluator.frame_roles import MadeFromFrames
from evaluator.log.breaches import PARTS, find_breaches
from evaluator.log.eligible import SetCodes, members
from evaluator.log.log_tables import (
    BOUNDS,
    CONVERSION,
    EventKind,
    LogTables,
    choose_kinds,
    kinds_of,
    merge_events,
    with_kind,
)
from evaluator.log.schema import ELIGIBLE, to_numpy
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.streams import STEP, mixed

# Metadata that the rows of each part are validated against.
_BOUND_BY = {
    "displays": {"propensity"},
    "events": {"observed_until", "attribution_window", "outcomes", *BOUNDS},
}
Ints = npt.NDArray[np.int64]
# Of the order that every reader gives a log.
SEED = 0


@dataclass(frozen=True, eq=False)
class Log(LogTables, MadeFromFrames, ShownInNotebooks):
    """A validated log of displays and conversions (see the module for the schema of its tables).

    This one is in memory; `evaluator.log.StoredLog` reads its displays from disk, batch by batch. Whatever goes through
    all displays uses `batches`, and so needs no more memory for a longer log. `from_frames` makes one of frames.

    Displays of one time are replayed in the order they have here. Reading a dataset shuffles them (``[time] ties``); a
    log made by hand keeps its order: if that means nothing, pass it through `evaluator.log.shuffle_ties` first.
    """

    # What has been validated, of `evaluator.log.breaches.PARTS`: tables never change, so once is enough.
    _sound: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        return (
            f"Log({self.meta.name!r}, displays={len(self)}, conversions={self.conversions.num_rows}, "
            f"actions={self.n_actions}, tick={self.meta.tick!r})"
        )

    # What a result says when it is printed reads a log whole.
    __str__ = __repr__

    def validated(self, *, vectors: bool = True) -> Self:
        """Return the log itself if it keeps the contract; `vectors` as in `find_breaches`.

        Raises LogError where it does not; the message names every kind of breach, how many rows, the first of them, and
        the repair.
        """
        return self._validated(PARTS, vectors=vectors)

    def checked(self) -> Self:
        """Return the log itself if it keeps the contract: what every public function asks of the log it is given.

        What was validated before is not looked at again: of a log that was read, nothing. Errors are those of
        `validated`.
        """
        missing = [part for part in PARTS if part not in self._sound]
        return self._validated(missing, vectors=True) if missing else self

    def known_sound(self) -> Self:
        """Return the log itself, whose rows are known to keep the contract: its schemas and metadata are looked at.

        Raises LogError as `validated`.
        """
        self._validated((), vectors=False)
        object.__setattr__(self, "_sound", frozenset(PARTS))
        return self

    def as_sound_as(self, other: Log) -> Self:
        """Return the log itself, a part of another, validated as far as that one is."""
        object.__setattr__(self, "_sound", other._sound)
        return self

    def _validated(self, parts: Sequence[str], *, vectors: bool) -> Self:
        if breaches := find_breaches(self, vectors=vectors, parts=parts):
            remedies = dict.fromkeys(b.remedy for b in breaches)
            raise LogError(" ".join(b.what for b in breaches), remedy=f"{'; '.join(remedies)}.")
        object.__setattr__(self, "_sound", self._sound.union(parts))
        return self

    def after(self, first: int) -> Log:
        """Return the log without its first displays and their conversions, the others numbered anew from 0."""
        rest = self.displays.slice(first)
        rest = rest.set_column(rest.schema.get_field_index("display_id"), "display_id", pa.array(np.arange(len(rest))))
        return self.changed(displays=rest, events=self._events_after(first)).as_sound_as(self)

    def _events_after(self, first: int) -> pa.Table:
        """Return the events of the displays from `first` on, with the numbers these have without the ones before."""
        rest = self.events.slice(int(np.searchsorted(to_numpy(self.events["display_id"]), first)))
        number = pa.array(to_numpy(rest["display_id"]) - first, pa.int64())
        return rest.set_column(rest.schema.get_field_index("display_id"), "display_id", number)

    def until(self, displays: int) -> Log:
        """Return the log as it stood once so many displays had been shown: these, and their conversions by then."""
        now = int(to_numpy(self.take(np.array([displays - 1]), ["time"])["time"])[0])
        outcomes = tuple(replace(one, observed_until=_by(now, one.observed_until)) for one in self.meta.outcomes)
        meta = replace(self.meta, observed_until=_by(now, self.meta.observed_until), outcomes=outcomes)
        of, when = (to_numpy(self.events[name]) for name in ("display_id", "time"))
        seen = self.events.filter(pa.array((of < displays) & (when <= now)))
        return self._first(displays).changed(events=seen, meta=meta).as_sound_as(self)

    def _first(self, displays: int) -> Log:
        """Return the first displays, events and metadata as they are."""
        return self.changed(displays=self.displays.slice(0, displays))

    def changed(self, **parts: object) -> Log:
        """Return a copy with other tables or other metadata, by name; it has not been validated."""
        return replace(self, **parts)  # type: ignore[arg-type]

    def with_meta(self, **changes: object) -> Log:
        """Return a copy with changed metadata, e.g. ``log.with_meta(attribution_window=30)``."""
        changed = self.changed(meta=replace(self.meta, **changes)).as_sound_as(self)  # type: ignore[arg-type]
        # Sound as far as the metadata say nothing else of the rows.
        parts = {part for part, of in _BOUND_BY.items() if not of.isdisjoint(changes)}
        object.__setattr__(changed, "_sound", changed._sound.difference(parts))
        return changed

    def with_conversions(self, conversions: pa.Table) -> Log:
        """Return a copy with other conversions of the same displays; events that do not count stay."""
        names, _ = kinds_of(self.events) or ((), ())
        others = [name for name in names if name not in self.counted]
        rest = [with_kind(choose_kinds(self.events, [name]), name) for name in others]
        return self.changed(events=merge_events(conversions, *rest) if rest else conversions)

    def of_outcome(self, name: str) -> Log:
        """Return the log whose rewards are the events of one of its outcomes, followed as these were.

        Raises UnknownNameError where the log has no outcome of that name.

        >>> import pyarrow
        >>> from evaluator import Log
        >>> frame = pyarrow.table({"shown": [1, 2], "banner": ["red", "blue"], "sold": [None, 4], "clicked": [0, 1]})
        >>> log = Log.from_frames(frame, time="shown", action="banner", conversion_time="sold", unit="s",
        ...                       outcomes={"click": {"indicator": "clicked", "immediate": True}})
        >>> log.of_outcome("click").conversions.to_pylist()
        [{'display_id': 1, 'time': 2, 'value': 1.0}]
        """
        outcome = self.outcome_named(name)
        events = choose_kinds(self.events, [name])
        meta = replace(
            self.meta, observed_until=outcome.observed_until, attribution_window=outcome.attribution_window,
            reward_max=outcome.value_max, reward_min=outcome.value_min, outcomes=(),
        )  # fmt: skip
        return self.changed(events=events, meta=meta, counted=(CONVERSION,)).as_sound_as(self)

    def without_outcomes(self) -> Log:
        """Return the log without the events of its outcomes, for what asks for none: they may be most of its memory."""
        meta = replace(self.meta, outcomes=())
        return self.changed(events=self.conversions, meta=meta).as_sound_as(self)

    def outcome_named(self, name: str) -> EventKind:
        """Return what the log says of an outcome; errors as of `of_outcome`."""
        known = {one.name: one for one in self.meta.outcomes}
        if name not in known:
            own = f"log {self.meta.name!r}"
            if not known:
                hint = "a spec names outcomes as [outcomes.NAME], `Log.from_frames` by `outcomes`."
                raise UnknownNameError(f"There is no outcome {name!r}: {own} has none but its reward.", remedy=hint)
            raise UnknownNameError(f"There is no outcome {name!r} in {own}.", remedy=nearest(name, known))
        return known[name]


def _by(now: int, until: int | None) -> int:
    return now if until is None else min(now, until)


def has_eligibility(log: Log) -> bool:
    """Whether some action is not eligible at some display; a log may say of every display that all are.

    One pass over the sets, up to the first that lacks an action.
    """
    if ELIGIBLE not in log.schema.names:
        return False
    for _, batch in log.batches([ELIGIBLE], coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        first, _ = members(sets.distinct)
        if (np.diff(first)[np.asarray(sets)] < log.n_actions).any():
            return True
    return False


def tied(time: Ints) -> npt.NDArray[np.bool_]:
    """Return which displays have the time of the one before them, shape (n,)."""
    same = np.zeros(len(time), np.bool_)
    np.equal(time[1:], time[:-1], out=same[1:])
    return same


def tie_order(time: Ints, *, first: int = 0, seed: int = SEED) -> Ints | None:
    """Return the places of the displays in their new order, shape (n,); None where no two share a time.

    Times are in ticks and sorted, shape (n,), and groups of equal times are whole. `first` is the number of the first
    of these displays in the whole log.
    """
    same = tied(time)
    if not same.any():
        return None
    # Only displays that share their time move; the key is their group, then 32 bits of the hash.
    moving = np.flatnonzero(same | np.append(same[1:], False))
    group = np.cumsum(~same[moving]).astype(np.uint64)
    key = group << np.uint64(32) | tie_keys(moving + first, seed=seed)
    order = np.arange(len(time))
    order[moving] = moving[np.argsort(key, kind="stable")]
    return order


def tie_keys(place: Ints, *, seed: int = SEED) -> npt.NDArray[np.uint64]:
    """Return the 32 bits by which displays of one time are ordered, shape (n,).

    Displays with equal bits are ordered by their place in the log. `place` holds the numbers of the displays in the
    whole log, in the order of its source, shape (n,).
    """
    with np.errstate(over="ignore"):
        return mixed(place.astype(np.uint64) + mixed(np.array([seed], np.uint64) + STEP) + STEP) >> np.uint64(32)


def shuffle_ties(log: Log, *, seed: int = SEED) -> Log:
    """Return a log in memory with displays of equal times in random order, the same order as in logs that are read.

    The log is one made by hand, sorted by time. The same log and seed give the same order; the reader's seed is 0.

    >>> from evaluator import load
    >>> log = load("synthetic", limit=1000)
    >>> shuffle_ties(log) is log  # every display has a time of its own
    True
    """
    order = tie_order(log.column("time"), seed=seed)
    if order is None:
        return log
    new = np.empty_like(order)
    new[order] = np.arange(len(order))
    displays = log.displays.take(pa.array(order))
    at = displays.schema.get_field_index("display_id")
    display = new[to_numpy(log.events["display_id"])]
    # Stable: the events of a display keep their order.
    rows = np.argsort(display, kind="stable")
    place = log.events.schema.get_field_index("display_id")
    events = log.events.take(pa.array(rows)).set_column(place, "display_id", pa.array(display[rows]))
    displays = displays.set_column(at, "display_id", pa.array(np.arange(len(order))))
    return Log(displays, events, log.actions, log.meta)
