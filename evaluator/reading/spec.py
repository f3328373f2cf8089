"""What a ``spec.toml`` may say; ``datasets/README.md`` is the reference for its writers."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from evaluator.errors import ParameterError, SpecError, nearest, nearest_file
from evaluator.escape import shortened
from evaluator.input_files import NotTomlError, read_toml
from evaluator.log.log_tables import NO_OUTCOMES, PropensityKind
from evaluator.options.deployment import deployment_of, preset_options
from evaluator.reading.options import Deduplicate
from evaluator.reading.roles import DISPLAY, EVENT
from evaluator.reading.spec_sections import (
    ORDER,
    ActionSet,
    ActionTimes,
    Calendar,
    Candidates,
    Name,
    Propensity,
    Section,
    Source,
    Table,
    Target,
    Time,
    of_role,
)
from evaluator.units import LEAST_SAMPLE, MOST_VALUE, Tick
from evaluator.worlds.criteo.parameters import TwinParameters
from evaluator.worlds.scenarios.scenario import BernoulliScenario, LinearScenario, PromotionsScenario, Scenario

# Until when events were followed. Text beside the two words is a date, as the displays' times are.
Until = Literal["end", "complete"] | Annotated[int, Field(ge=-(2**63), lt=2**63)] | Name
Encoding = Literal["hash", "one-hot", "number"]
ColumnKind = Literal["category", "number"]
Scale = Literal["standard"]
KINDS = [kind for model in get_args(Scenario) for kind in get_args(model.model_fields["kind"].annotation)]
# Where an installed package says what a spec may hold.
KEYS = "`evaluate datasets schema` prints every key and what it takes"


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class Display(Section):
    """Columns of a display."""

    time: Annotated[Name, of_role(DISPLAY["time"], json_schema_extra=_without_default)] = ORDER
    action: Annotated[Name, of_role(DISPLAY["action"])]
    propensity: Annotated[Propensity | None, of_role(DISPLAY["propensity"])] = None
    propensity_kind: Annotated[
        Literal["column", "uniform"] | None, Field(description="'column' when a propensity column is named")
    ] = None
    id: Annotated[Name | None, of_role(DISPLAY["id"])] = None
    weight: Annotated[Name | None, of_role(DISPLAY["weight"])] = None
    eligible: Annotated[Name | None, of_role(DISPLAY["eligible"])] = None
    eligible_separator: Annotated[
        str | None,
        Field(min_length=1, description="between the labels of a text that lists them; JSON arrays when absent"),
    ] = None
    user: Annotated[Name | None, of_role(DISPLAY["user"])] = None
    cost: Annotated[Name | None, of_role(DISPLAY["cost"])] = None

    @property
    def propensity_column(self) -> str | None:
        """Column that holds the propensities."""
        return self.propensity if isinstance(self.propensity, str) else None

    @property
    def design(self) -> float | dict[str, float] | None:
        """Propensity of every action, or of each, where the spec states it."""
        return None if isinstance(self.propensity, str) else self.propensity

    @model_validator(mode="after")
    def _kind_matches_column(self) -> Display:
        if (self.propensity_kind == "column") and self.propensity_column is None:
            raise ValueError("propensity_kind = 'column' needs propensity = '<column>'")
        if self.propensity_kind == "uniform" and self.propensity is not None:
            raise ValueError("propensity_kind = 'uniform' takes no propensity column or number")
        if self.eligible_separator is not None and self.eligible is None:
            raise ValueError("eligible_separator parts a column of labels: name it, eligible = '<column>'")
        return self


class EventSource(Table):
    """A table of its own that holds the conversions, or the events of an outcome."""

    display: Annotated[Name | None, Field(description="column that holds the id of the display")] = None
    user: Annotated[
        Name | None,
        Field(
            description="instead of the id, the column of the user: an event is of the last display of that user at or "
            "before its time, within attribution_window"
        ),
    ] = None
    action: Annotated[
        Name | None, Field(description="beside user, the column of the action: the last display of both")
    ] = None

    @property
    def joined(self) -> list[str]:
        """Columns by which its rows find their display."""
        return [column for column in (self.display, self.user, self.action) if column is not None]

    @model_validator(mode="after")
    def _one_way(self) -> EventSource:
        if (self.display is None) == (self.user is None):
            raise ValueError("give exactly one of display and user: by which events find their display")
        if self.action is not None and self.user is None:
            raise ValueError("action goes with user: the last display of both")
        return self


class Conversion(Section):
    """Columns of a conversion, in the displays' table or, with `source`, in a second one."""

    indicator: Annotated[Name | None, of_role(EVENT["indicator"])] = None
    time: Annotated[Name | None, of_role(EVENT["time"])] = None
    delay: Annotated[Name | None, of_role(EVENT["delay"])] = None
    immediate: Annotated[bool, Field(description="rewards carry no time: delay 0")] = False
    min_delay: Annotated[
        str | int | None,
        Field(description="shortest delay: '30s', or ticks; what comes sooner is no event of its display, and counted"),
    ] = None
    value: Annotated[
        str | Annotated[float, Field(ge=-MOST_VALUE, le=MOST_VALUE)],
        of_role(EVENT["value"]),
    ] = 1.0
    key: Annotated[list[Name], of_role(EVENT["key"])] = []
    deduplicate: Annotated[Deduplicate, Field(description="which rows of a key carry its value")] = "all"
    click: Annotated[Name | None, of_role(EVENT["click"])] = None
    attributed: Annotated[Name | None, of_role(EVENT["attributed"])] = None
    attributed_only: bool = False
    source: EventSource | None = None

    # What messages call one of them.
    word: ClassVar[str] = "conversion"

    @model_validator(mode="after")
    def _one_clock(self) -> Conversion:
        if (self.time is not None) + (self.delay is not None) + self.immediate != 1:
            raise ValueError("give exactly one of time, delay and immediate = true")
        if self.immediate and self.indicator is None:
            raise ValueError("immediate = true needs indicator = '<column>'")
        if self.immediate and self.min_delay is not None:
            raise ValueError("min_delay is of a time or a delay, and immediate = true has none")
        if self.source is not None and self.source.user is not None and self.time is None:
            raise ValueError("source.user joins by user and time: name the column of the time, time = '<column>'")
        if self.deduplicate != "all" and not self.key:
            raise ValueError(f"deduplicate = '{self.deduplicate}' needs key = ['<column>', ...]")
        if self.attributed_only and self.attributed is None:
            raise ValueError("attributed_only = true needs attributed = '<column>'")
        if self.deduplicate == "all" and (lists := self._lists_of_displays):
            raise ValueError(
                f"source.explode = {lists!r} gives one {self.word} to each of several displays: say which of them gets "
                "it, deduplicate = 'last_click' (the last shown), 'first_click' or 'share', and key = ['<column>', ...]"
            )
        return self

    @property
    def _lists_of_displays(self) -> str | None:
        """The column that lists displays of one event: their ids are elements, and what the event is, is not."""
        explode = None if self.source is None else self.source.explode
        if explode is None or self.source is None or self.source.display is None:
            return None
        named = (self.source.display, self.indicator, self.time, self.delay, self.value)
        within = [name == explode or str(name).startswith(f"{explode}.") for name in named]
        return explode if within[0] and not any(within[1:]) else None


