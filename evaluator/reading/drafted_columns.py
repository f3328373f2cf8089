"""Parts of a drafted spec that columns tell: times, context, values of conversions, and which rows count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from evaluator.errors import UsageError
from evaluator.options.deployment import ALL_BUT_NOISE
from evaluator.reading.cells import EPOCH, Kind, parse, read_instants, why_no_zone
from evaluator.reading.column_profile import CHECK, GUESSED, PARTS, Line, Look
from evaluator.reading.row_rules import Guess
from evaluator.units import SECONDS, format_duration

# So many conversions on so small a share of the rows: by chance once in a million.
_CONVERSIONS, _SHARE = 20, 0.5
_MANY = 1_000
# Users who come back whose action is looked at; of how many of them chance may show one action.
_RETURNING, _BY_CHANCE = 20, 0.5
_CURRENCY = {"currency", "currencies", "ccy"}
_REQUESTS = {"request", "slate", "auction", "pageview", "impression", "display", "decision", "query", "search"}
_CHOICES = {"variant", "variation", "arm", "treatment", "group", "bucket", "cell", "template", "message"}
_HOLDERS = {"experiment", "experiments", "study", "campaign", "canvas"}
_IDS = {"id", "name", "key", "uuid", "no", "number"}
_UNITS = ("s", "ms", "us", "ns", "min", "h", "d", "round")


def context_lines(
    looks: Iterable[Look], converted: pl.Series | None, told: Collection[str], action: Look | None = None
) -> tuple[list[str], list[Line]]:
    """Return the columns that look like outcomes, and the lines of those that a policy may see or that are left out.

    `looks` are the columns of the displays without a role, `converted` says which displays did, None where that is not
    known. No feature has the name of a column of a second table, `told`, without a word, or tells the `action`.
    """
    outcomes: list[str] = []
    lines: list[Line] = []
    left: list[Line] = []
    for look in looks:
        if look.says_outcome or look.says_delay or (converted is not None and follows_outcome(look, converted)):
            outcomes.append(look.name)
        elif look.may_say_propensity:
            said = f"left out: {look.name!r}: no feature; is it the probability of what was shown, or a weight?"
            left.append(Line("", comment=f"{CHECK}{said}"))
        elif why := _why_left_out(look, told):
            left.append(Line("", comment=f"left out: {look.name!r}: {why}"))
        elif action is not None and tells_action(look, action):
            said = f"left out: {look.name!r}: it tells on every row which action was shown, another name of it?"
            left.append(Line("", comment=f"{CHECK}{said}"))
        elif look.numbers is not None and not look.is_whole:
            lines.append(Line(look.name, "number", GUESSED + "numbers from {:g} to {:g}".format(*look.ends)))
        else:
            lines.append(Line(look.name, "category", f"{GUESSED}{look.distinct:,} values"))
    doubt = [Line("", comment=CHECK + "is each of these columns known before the display?")] if lines else []
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

    Of the columns of numbers the likeliest is first. `mixed` says that their currencies differ, empty where they do
    not, or one column is in one of them. The cells of `unread` are no numbers, and its name says that it holds values.
    """

    found: list[Look]
    mixed: str
    unread: Look | None


