"""Units that keep their action: a user sees at every display what was chosen at the first one.

A deployment asks its policy at the *first* display of a unit, and shows the same action at the *later* ones, until it
asks anew. What is asked when is fixed by the log's times alone, whatever is replayed. A unit is accepted or rejected
whole, by its first display; the later displays of an accepted one are rounds as well, at which nothing is chosen.

*When is a later display in a thinned log?* As many rounds after its unit's first as the log has displays between the
two, as a conversion is (`evaluator.replays.rounds.clock`); on a live clock as long after it. In the log's own order it
would come with the 1/c times faster pace of the displays read: policies would then see the same user again, and learn
of him, sooner or later than live. On the wall clock it comes where the log has it.

*Which loggers.* What a unit brought at a later display is known under the action that it was shown before. So this is
exact where the logger kept its actions by the same unit, and wrong where it chose anew (1.8 to 4.2 times the regret):
the share of the units that show one action is compared with what choosing anew would give, and others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.compiling import compiled
from evaluator.engine.log_replay import Keeps, KeptDisplays, Replay
from evaluator.engine.pushes import LiveClock
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log
from evaluator.log.column import Column, read_clusters
from evaluator.log.schema import Columns, to_numpy
from evaluator.log.times import TrafficCount, counted_by
from evaluator.options.deployment import ALL_BUT_NOISE, KeptFor
from evaluator.replays.rounds.clock import ReplayClock, on_clock
from evaluator.replays.rounds.propensity import Propensities
from evaluator.units import ticks_words

FIRST, LATER = "first display", "later displays"
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """The displays of a log by the units that keep their action.

    Parameters
    ----------
    asked
        Deployment that keeps actions.
    users
        Values of the unit's column.
    code
        Number of each display's unit, in the order of their first displays, shape (n,). Who is asked anew is another
        unit.
    first, action
        Number of each unit's first display, and its action, shape (U,).
    several, alike
        How many units have more than one display, and how many of these show one action.
    again, alike_again
        How many units follow another one of the same user, and how many of these show its action again.
    """

    asked: KeptFor
    users: Column
    code: Codes
    first: Ints
    action: Codes
    several: int
    alike: int
    again: int
    alike_again: int

    @property
    def share(self) -> float:
        """Share of the units of more than one display that show one action; 1 where there are none."""
        return self.alike / self.several if self.several else 1.0

    @property
    def kept(self) -> bool:
        """Whether the logger kept its action, up to noise, and units come back at all."""
        return self.several > 0 and self.share >= ALL_BUT_NOISE

    def first_or_later(self) -> Column:
        """Return which displays are first ones, and which are later ones."""
        later = np.ones(len(self.code), np.int32)
        later[self.first] = 0
        return Column(f"{self.asked.text}: {FIRST} or later", later, 2, labels=(FIRST, LATER))

    def asked_at(self, replay: Replay, action: Codes) -> tuple[Replay, Codes]:
        """Return a replay as its first displays make it, each numbered by its unit, and the actions of these.

        `action` holds those of all rounds, shape (T,).
        """
        code = self.code[replay.displays]
        asked = self.first[code] == replay.displays
        read = int(np.searchsorted(self.first, replay.read))
        return replace(replay, displays=code[asked].astype(np.int64), read=read), action[asked]

    def chance(self, propensities: Propensities) -> float:
        """Return the share that would show one action if the logger had chosen anew at each display.

        Of a unit of m displays, it is the mean of p^(m - 1), p the propensity of its first action.
        """
        size = np.bincount(self.code, minlength=len(self.first))
        several = np.flatnonzero(size > 1)
        if not len(several):
            return 1.0
        if propensities.rule is None:
            p = (np.bincount(self.action) / len(self.action))[self.action[several]]
        else:
            p = propensities.of({"display_id": self.first[several]})
        return float(np.mean(np.minimum(p, 1.0) ** (size[several] - 1)))


def read_units(log: Log, asked: KeptFor) -> Units:
    """Return the units of a log, in two passes over columns. Memory: 4 bytes a display, 12 a unit.

    Raise ParameterError where the log keeps no such column, or its clock does not have the duration.
    """
    users = read_clusters(log, asked.column, "`keep_for='{}'`")
    code, first = _numbered(users.code, users.count)
    ticks = _ticks(log, asked)
    if ticks is not None:
        again, count = np.empty(len(log), np.int32), 0
        asked_at, number = np.zeros(len(first), np.int64), np.full(len(first), -1, np.int32)
        for start, batch in log.batches(["time"]):
            part = slice(start, start + len(batch["time"]))
            count = ask_anew(code[part], batch["time"], ticks, asked_at, number, again[part], count)
        code, first = _numbered(again, count)
    action, alike = np.empty(len(first), np.int32), np.ones(len(first), np.bool_)
    for start, batch in log.batches(["action"]):
        own, shown = code[start : start + len(batch["action"])], batch["action"]
        low, high = np.searchsorted(first, [start, start + len(shown)])
        action[low:high] = shown[first[low:high] - start]
        alike[own[shown != action[own]]] = False
    several = np.bincount(code, minlength=len(first)) > 1
    # By user, each one's units in their order.
    of = np.argsort(users.code[first], kind="stable")
    again = np.diff(users.code[first[of]]) == 0
    same = again & (np.diff(action[of]) == 0)
    counts = (int(np.count_nonzero(of)) for of in (several, several & alike, again, same))
    return Units(asked, users, code, first, action, *counts)


def first_displays(log: Log, units: Units) -> Log:
    """Return the log of the first displays of units alone, in memory, numbered anew."""
    displays = log.take(units.first, log.schema.names)
    at, numbers = displays.schema.get_field_index("display_id"), pa.array(np.arange(len(units.first)))
    of = to_numpy(log.events["display_id"])
    own = units.first[units.code[of]] == of
    events = log.events.filter(pa.array(own))
    place = events.schema.get_field_index("display_id")
    events = events.set_column(place, "display_id", pa.array(units.code[of[own]].astype(np.int64)))
    return Log(displays.set_column(at, "display_id", numbers), events, log.actions, log.meta)


def refuse_unkept(log: Log, units: Units, propensities: Propensities) -> float:
    """Raise DataError where a logger did not keep its action by the same unit; return what chance would give."""
    chance = units.chance(propensities)
    if units.share < ALL_BUT_NOISE:
        name = units.asked.column
        raise DataError(
            f"`keep_for='{units.asked.text}'`: the logger of log {log.meta.name!r} did not keep its action by {name}: "
            f"{units.share:.1%} of {units.several:,} units with more than one display show one action, where choosing "
            f"anew at each gives {chance:.1%}. What a unit brings under a kept action is not known.",
            remedy="leave `keep_for` out (`keep_for='none'`), or give a duration for which the logger kept it: "
            f"{name}@1d.",
        )
    return chance


def _ticks(log: Log, asked: KeptFor) -> int | None:
    """Return after how many ticks a unit is asked anew; None for never."""
    if asked.span is None:
        return None
    seconds, span = log.meta.tick_seconds, asked.span
    if (seconds is None) != (span.rounds is not None):
        raise ParameterError(
            f"`keep_for='{asked.text}'`: log {log.meta.name!r} "
            + ("counts rounds, not time." if seconds is None else "has times."),
            remedy=f"give rounds: {asked.column}@500." if seconds is None else f"give a duration: {asked.column}@7d.",
        )
    if span.rounds is not None or seconds is None:
        return span.rounds
    assert span.seconds is not None
    ticks = round(span.seconds / seconds)
    if ticks < 1:
        raise ParameterError(
            f"`keep_for='{asked.text}'` is out of range.",
            remedy=f"take at least {ticks_words(1, seconds)}, what the times of the log tell apart: {asked.column}@7d.",
        )
    return ticks


def _numbered(code: Codes, count: int) -> tuple[Codes, Ints]:
    """Return numbers of groups in the order of their first displays, and these, shape (groups,)."""
    n = len(code)
    first = np.full(count, n, np.int64)
    first[code[::-1]] = np.arange(n)[::-1]
    order = np.argsort(first, kind="stable")
    place = np.empty(count, np.int32)
    place[order] = np.arange(count, dtype=np.int32)
    return place[code], first[order]


@compiled
def ask_anew(user: Codes, time: Ints, ticks: int, asked_at: Ints, number: Codes, unit: Codes, count: int) -> int:
    """Return how many units there are with the next displays, whose users are asked anew after so many ticks.

    `asked_at` and `number` are when each user was asked last and the unit that this began, -1 for none; they and
    `unit`, shape (n,), are written in place.
    """
    for i in range(user.shape[0]):
        of = user[i]
        if number[of] < 0 or time[i] - asked_at[of] >= ticks:
            asked_at[of] = time[i]
            number[of] = count
            count += 1
        unit[i] = number[of]
    return count


def by_unit(found: Propensities, log: Log, units: Units) -> Propensities:
    """Return the propensities with which the units were shown their action: of all its displays that of the first."""
    if found.rule is None:
        return found
    reads = tuple(dict.fromkeys(("display_id", *found.reads)))
    shown = log.take(units.first, list(reads))
    p = found.of({name: np.asarray(shown[name].to_numpy()) for name in reads})
    smallest, largest = np.full(log.n_actions, np.inf), np.full(log.n_actions, -np.inf)
    np.minimum.at(smallest, units.action, p)
    np.maximum.at(largest, units.action, p)
    smallest[np.isinf(smallest)] = largest[np.isinf(largest)] = np.nan
    rule = partial(_of_unit, p, units.code)
    return replace(found, reads=("display_id",), rule=rule, smallest=smallest, largest=largest)


def _of_unit(p: Floats, code: Codes, displays: Columns) -> Floats:
    return p[code[displays["display_id"]]]


@dataclass(frozen=True, eq=False)
class KeptRounds:
    """When the later displays of accepted units are rounds: `place` has what lies between displays, shape (n,).

    That is their number in the traffic, or the time on a `live` clock; None where it is the number in the log. On the
    wall clock they come at once.
    """

    units: Units
    clock: ReplayClock
    live: LiveClock | None
    place: Ints | None

    def keeps(self, *, shared: bool) -> Keeps:
        """Return what a replay must know before its first display."""
        return Keeps(shared, None if self.clock.kind == "wall" else self.live)

    def displays(self, first: int, action: Codes) -> KeptDisplays:
        """Return the displays from number `first` on, whose actions were thinned, as a replay reads them."""
        display = np.arange(first, first + len(action))
        return self.of(display, action)

    def of(self, display: Ints, action: Codes, number: Ints | None = None) -> KeptDisplays:
        """Return some displays, whose actions were thinned, as a replay reads them; units may have another `number`."""
        code = self.units.code[display]
        begun = self.units.first[code]
        # What was shown another action than its unit's is not known under a kept one.
        own = code if number is None else number.astype(np.int32)
        unit = np.where(action == self.units.action[code], own, np.int32(-1))
        if self.clock.kind == "wall":
            gap = np.zeros(len(display), np.int64)
        elif self.place is None:
            gap = on_clock(display - begun, self.clock)
        elif self.live is None:
            gap = on_clock(self.place[display] - self.place[begun], self.clock)
        else:
            gap = self.place[display] - self.place[begun]
        return KeptDisplays(display, unit, np.where(display == begun, np.int64(-1), gap))


def kept_rounds(log: Log, units: Units, clock: ReplayClock, live: LiveClock | None) -> KeptRounds:
    """Return when the later displays of units are rounds on a replay's clock, and on a live clock if it has one."""
    if clock.kind == "wall":
        return KeptRounds(units, clock, None, None)
    if live is None and not counted_by(log.schema):
        return KeptRounds(units, clock, None, None)
    place = np.empty(len(log), np.int64)
    count = TrafficCount(log.schema)
    for first, batch in log.batches(["time"] if live is not None else count.columns):
        n = len(next(iter(batch.values())))
        place[first : first + n] = batch["time"] if live is not None else count.read(first, batch, n) - 1
    return KeptRounds(units, clock, live, place)