class OutcomeEvents(Conversion):
    """Columns of the events of another kind, given in any way in which conversions can be."""

    attribution_window: Annotated[
        str | int | None, Field(description="longest delay: '7d', or ticks; that of [log] when absent")
    ] = None
    observed_until: Annotated[
        Until | None,
        Field(description="until when such events were followed, as in [log], whose rule holds when absent"),
    ] = None
    value_max: Annotated[
        float | None,
        Field(gt=0, strict=False, allow_inf_nan=False, description="largest sum of one display's values, if known"),
    ] = None

    reward: Annotated[
        bool,
        Field(
            description="whether they count into the reward, beside the conversions: between value_min and value_max, "
            "0 where absent"
        ),
    ] = False
    told: Annotated[
        bool | None, Field(description="whether policies are told of them as they come; as `reward` when absent")
    ] = None
    value_min: Annotated[
        float | None,
        Field(le=0, strict=False, allow_inf_nan=False, description="smallest sum of one display's values, if known"),
    ] = None

    word: ClassVar[str] = "event"

    @model_validator(mode="after")
    def _rewards_alone(self) -> OutcomeEvents:
        if self.reward:
            return self
        if not isinstance(self.value, str) and self.value < 0:
            raise ValueError("value is below 0: count what takes events back as an outcome of its own, above 0")
        if self.told or self.value_min is not None:
            raise ValueError("told and value_min are of rewards: add reward = true")
        return self