def worth_of(looks: Iterable[Look], every: Iterable[Look]) -> Worth:
    """Return what may hold the value of conversions.

    `looks` are the columns without another role among `every` column of the table.
    """
    named = [v for v in looks if v.says_value and not (v.words & _CURRENCY or v.is_time or v.is_order)]
    found = [v for v in named if v.numbers is not None and not v.is_flag]
    currencies = [v for v in every if v.words & _CURRENCY and v.numbers is None and v.distinct > 1]
    found.sort(
        key=lambda v: (
            bool(v.words & PARTS),
            bool(currencies) and v.currency is None,
            v.value_rank,
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

    `looks` are the columns of the table of conversions, `clock` the one that says when they came, `of_display` the one
    that holds the ids of displays.
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


def kept_action(users: Look, action: Look) -> str:
    """Return a clause on users who are shown one action on all their rows; empty where these are few, or chance.

    Chance shows one action at most as often as the most frequent one on each further row.
    """
    rows = pl.DataFrame({"user": users.text, "action": action.text}).drop_nulls()
    found = rows.group_by("user").agg(pl.len().alias("rows"), pl.col("action").n_unique().alias("actions"))
    found = found.filter(pl.col("rows") > 1)
    alike = int((found["actions"] == 1).sum())
    if len(found) < _RETURNING or alike < ALL_BUT_NOISE * len(found):
        return ""
    most = rows["action"].value_counts()["count"].max() / len(rows)  # type: ignore[operator]
    chance = float((most ** (found["rows"] - 1)).mean())  # type: ignore[arg-type]
    return f"{alike:,} of {len(found):,} users with several rows are shown one action" if chance < _BY_CHANCE else ""


@dataclass(frozen=True)
class WrittenTimes:
    """How the times of a log are written."""

    tick: str
    forms: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        """Kind of the cells."""
        return "datetime" if self.tick == "datetime" else "int"

    def form(self, column: str) -> str | None:
        """Return how the dates of a column are written."""
        return self.forms.get(column)


def written_times(shown: Look | None, clock: Look | None, choose: Callable[..., Any]) -> WrittenTimes | None:
    """Return how the times of displays and conversions are written, and of which zone; None without a column of times.

    `choose` decides on a key: its name, the question, guess, choices, the reason.
    """
    if shown is None:
        return None
    looks = [shown, *([] if clock is None or clock.is_flag or not clock.present.is_not_null().any() else [clock])]
    found = _written(looks, choose)
    return _in_zones(found, looks, choose) if found.tick == "datetime" else found


def _in_zones(found: WrittenTimes, looks: list[Look], choose: Callable[..., Any]) -> WrittenTimes:
    """Return how times are written, with the zone of times that name none where other times name theirs."""
    naive = [look for look in looks if not _is_aware(look, found.form(look.name))]
    if not naive or len(naive) == len(looks):
        return found
    (look,), (other,) = naive, [look for look in looks if look not in naive]
    why = f"they say no zone, and those of {other.name!r} do"
    zone, said = choose("time.timezone", f"Of which zone are the times of {look.name!r} (UTC, Europe/Berlin, ...)?",
                        None, None, why)  # fmt: skip
    if zone is not None and (refused := why_no_zone(zone)):
        raise UsageError(f"time.timezone: {zone!r} {refused}.", remedy="write UTC, or such as Europe/Berlin.")
    example = {look.name: zone or "Europe/Berlin"}
    if zone is not None:
        return replace(found, lines=[*found.lines, Line("timezone", example, said)])
    line = Line("timezone", example, f"{CHECK}which zone? {why}", live=False)
    return replace(found, lines=[*found.lines, line], missing=[*found.missing, "time.timezone"])


def _is_aware(look: Look, form: str | None) -> bool:
    """Whether the times of a column say their zone, as far as its first ones tell."""
    if look.cells.dtype.is_temporal():
        return getattr(look.cells.dtype, "time_zone", None) is not None
    aware = read_instants(look.present.drop_nulls(), form).aware
    return aware if isinstance(aware, bool) else bool(aware.all())


def _written(looks: list[Look], choose: Callable[..., Any]) -> WrittenTimes:
    shown = looks[0]
    shared = [guess for guess in shown.moments if all(guess in look.moments for look in looks)]
    if shared:
        found = shared[0]
        firsts = {guess.first: guess for guess in reversed(shared)}
        if found.first and len(firsts) > 1 and "" not in firsts:
            return _day_or_month(looks, firsts, choose)
        return _of(found, looks)
    each = [_as_dates(look) for look in looks]
    if all(guess is not None for guess in each):
        forms = {look.name: guess.form for look, guess in zip(looks, each, strict=True) if guess and guess.form}
        said = GUESSED + "the columns are written in different ways"
        return WrittenTimes("datetime", forms, [Line("unit", "datetime"), Line("format", forms, said)])
    named = next((unit for unit in _UNITS if unit in shown.words), "s")
    ends = "" if shown.numbers is None else " from {:,.0f} to {:,.0f}".format(*shown.ends)
    why = f"whole numbers{ends} that are no dates; their unit decides every duration"
    unit, said = choose("time.unit", f"What unit are the times of {shown.name!r} in?", named, _UNITS, why)
    return WrittenTimes(unit or named, {}, [Line("unit", unit or named, said)])


def _of(guess: Guess, looks: list[Look]) -> WrittenTimes:
    example = next(iter(looks[0].present.drop_nulls()), "")
    line = Line("unit", guess.unit, f"{GUESSED}from times such as {example}")
    if guess.form is None:
        return WrittenTimes(guess.unit, {}, [line])
    forms = {look.name: guess.form for look in looks}
    return WrittenTimes(guess.unit, forms, [line, Line("format", guess.form, GUESSED + "it reads every cell")])


def _day_or_month(looks: list[Look], firsts: dict[str, Guess], choose: Callable[..., Any]) -> WrittenTimes:
    example = next(iter(looks[0].present.drop_nulls()), "")
    why = f"dates such as {example} fit {' and '.join(firsts)} first: ask who wrote them"
    first, said = choose("time.format", "What comes first in the dates?", None, tuple(firsts), why)
    unit = Line("unit", "datetime")
    if first is not None:
        forms = {look.name: str(firsts[first].form) for look in looks}
        return WrittenTimes("datetime", forms, [unit, Line("format", str(firsts[first].form), said)])
    ways = [
        Line("format", str(guess.form), f"{CHECK}if {name} come first", live=False) for name, guess in firsts.items()
    ]
    return WrittenTimes("datetime", {}, [unit, *ways], ["time.format"])


def _as_dates(look: Look) -> Guess | None:
    """Return how a column is written where others are in another way."""
    for guess in look.moments:
        if guess.unit == "datetime":
            return guess
        if guess.unit == "s":
            return Guess("datetime", EPOCH)
    return None


def first_unsorted(time: Look) -> int | None:
    """Return the number of the first row that is earlier than the one above it, where that can be told."""
    numbers = time.numbers
    if numbers is None:
        cells = time.cells if time.cells.dtype.is_temporal() else None
        if cells is None and time.moments:
            cells = parse(time.text, "datetime", [str(n) for n in time.none], time.moments[0].form).values
        numbers = None if cells is None else cells.to_physical()
    if numbers is None:
        return None
    found = (numbers.diff() < 0).fill_null(False).arg_true()
    return int(found[0]) + 1 if len(found) else None


def delays_seen(
    times: WrittenTimes, shown: Look, clock: Look, ids: tuple[pl.Series, pl.Series] | None, *, by_user: bool = False
) -> pl.DataFrame:
    """Return the number of the row, ``row``, and the ``delay`` of each conversion that finds its display in a sample.

    `ids` are those of the displays, or users, in their own table and in that of the conversions; None where these are
    one. Of a user's displays, the last one before the conversion is its own.
    """
    if clock.says_delay:
        none = pl.Series([None], dtype=pl.Float64).new_from_index(0, len(clock.text))
        delay = none if clock.numbers is None else clock.numbers.set(clock.present.is_null(), None)
        return pl.DataFrame({"row": range(len(delay)), "delay": delay}).drop_nulls()
    moments = (
        parse(look.text, times.kind, [str(none) for none in look.none], times.form(look.name)).values
        for look in (shown, clock)
    )
    displays, came = (pl.DataFrame({"at": at}) for at in moments)
    displays = displays.with_row_index("row").with_columns(shown="at")
    if ids is None:
        found = displays.with_columns(came["at"])
    else:
        displays, came = displays.with_columns(id=ids[0]), came.with_columns(id=ids[1])
        if by_user:
            found = came.sort("at").join_asof(
                displays.drop_nulls().sort("at"), on="at", by="id", check_sortedness=False
            )
        else:
            found = came.join(displays.drop("at"), on="id")
    return found.select("row", delay=pl.col("at") - pl.col("shown")).drop_nulls()


def longest_delay(times: WrittenTimes, seen: pl.DataFrame) -> str:
    """Return a sentence about the longest delay in a sample; it is empty where no delay is seen."""
    longest = seen["delay"].max()
    if longest is None:
        return ""
    unit = "us" if times.tick == "datetime" else times.tick
    if unit not in SECONDS:
        return f"; the longest seen is {float(longest):g} {unit}s"  # type: ignore[arg-type]
    return f"; the longest seen is {format_duration(float(longest) * SECONDS[unit])}"  # type: ignore[arg-type]


def clock_why(look: Look, times: list[Look], delays: list[Look]) -> str:
    """Return why a column is taken for that of when conversions came."""
    if look in times:
        share = float(look.present.is_not_null().mean() or 0)  # type: ignore[arg-type]
        return f"times on {share:.1%} of its rows"
    return "a delay, in ticks of the times" if look in delays else "0 and 1"


def narrows(flag: Look, clock: Look) -> bool:
    """Whether rows that have a time of conversion did not convert, says a flag; and all that did have one."""
    if flag.numbers is None or flag.numbers.null_count():
        return False
    timed, says = clock.present.is_not_null(), flag.numbers == 1
    return bool((timed & ~says).any()) and not bool((says & ~timed).any())
