"""How policies are deployed on a log's traffic: when what happened reaches the policy that serves.

A *schedule* is a push after each span of rounds or time, of what was known a lag before it. `event`, at each event, is
none. A deployment may explore for a while before the policy chooses. A unit, such as a user, may keep the action of its
first display. A log may say what its owner does; what is asked of a replay goes before.

A *preset* is the deployment that a product has unless it is told otherwise, as far as it is documented: `PRESETS` names
the pages, and what they say that no deployment here can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.errors import ParameterError, nearest
from evaluator.units import SECONDS, parse_duration, parse_whole

# Names of the options that say how a policy is deployed; a preset says all but what teaches.
SCHEDULED = ("learn_every", "learn_lag")
PARTS = (*SCHEDULED, "explore_first", "keep_for", "learn_from")
# What teaches a policy: all that counts into its value, or the revenue of it alone.
OBJECTIVE, REVENUE_ALONE = "objective", "revenue"
EVENT = "event"
# How a deployment explores first: actions drawn uniformly, or what the logging policy shows.
UNIFORM, LOGGER = "uniform", "logger"
# Keeps no action, whatever the log says of its deployment.
NOBODY = "none"
# Share of the units with more than one display that show one action, of a logger that kept its action up to noise.
ALL_BUT_NOISE = 0.99
_OF_DAY = re.compile(r"\s*(\d+)\s*d\s*@\s*(\d{1,2}):(\d{2})\s*")
_HOW = "write event (at each one), rounds (500), a duration (1h), or days with a time of day (1d@03:00)."


@dataclass(frozen=True)
class Span:
    """A number of rounds, or a time in seconds; the other is None."""

    rounds: int | None
    seconds: float | None

    @property
    def none(self) -> bool:
        """Whether it is nothing."""
        return not self.rounds and not self.seconds


@dataclass(frozen=True)
class Exploration:
    """How long a deployment explores before the policy chooses: uniformly, or as the logging policy does.

    `text` is what was asked for.
    """

    text: str
    span: Span
    as_logger: bool


def exploring_words(as_logger: bool) -> str:
    """Return what is done in the rounds that explore, as sentences say it."""
    return "the logging policy chooses" if as_logger else "actions are shown uniformly at random"


@dataclass(frozen=True)
class Schedule:
    """A push after each span, at a time of day if it is of days, of what was known a lag before it.

    `text` and `lag_text` are what was asked for; `at` are seconds after midnight, None where the first push comes a
    span after the first display.
    """

    text: str
    lag_text: str
    every: Span
    lag: Span
    at: int | None = None

    @property
    def in_time(self) -> bool:
        """Whether it names a time, so that rounds need one."""
        return bool(self.every.seconds or self.lag.seconds)

    @property
    def words(self) -> str:
        """The schedule as sentences write it.

        >>> parse_schedule("1d@03:00", "6h").words
        'every 1d@03:00, of what was known 6h before'
        """
        every = f"{self.every.rounds:,} rounds" if self.every.rounds else self.text
        every = "after every round" if self.every.rounds == 1 else f"every {every}"
        if self.lag.none:
            return every
        lag = f"{self.lag.rounds:,} rounds" if self.lag.rounds else self.lag_text
        return f"{every}, of what was known {lag} before"


@dataclass(frozen=True)
class Preset:
    """The deployment of a product as its pages document its defaults: options by name, where that stands, and the rest.

    `sources` are titles and addresses of pages; `unsaid` is a sentence on what else they say, or do not.
    """

    options: dict[str, str]
    sources: tuple[tuple[str, str], ...]
    unsaid: str


PRESETS = {
    "growthbook": Preset(
        {"learn_every": "1d", "explore_first": "1d"},
        (
            ("Setting up a Bandit", "https://docs.growthbook.io/bandits/config"),
            (
                "Default values of the settings of bandits",
                "https://github.com/growthbook/growthbook/blob/main/packages/front-end/pages/settings/index.tsx",
            ),
        ),
        "The page advises a daily update, the defaults of both are in the published source. Users keep their variation "
        "where sticky bucketing is set up, which is advised and no default.",
    ),
    "statsig": Preset(
        {"learn_every": "1h"},
        (("Monitoring Autotune", "https://docs.statsig.com/en/autotune/monitoring"),),
        "Exploration and attribution windows are asked of the user and have no documented default. A display counts "
        "once its attribution window is over: give that as the window.",
    ),
    "eppo": Preset(
        {"learn_every": "1d"},
        (
            ("Actions and Contexts", "https://docs.geteppo.com/contextual-bandits/actions_contexts/"),
            ("Contextual multi-armed bandits", "https://docs.geteppo.com/sdks/sdk-features/bandits"),
        ),
        "Training looks back a number of days that the user sets. No exploratory stage is documented.",
    ),
    "tensorzero": Preset(
        {"learn_every": "5min"},
        (("Configuration Reference", "https://www.tensorzero.com/docs/gateway/configuration-reference"),),
        "Each variant is first shown in turn until it has 10 samples, and an episode keeps its variant: the preset has "
        "neither.",
    ),
}


def preset_options(preset: str | None) -> dict[str, str]:
    """Return the options that a preset states, by name; none for None. ParameterError names the presets.

    >>> preset_options("growthbook")
    {'learn_every': '1d', 'explore_first': '1d'}
    """
    if preset is None:
        return {}
    if preset not in PRESETS:
        raise ParameterError(f"`deployment={preset!r}` is no preset.", remedy=nearest(preset, PRESETS))
    return dict(PRESETS[preset].options)


def parse_schedule(learn_every: str | int | None, learn_lag: str | int | None) -> Schedule | None:
    """Return the schedule that a user asked for; None for learning at each event, without a lag.

    Raise ParameterError if one of the two is no schedule; it says how one is written.
    """
    text = EVENT if learn_every is None else str(learn_every).strip()
    lag_text = "0" if learn_lag is None else str(learn_lag).strip()
    lag = _span(lag_text, "learn_lag", "write rounds (500) or a duration (6h).")
    found, at = _OF_DAY.fullmatch(text), None
    if text == EVENT:
        every = Span(1, None)
    elif found is not None:
        days, hour, minute = (int(part) for part in found.groups())
        at = 3600 * hour + 60 * minute
        if days < 1 or hour > 23 or minute > 59:
            raise ParameterError(f"`learn_every={text!r}` is out of range.", remedy=_HOW)
        every = Span(None, days * SECONDS["d"])
    else:
        every = _span(text, "learn_every", _HOW)
    if every.none:
        raise ParameterError(f"`learn_every={text!r}` is out of range.", remedy=_HOW)
    if text == EVENT and lag.none:
        return None
    return Schedule(text, lag_text, every, lag, at)


def parse_exploration(explore_first: str | int | None) -> Exploration | None:
    """Return how a deployment explores first; None for not at all. ParameterError says how it is written.

    >>> parse_exploration("2d:logger")
    Exploration(text='2d:logger', span=Span(rounds=None, seconds=172800.0), as_logger=True)
    """
    if explore_first is None:
        return None
    text = str(explore_first).strip()
    for_long, colon, who = (part.strip() for part in text.partition(":"))
    how = f"write rounds (2000) or a duration (2d), and :{LOGGER} to do as the logging policy (2d:{LOGGER})."
    if colon and who not in (LOGGER, UNIFORM):
        raise ParameterError(f"`explore_first={text!r}` does not say how to explore.", remedy=how)
    span = _span(for_long, "explore_first", how, asked=text)
    return None if span.none else Exploration(text, span, who == LOGGER)


@dataclass(frozen=True)
class KeptFor:
    """Units that keep their action, by the column that names them, and after what they are asked anew; None for never.

    `text` is what was asked for.
    """

    text: str
    column: str
    span: Span | None

    @property
    def after(self) -> str | None:
        """After what a unit is asked anew, in words; None for never."""
        if self.span is None:
            return None
        return self.text.partition("@")[2].strip() if self.span.rounds is None else f"{self.span.rounds:,} rounds"


def parse_kept(keep_for: str | None) -> KeptFor | None:
    """Return who keeps an action, and for how long; None for nobody. ParameterError says how it is written.

    >>> parse_kept("user@7d")
    KeptFor(text='user@7d', column='user', span=Span(rounds=None, seconds=604800.0))
    """
    text = "" if keep_for is None else keep_for.strip()
    if keep_for is None or text == NOBODY:
        return None
    column, at, length = (part.strip() for part in text.partition("@"))
    how = "write the column that names the unit (user), or when it is asked anew (user@7d); none for nobody."
    if not column or (at and not length) or column.startswith("every:"):
        raise ParameterError(f"`keep_for={text!r}` names no units.", remedy=how)
    span = _span(length, "keep_for", how, asked=text) if at else None
    if span is not None and span.none:
        raise ParameterError(f"`keep_for={text!r}` is out of range.", remedy=how)
    return KeptFor(text, column, span)


@dataclass(frozen=True)
class Deployment:
    """How policies are deployed: when they learn, how they explore first, and who keeps an action.

    Each is None for at each event, for not at all, and for nobody. `options` have what is asked and what a log or
    scenario states, by name; `whose` has clauses on who says so, empty for the user.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    whose: Mapping[str, str] = field(default_factory=dict)
    schedule: Schedule | None = None
    exploration: Exploration | None = None
    kept: KeptFor | None = None

    @property
    def times(self) -> dict[str, float]:
        """Seconds of each option that names a time, so that rounds need one."""
        spans: dict[str, Span] = {}
        if self.schedule is not None:
            spans = {"learn_every": self.schedule.every, "learn_lag": self.schedule.lag}
        if self.exploration is not None:
            spans["explore_first"] = self.exploration.span
        return {name: span.seconds for name, span in spans.items() if span.seconds}

    def named(self, *options: str) -> str:
        """Return those of some options that are given, as messages name them, with who says so.

        >>> deployment_of({"deployment": "statsig"}).named("learn_every", "learn_lag")
        "`learn_every='1h'`, as `deployment='statsig'` says"
        """
        given = [f"`{name}={self.options[name]!r}`" for name in options if name in self.options]
        return " and ".join(given) + self.says(*options)

    def says(self, *options: str) -> str:
        """Return a clause on who says so of some options; empty where the user does, or several do."""
        clauses = {self.whose[name] for name in options if name in self.options}
        return clauses.pop() if len(clauses) == 1 else ""