class LogSection(Section):
    """How long the log followed its displays."""

    attribution_window: Annotated[str | int | None, Field(description="longest delay: '30d', or ticks")] = None
    observed_until: Annotated[
        Until,
        Field(
            description="'end' (last time seen), a time as display.time or in ticks, "
            "or 'complete' (every display followed to its end)"
        ),
    ] = "end"
    reward_max: Annotated[float | None, Field(gt=0, strict=False, allow_inf_nan=False)] = None
    reward_min: Annotated[
        float | None,
        Field(
            le=0,
            strict=False,
            allow_inf_nan=False,
            description="the least a display can bring, refunds and all; 0 where no value is negative",
        ),
    ] = None
    objective: Annotated[
        Literal["profit", "revenue"] | None,
        Field(description="what replays value unless told: 'profit' where there are costs when absent"),
    ] = None
    sampling_rate: Annotated[
        float,
        Field(ge=LEAST_SAMPLE, le=1, strict=False, description="share of the traffic's displays that the log holds"),
    ] = 1.0


class Deployment(Section):
    """How policies are deployed on this traffic; replays do so unless told otherwise."""

    preset: Annotated[
        str | None,
        Field(description="a product's documented default, which the other keys override: 'growthbook', 'eppo', ..."),
    ] = None
    learn_every: Annotated[
        str | int | None,
        Field(description="when what happened reaches the policy: 'event', rounds, '1h', or '1d@03:00'"),
    ] = None
    learn_lag: Annotated[
        str | int | None, Field(description="how old the newest of what a push brings is: '6h', or rounds")
    ] = None
    explore_first: Annotated[
        str | int | None,
        Field(
            description="how long actions are shown uniformly before the policy chooses: '2d', or rounds; '2d:logger' "
            "for the logging policy's choice"
        ),
    ] = None
    learn_from: Annotated[
        str | None, Field(description="what teaches the policy: 'objective', 'revenue', 'sales', 'click', 'click@1d'")
    ] = None
    keep_for: Annotated[
        str | None,
        Field(description="who keeps its first action: the column 'user', or 'user@7d' where it is asked anew"),
    ] = None

    @property
    def asked(self) -> dict[str, str]:
        """What is said, by name; a preset as what it stands for."""
        said = {name: str(given) for name, given in self if given is not None}
        return preset_options(said.pop("preset", None)) | said

    @property
    def columns(self) -> list[str]:
        """Columns that the log must keep for it."""
        kept = deployment_of(self.asked).kept
        return [] if kept is None else [kept.column]

    @model_validator(mode="after")
    def _is_schedule(self) -> Deployment:
        try:
            deployment_of(self.asked)
        except ParameterError as error:
            what, remedy = error.what.replace("`", ""), error.remedy.rstrip(".?")
            raise ValueError(f"{what} {remedy[:1].upper()}{remedy[1:]}") from None
        return self


def _are_names(columns: object) -> object:
    if isinstance(columns, dict) and (cut := [name for name, of in columns.items() if isinstance(of, dict)]):
        raise ValueError(f'columns: a name with dots stands in quotes, "{cut[0]}.{next(iter(columns[cut[0]]), "")}"')
    return columns


