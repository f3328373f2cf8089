"""The roles of the columns of frames in memory, as keywords: how a log is made of frames.

Datasets know logs, so no log may know datasets: the package itself, which knows both, brings them together when
somebody has a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, Self

from evaluator.errors import UsageError
from evaluator.escape import shortened

_ROLES = "write {'click': {'indicator': 'clicked', 'immediate': True}}."


class ArrowFrame(Protocol):
    """What speaks the Arrow C stream: frames of polars, pandas and pyarrow, relations of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a stream of Arrow."""


class MadeFromFrames:
    """What can be made of frames."""

    # Set by `evaluator`, which is imported before any of its rooms.
    _read_frames: ClassVar[Callable[..., Any]]

    @classmethod
    def from_frames(
        cls,
        displays: ArrowFrame,
        conversions: ArrowFrame | None = None,
        *,
        time: str | None = None,
        action: str,
        propensity: str | float | Mapping[str, float] | None = None,
        propensity_kind: Literal["column", "uniform"] | None = None,
        id: str | None = None,
        weight: str | None = None,
        user: str | None = None,
        cost: str | None = None,
        eligible: str | None = None,
        eligible_separator: str | None = None,
        candidates: ArrowFrame | None = None,
        candidate_display: str | None = None,
        candidate_action: str | None = None,
        candidate_propensity: str | None = None,
        candidate_features: str | Sequence[str] = (),
        calendar: ArrowFrame | None = None,
        calendar_action: str | None = None,
        calendar_from: str | None = None,
        calendar_until: str | None = None,
        conversion_time: str | None = None,
        delay: str | None = None,
        indicator: str | None = None,
        immediate: bool = False,
        value: str | float = 1.0,
        min_delay: str | int | None = None,
        display: str | None = None,
        conversion_user: str | None = None,
        conversion_action: str | None = None,
        outcomes: Mapping[str, Mapping[str, Any]] | None = None,
        key: str | Sequence[str] = (),
        deduplicate: Literal["last_click", "first_click", "all", "share"] = "all",
        click: str | None = None,
        attributed: str | None = None,
        attributed_only: bool = False,
        where: str | None = None,
        conversion_where: str | None = None,
        explode: str | None = None,
        conversion_explode: str | None = None,
        candidate_explode: str | None = None,
        unit: Literal["ns", "us", "ms", "s", "min", "h", "d", "round", "datetime"] = "datetime",
        format: str | Mapping[str, str] | None = None,
        timezone: str | Mapping[str, str] | None = None,
        offset: str | Mapping[str, str] | None = None,
        ties: Literal["shuffle", "file"] = "shuffle",
        none: Sequence[str | float] | Mapping[str, Sequence[str | float]] = (),
        sort: bool = False,
        attribution_window: str | int | None = None,
        observed_until: str | int = "end",
        reward_max: float | None = None,
        reward_min: float | None = None,
        objective: Literal["profit", "revenue"] | None = None,
        sampling_rate: float = 1.0,
        deployment: Mapping[str, str | int] | None = None,
        context: str | Sequence[str] | Mapping[str, Literal["category", "number"]] = (),
        encoding: Literal["hash", "one-hot", "number"] = "hash",
        dimensions: int = 16,
        intercept: bool = True,
        scale: Literal["standard"] | None = None,
        allow: str | Sequence[str] = (),
        target: str | Mapping[str, str] | None = None,
        targets: Mapping[str, str | Mapping[str, Any]] | None = None,
        action_set: str | Sequence[str] = (),
        leakage: str | Sequence[str] = (),
        actions: str | Sequence[str] | None = None,
        limit: int | None = None,
        on_error: Literal["stop", "quarantine"] = "stop",
        quarantine_at_most: str | float = "1%",
        keep: str | Sequence[str] | Mapping[str, str] = (),
        name: str = "frame",
        notes: Sequence[str] = (),
    ) -> Self:
        """Return the log in frames, by the roles of their columns: those of a ``spec.toml``, with the same checks.

        The same rows in files, or in a converted folder, are the same log to the bit.

        Parameters
        ----------
        displays
            Frame of the displays, in order of time: whatever speaks the Arrow C stream, such as frames of polars,
            pandas and pyarrow, and relations of DuckDB.
        conversions
            Frame of the conversions, joined by the id of their display; None where they are in the displays' own.
        time, action
            Columns of the time of a display and of its action. Without a time, ``unit="round"``: the order of the rows
            is that of the displays, and rounds count them.
        propensity, propensity_kind
            Column of the probability with which the action was shown; or, by design, that of every action (``0.25``),
            or of each by its label, in these proportions among those that are eligible; or ``"uniform"``. None where
            unknown.
        id
            Column that identifies a display; needed with `conversions`. Row order when None.
        weight
            Column of one over the probability with which a display got into the log.
        user
            Column that identifies the user, where `conversions` are joined by user and time instead of an id.
        cost
            Column of what showing a display cost, 0 or more, in the unit of the values.
        eligible, eligible_separator
            Column that lists the actions that could have been shown; where it is text, what stands between their labels
            (None: JSON arrays). Give one of this, `candidates` and `calendar` at most; without, all always could.
        candidates, candidate_display, candidate_action
            Frame of the actions that could have been shown, a row for each of a display; its columns of the display's
            id and of the action, named as `id` and `action` when None.
        candidate_propensity, candidate_features
            Columns of `candidates`: the probability with which each would be shown, which sums to 1 over a display,
            and numbers about it, the vector of that action at that display.
        calendar, calendar_action, calendar_from, calendar_until
            Frame of the actions with times between which they could be shown; its columns of the action, named as
            `action` when None, of the first time, and of the first time at which it no longer could. Empty cells are no
            limits.
        conversion_time, delay, immediate
            Column of the time of a conversion, or of its delay in ticks, or that rewards come at once. Exactly one.
        indicator
            Column that is 1 on rows that converted; None where a time means conversion.
        value
            Column of the value of a conversion, or the value of each.
        display
            Column of `conversions` that holds the id of the display. Named as `id` when None.
        conversion_user, conversion_action
            Columns of `conversions` that hold the user, and the action if they are to be of the same one: each is of
            the last display of both at or before its time, within `attribution_window`. Named as `user` when None and
            displays have no `id`.
        min_delay
            Shortest delay, ``"30s"`` or ticks: what comes sooner is no conversion of its display, and is counted.
        outcomes
            Events of other kinds, which no policy sees, each by its name as the roles of a table [outcomes.NAME] of a
            spec: ``{"click": {"indicator": "clicked", "immediate": True}}``. Those in a frame of their own name it
            ``frame``, and ``display``, its column of the display's id (as `id` when absent), or ``user``, ``action``,
            ``where`` and ``explode``, as those of `conversions`.
        key, deduplicate
            Columns that identify one conversion logged on several displays, and which of these get it.
        click
            Column that is 1 on rows that may carry a conversion.
        attributed, attributed_only
            Column that is 1 on conversions attributed to the logger, and whether only these count.
        where, conversion_where
            Conditions that say which rows of `displays` and of `conversions` are meant, as where one frame has events
            of several types: ``"event = 'purchase' and user is not null"``. All rows when None.
        explode, conversion_explode, candidate_explode
            Column of lists, or of a map, of `displays`, `conversions` or `candidates`, each of whose elements makes a
            row: ``"slate"`` holds ``"slate.action"``, a map ``"map.key"`` and ``"map.value"``. Fields of structs are
            named alike, ``"user.country"``, in any role.
        unit
            Tick of integer times; ``"datetime"`` where they are dates, which gives ticks of us.
        format
            How dates in text are written, everywhere or by column: ``"%d.%m.%Y"``; ISO 8601 when None.
        timezone, offset
            Zone of dates that say none (``"Europe/Berlin"``), or the column that says by how many minutes each is ahead
            of UTC (120, or ``"+02:00"``), everywhere or by column; UTC when None.
        ties
            What the order of displays of one time means: nothing (``"shuffle"``), or that of the log (``"file"``).
        none
            Values that mean "missing", everywhere or by column.
        sort
            Whether to sort displays that are not in order of time.
        attribution_window
            Longest delay: ``"30d"``, or ticks.
        observed_until
            ``"end"`` (last time seen), a time in ticks, or as text where they are dates, or ``"complete"`` (every
            display followed to its end).
        reward_max
            Largest possible reward of one display.
        reward_min
            Smallest possible reward of one display, below 0 where a refund may be more than the sale.
        objective
            What replays of the log value unless told: ``"profit"``, or ``"revenue"`` where costs are in another unit
            than the values. None: profit where there are costs.
        sampling_rate
            Share of the traffic's displays that the log holds, in (0, 1].
        deployment
            How policies are deployed on this traffic, which replays do unless told otherwise: ``{"learn_every":
            "1d@03:00", "learn_lag": "6h", "keep_for": "user"}``, or a product's default, ``{"preset": "growthbook"}``.
        context, encoding, dimensions, intercept, scale, allow
            Columns that a policy may see, or the kind of each by name; how they become vectors, the width of the hashed
            part, whether a constant is appended, how numbers are scaled (``"standard"``: with mean 0 and deviation 1 in
            the first tenth of the displays), and which columns with another role are known before the display.
        target
            Columns of the action probabilities of a policy to be evaluated: ``"pi_{action}"``, or each by its label.
        targets
            Policies to be evaluated by name, ``target:NAME`` for a replay: the column with the label of the action that
            the policy takes, or its columns of probabilities, ``{"columns": "pi_{action}"}``.
        action_set
            Columns that hold the vectors of all actions at each display, one for each number of a vector, with
            ``{action}`` for the label: ``["affinity_{action}", "price_{action}"]``.
        leakage
            Columns that hold the outcome, and that no policy may see.
        actions, limit, on_error, quarantine_at_most
            Options of the reading, as `evaluator.load` takes them.
        keep
            Columns to keep as they are, to group by; or the column of each by the name that the log gives it.
        name, notes
            Name of the log, and sentences that every reader of a result must see.

        Returns
        -------
        Log
            The log, in memory, validated against the contract. Its fingerprint is a hash of what it holds.

        Raises
        ------
        UsageError, SpecError
            The keywords do not fit together, or `displays` is no frame.
        SourceError, LogError, PropensityError
            The frames or their rows are wrong; the message says where and how to repair them.

        Examples
        --------
        >>> import pyarrow
        >>> from evaluator import Log
        >>> frame = pyarrow.table({"shown": [1, 2, 3], "banner": ["red", "blue", "red"], "sold": [None, 4, None]})
        >>> Log.from_frames(frame, time="shown", action="banner", conversion_time="sold", unit="s", name="shop")
        Log('shop', displays=3, conversions=1, actions=2, tick='s')
        """
        spec = {
            "name": name,
            "notes": _several("notes", notes),
            "source": {"none": _by_column(none), "sort": sort, "where": where, "explode": explode},
            "time": {
                "unit": unit, "ties": ties,
                **{
                    key: dict(given) if isinstance(given, Mapping) else given
                    for key, given in (("format", format), ("timezone", timezone), ("offset", offset))
                },
            },
            "display": {
                "time": time, "action": action, "propensity_kind": propensity_kind,
                "propensity": _by_label(propensity) if isinstance(propensity, Mapping) else propensity,
                "id": id, "weight": weight, "cost": cost, "eligible": eligible, "user": user,
                "eligible_separator": eligible_separator,
            },
            "candidates": {
                "display": candidate_display or id, "action": candidate_action or action,
                "propensity": candidate_propensity, "features": _several("candidate_features", candidate_features),
                "explode": candidate_explode,
            },
            "calendar": {"action": calendar_action or action, "from": calendar_from, "until": calendar_until},
            "conversion": {
                "indicator": indicator, "time": conversion_time, "delay": delay, "immediate": immediate, "value": value,
                "key": _several("key", key), "deduplicate": deduplicate, "click": click, "attributed": attributed,
                "attributed_only": attributed_only, "display": display, "where": conversion_where,
                "explode": conversion_explode, "user": conversion_user, "action": conversion_action,
                "min_delay": min_delay,
            },
            "outcomes": _of_outcomes(outcomes),
            "log": {
                "attribution_window": attribution_window, "observed_until": observed_until, "reward_max": reward_max,
                "reward_min": reward_min, "objective": objective, "sampling_rate": sampling_rate,
            },
            "deployment": dict(deployment or {}),
            "context": {
                "columns": dict(context) if isinstance(context, Mapping) else _several("context", context),
                "encoding": encoding, "dimensions": dimensions, "intercept": intercept, "scale": scale,
                "allow": _several("allow", allow),
            },
            "target": _of_targets(target, targets),
            "action_set": {
                "columns": action_set if isinstance(action_set, str) else _several("action_set", action_set)
            },
            "keep": dict(keep) if isinstance(keep, Mapping) else {},
            "leakage": {"columns": _several("leakage", leakage)},
        }  # fmt: skip
        asked = {
            "actions": actions, "limit": limit, "on_error": on_error, "quarantine_at_most": quarantine_at_most,
            "keep": () if isinstance(keep, Mapping) else keep,
        }  # fmt: skip
        found: Self = cls._read_frames(
            displays, {"conversions": conversions, "candidates": candidates, "calendar": calendar}, spec, asked
        )
        return found


def _of_targets(target: Any, targets: Any) -> dict[str, Any]:
    given = {} if targets is None else targets
    if not isinstance(given, Mapping):
        raise UsageError(
            f"`targets`: expected columns by name, got {shortened(repr(given))}.",
            remedy="write {'new_model': 'column of its actions'}.",
        )
    unnamed = {"columns": dict(target) if isinstance(target, Mapping) else target} if target else {}
    named = {name: dict(of) if isinstance(of, Mapping) else {"action": of} for name, of in given.items()}
    if "columns" in named:
        raise UsageError("`targets`: a target cannot have the name 'columns'.", remedy="give it another one.")
    return unnamed | named


def _of_outcomes(outcomes: Any) -> dict[str, dict[str, Any]]:
    given = {} if outcomes is None else outcomes
    if not isinstance(given, Mapping):
        raise UsageError(f"`outcomes`: expected roles by name, got {shortened(repr(given))}.", remedy=_ROLES)
    for name, of in given.items():
        if not isinstance(of, Mapping):
            raise UsageError(f"`outcomes`: expected roles of {name!r}, got {shortened(repr(of))}.", remedy=_ROLES)
    return {name: dict(of) for name, of in given.items()}


def _by_label(given: Mapping[Any, float]) -> dict[str, float]:
    """Return numbers by the labels of actions, which are text where a frame has whole numbers."""
    return {str(label): p for label, p in given.items()}


def _several(keyword: str, values: Any) -> list[Any]:
    if isinstance(values, str):
        return [values]
    if not isinstance(values, Iterable):
        raise UsageError(
            f"`{keyword}`: expected a list, got {shortened(repr(values))}.", remedy="leave it out for none."
        )
    return list(values)


def _by_column(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {column: _several("none", found) for column, found in values.items()}
    return _several("none", values)