def deployment_of(asked: Mapping[str, Any], stated: Mapping[str, Any] | None = None, *, by: str = "log") -> Deployment:
    """Return the deployment that the options of a user ask for, over the one that a log or scenario states.

    A preset is asked for as a whole, except for what is given beside it; so is a schedule, be it the lag alone. Raise
    ParameterError where an option is wrong; it says how one is written.
    """
    stated, preset = stated or {}, asked.get("deployment")
    of_preset = preset_options(preset)
    for name in stated.keys() - set(PARTS):
        raise ParameterError(f"The {by} says {name!r} of its deployment.", remedy=nearest(name, PARTS))
    given = {name: asked[name] for name in PARTS if asked.get(name) is not None}
    instead = PARTS[:-1] if preset else SCHEDULED if given.keys() & set(SCHEDULED) else ()
    over = {name: of for name, of in stated.items() if name not in instead}
    options = {"learn_from": OBJECTIVE} | over | of_preset | given
    clauses = (of_preset, f", as `deployment={preset!r}` says"), (stated, f", as the {by} says of its deployment")
    whose = {
        name: next((clause for said, clause in clauses if str(said.get(name)) == str(of)), "")
        for name, of in options.items()
    }
    return Deployment(
        options,
        whose,
        parse_schedule(options.get("learn_every"), options.get("learn_lag")),
        parse_exploration(options.get("explore_first")),
        parse_kept(options.get("keep_for")),
    )


def _span(text: str, option: str, how: str, *, asked: str | None = None) -> Span:
    rounds = parse_whole(text)
    if rounds is not None:
        return Span(rounds, None)
    try:
        return Span(None, parse_duration(text))
    except ParameterError as error:
        what = {"keep_for": "no duration", "explore_first": "no number of rounds and no duration"}.get(
            option, "no schedule"
        )
        raise ParameterError(f"`{option}={(asked or text)!r}` is {what}.", remedy=how) from error