class Context(Section):
    """Columns a policy may see, and how they become a vector."""

    columns: Annotated[list[Name] | dict[str, ColumnKind], BeforeValidator(_are_names)] = []
    encoding: Encoding = "hash"
    dimensions: Annotated[int, Field(ge=1, le=65536, description="width of the hashed part")] = 16
    intercept: Annotated[bool, Field(description="append a constant")] = True
    scale: Annotated[
        Scale | None,
        Field(description="'standard': numbers with mean 0 and deviation 1 in the first tenth of the displays"),
    ] = None
    allow: Annotated[
        list[Name],
        Field(description="columns named in [display] or [conversion] that are known before the display all the same"),
    ] = []

    def kinds(self) -> dict[str, ColumnKind]:
        """Return the kind of each column."""
        if isinstance(self.columns, dict):
            return dict(self.columns)
        kind: ColumnKind = "number" if self.encoding == "number" else "category"
        return dict.fromkeys(self.columns, kind)


class NoFeature(NamedTuple):
    """What makes a column no feature, and whether it may be known before the display all the same."""

    what: str
    known_before: bool


class Leakage(Section):
    """Columns that hold the outcome."""

    columns: list[Name]


class Heading(Section):
    """What every spec says about itself."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]
    title: Name
    licence: Name
    homepage: str | None = None
    notes: Annotated[list[str], Field(description="sentences every reader of a result must see")] = []


class FileSpec(Heading):
    """A dataset in files."""

    source: Source
    time: Time
    display: Display
    action: Annotated[list[ActionTimes], Field(description="when each action was eligible, where there are few")] = []
    calendar: Calendar | None = None
    candidates: Candidates | None = None
    conversion: Conversion
    outcomes: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")], OutcomeEvents],
        Field(description="events of other kinds, each in a table [outcomes.NAME]; no policy sees them but rewards"),
    ] = {}
    log: LogSection = LogSection()
    deployment: Deployment = Deployment()
    context: Context = Context()
    action_set: ActionSet | None = None
    target: Target | None = None
    keep: Annotated[
        dict[Name, Name],
        Field(description="columns that every log of the dataset keeps, to group by, under the names it gives them"),
    ] = {}
    leakage: Leakage = Leakage(columns=[])
    twin: Annotated[TwinParameters | None, Field(description="how `evaluate datasets make` generates such files")] = (
        None
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> FileSpec:
        for name in self.outcomes:
            if name in NO_OUTCOMES:
                raise ValueError(f"[outcomes.{name}] has a name of what a log has by itself: rename it")
        if self.display.time == ORDER and self.time.unit != "round":
            raise ValueError(
                "display.time is missing: name its column, or, where the order of the rows is all that is known, write "
                'unit = "round" under [time]'
            )
        if self.display.time == ORDER and self.source.sort:
            raise ValueError("sort = true needs times: name their column, display.time")
        for table, events in self.events().items():
            by = None if events.source is None else "id" if events.source.user is None else "user"
            if by is not None and getattr(self.display, by) is None:
                raise ValueError(f"[{table}.source] joins on display.{by}: name that column")
            if events.source is not None and events.immediate:
                raise ValueError(f"immediate = true reads the displays' own table: drop [{table}.source]")
        for name, policy in ({} if self.target is None else self.target.named).items():
            if policy.source is not None and self.display.id is None:
                raise ValueError(f"[target.{name}.source] joins on display.id: name that column")
        clocks = [self.display.time, *(events.time for events in self.events().values())]
        clocks += [] if self.calendar is None else self.calendar.times
        times = list(dict.fromkeys(column for column in clocks if column is not None))
        self._one_source_of_sets()
        if self.action_set is not None and self.candidates is not None and self.candidates.features:
            raise ValueError("candidates.features and [action_set] both give vectors of the actions: give one of them")
        for key in ("format", "timezone", "offset"):
            given = getattr(self.time, key)
            for column in given if isinstance(given, dict) else ():
                if column not in times:
                    raise ValueError(f"time.{key} holds {column!r}, which is no column of times ({', '.join(times)})")
        for column in self.context.allow:
            if (found := self.no_features().get(column)) is None:
                raise ValueError(f"context.allow holds {column!r}, which is a feature like any other: take it out")
            if not found.known_before:
                raise ValueError(f"context.allow holds {column!r}, which {found.what}: it can be no feature")
        for column in self.context.kinds():
            if refused := self.why_no_feature(column):
                raise ValueError(f"context.columns holds {column!r}, which {refused}")
        return self

    @property
    def tick(self) -> Tick:
        """Tick of the log: the unit of integer times, us for datetimes."""
        return "us" if self.time.unit == "datetime" else self.time.unit

    @property
    def logged_propensities(self) -> PropensityKind:
        """Where the propensities of the log come from."""
        if self.display.propensity is not None or (self.candidates is not None and self.candidates.propensity):
            return "logged"
        return "uniform" if self.display.propensity_kind == "uniform" else "absent"

    @property
    def sets(self) -> list[str]:
        """What says which actions are eligible, one at the most; nothing where every action always is."""
        given = {
            "display.eligible": self.display.eligible, "[[action]]": self.action, "[calendar]": self.calendar,
            "[candidates]": self.candidates,
        }  # fmt: skip
        return [name for name, what in given.items() if what]

    def events(self) -> dict[str, Conversion]:
        """Return the tables of the spec that give events, by their names: ``conversion``, ``outcomes.NAME``."""
        return {"conversion": self.conversion, **{f"outcomes.{name}": of for name, of in self.outcomes.items()}}

    def joined(self, source: EventSource) -> list[str]:
        """Return the columns of the displays by which rows of a table of events find theirs, as `source.joined`."""
        d = self.display
        by = [d.id if source.user is None else d.user, *([d.action] if source.action else [])]
        return [column for column in by if column is not None]

    def _one_source_of_sets(self) -> None:
        d, c, named = self.display, self.candidates, self.sets
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)} both say which actions are eligible: give one of them")
        if named and isinstance(d.propensity, float | int):
            raise ValueError(
                f"display.propensity is one number, and {named[0]} gives displays sets, whose propensities sum to 1: "
                "write propensity_kind = 'uniform', or each action's propensity"
            )
        if c is not None and d.id is None:
            raise ValueError("[candidates] joins on display.id: name that column")
        if c is not None and c.propensity is not None and (d.propensity or d.propensity_kind):
            raise ValueError("candidates.propensity says how likely each action was: drop propensity from [display]")

    def no_features(self) -> dict[str, NoFeature]:
        """Return the columns that are no features unless `context.allow` says otherwise, and what each is."""
        found: dict[str, NoFeature] = {}
        for c in self.events().values():
            an = f"{'an' if c.word == 'event' else 'a'} {c.word}"
            for role in (EVENT["key"], EVENT["value"]):
                found |= {column: NoFeature(role.unfit.format(an), True) for column in role.columns(c)}
        for own in (False, True):  # of a second table, only the name is the same
            for c in self.events().values():
                for role in EVENT.values() if (c.source is None) == own else ():
                    if not role.known_before:
                        found |= {column: NoFeature(role.unfit, not own) for column in role.columns(c)}
        later = f"{EVENT['time'].unfit} (leakage.columns)"
        found |= {column: NoFeature(later, False) for column in self.leakage.columns}
        own_roles: dict[str, NoFeature] = {}
        for role in DISPLAY.values():
            for column in role.columns(self.display):
                if column not in own_roles or own_roles[column].known_before:
                    own_roles[column] = NoFeature(role.unfit, role.known_before)
        return found | own_roles

    def why_no_feature(self, column: str) -> str | None:
        """Return why a policy may not see a column, None if it may."""
        found = self.no_features().get(column)
        if found is None or column in self.context.allow:
            return None
        escape = f"; if it is known before the display, write context.allow = [{column!r}]"
        return f"{found.what}: no policy may see it{escape if found.known_before else ''}"


class ScenarioSpec(Heading):
    """A synthetic dataset with known truth."""

    scenario: Annotated[LinearScenario | BernoulliScenario | PromotionsScenario, Field(discriminator="kind")]
    deployment: Deployment = Deployment()

    @model_validator(mode="after")
    def _has_no_more(self) -> ScenarioSpec:
        if self.deployment.learn_from is not None:
            raise ValueError("deployment.learn_from: policies of a scenario learn from its rewards")
        if self.deployment.keep_for is not None:
            raise ValueError("deployment.keep_for: displays of a scenario are independent, and nobody comes back")
        return self


Spec = FileSpec | ScenarioSpec


SECTIONS = {*FileSpec.model_fields, *ScenarioSpec.model_fields}


def read_spec(path: Path) -> Spec:
    """Return the checked spec in the file `path`.

    Raises SpecError, which names the file and the key path, if the file is not TOML, has an unknown key, lacks one, or
    has a value of the wrong type.
    """
    try:
        data = read_toml(path)
    except FileNotFoundError:
        hint = nearest_file(path, "name a bundled dataset or a spec.toml.")
        raise SpecError(f"{path}: no such spec file.", remedy=hint) from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read ({error.strerror}).", remedy="name a file that may be read.") from None
    except NotTomlError as error:
        raise SpecError(f"{path}: {error}.", remedy=f"{KEYS}.") from None
    return parse_spec(data, where=str(path))


def parse_spec(data: dict[str, Any], *, where: str = "spec") -> Spec:
    """Return the checked spec in `data`; `where` names it in errors (see `read_spec`)."""
    model: type[FileSpec] | type[ScenarioSpec] = ScenarioSpec if "scenario" in data else FileSpec
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _explain(error, model, where) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a spec."""
    return TypeAdapter(Spec).json_schema()


def _explain(error: ValidationError, model: type[BaseModel], where: str) -> SpecError:
    found = error.errors(include_url=False, include_context=False)
    # A misspelt key gives "missing" and "unknown": the second carries the suggestion.
    first = min(found, key=lambda e: e["type"] != "extra_forbidden")
    parent, path = _walk(model, first["loc"])
    more = f" ({len(found) - 1} more below it)" if len(found) > 1 else ""
    known = sorted(field.alias or name for name, field in parent.model_fields.items()) if parent is not None else []
    if first["type"] == "extra_forbidden":
        words = sorted({*known, *SECTIONS}) if parent is model else known
        return SpecError(f"{where}: unknown key `{path}`{more}.", remedy=nearest(str(first["loc"][-1]), words))
    if first["type"] == "missing":
        return SpecError(f"{where}: `{path}` is missing{more}.", remedy=f"add {first['loc'][-1]} = ... there.")
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        got = first["input"].get("kind") if isinstance(first["input"], dict) else first["input"]
        return SpecError(f"{where}: `{path}.kind`: got {got!r}.", remedy=nearest(str(got), KINDS))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return SpecError(f"{where}: at `{path}`: {message}{more}.", remedy=f"{KEYS}.")
    got = first["input"]
    expected = message.replace("Input should be", "expected").replace("String should", "expected text that should")
    return SpecError(
        f"{where}: `{path}`: {expected}, got {shortened(repr(got))} ({type(got).__name__}){more}.",
        remedy=_suggest(got, message),
    )


def _suggest(got: object, message: str) -> str:
    words = [w for w in message.split("'") if (w.strip(" ,or") and w.isidentifier()) or "-" in w]
    close = difflib.get_close_matches(str(got), words, n=1)
    return f"did you mean {close[0]}?" if close else f"{KEYS}."


def _walk(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel] | None, str]:
    """Return the model that owns the last key of `loc`, and its path without pydantic's union tags."""
    at: type[BaseModel] | None = model
    parent: type[BaseModel] | None = model
    path, named = "$", False
    for i, part in enumerate(loc):
        if isinstance(part, int):
            path += f"[{part}]"
            continue
        if part == "[key]":  # it is the name itself that is wrong
            continue
        if named:  # a name that the writer of the spec chose, of a table of tables
            path, named = f"{path}.{part}", False
            continue
        parent = at
        fields = {} if at is None else {field.alias or name: field for name, field in at.model_fields.items()}
        if part in fields:
            models = list(_models(fields[part].annotation))
            named = bool(models) and get_origin(fields[part].annotation) is dict
            path += f".{part}"
            tag = loc[i + 1] if i + 1 < len(loc) else None
            tagged = [
                m for m in models if "kind" in m.model_fields and tag in get_args(m.model_fields["kind"].annotation)
            ]
            at = next(iter(tagged or models), None)
        elif at is not None and "kind" in at.model_fields and part in get_args(at.model_fields["kind"].annotation):
            continue
        elif i == len(loc) - 1 and at is not None:
            path += f".{part}"
    return parent, path


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for a in get_args(annotation) for m in _models(a)]
