"""Documents of `evaluate datasets`: what is said of a dataset and its log, and of what was made or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from evaluator.log.log_tables import PropensityKind
from evaluator.results.json_documents import (
    Count,
    Finite,
    JsonDocument,
    JsonPart,
    NotNegative,
    Positive,
    Text,
    several,
)
from evaluator.units import Tick
from evaluator.worlds.scenarios.promotions import TrueValues

DatasetKind = Literal["synthetic", "evaluate datasets make", "your own copy of the files"]
NotPositive = Annotated[float, Field(le=0)]
QuantileName = Literal["p25", "p50", "p75", "p90", "p99"]
# In ticks; empty without events.
DelayQuantiles = dict[QuantileName, Finite]
# Of the actions most shown, and of others of which something is said.
TOP = NAMED = 10


@dataclass(frozen=True, kw_only=True)
class DatasetRow:
    """A bundled dataset, as a row of the list."""

    name: str
    title: str
    licence: str
    kind: DatasetKind


@dataclass(frozen=True)
class DatasetList(JsonDocument):
    """Result of evaluate datasets list --json."""

    schema: ClassVar[str] = "evaluate.datasets/1"

    datasets: tuple[DatasetRow, ...]


@dataclass(frozen=True, kw_only=True)
class NamedActions:
    """Some actions.

    Parameters
    ----------
    count
        Number of them.
    labels
        Labels of the first ones.
    """

    count: Count
    labels: Annotated[tuple[str, ...], Field(max_length=NAMED)]


@dataclass(frozen=True, kw_only=True)
class SetFacts:
    """How the sets of eligible actions of a log vary.

    Parameters
    ----------
    distinct
        Number of different sets.
    mean, smallest, largest
        Sizes of the sets over the displays.
    changes
        Number of displays whose set is another than that of the one before.
    vary
        ``never`` (one set), ``with time`` (some action is eligible much more at some times than at others: the
        judgement of replays) or ``otherwise``.
    never_eligible, never_logged
        Actions that no display could show, and those that some could and none did.
    hardly_eligible
        Actions eligible at fewer than one display in a thousand, but at some.
    """

    distinct: Positive
    mean: Annotated[float, Field(ge=1)]
    smallest: Positive
    largest: Positive
    changes: Count
    vary: Literal["never", "with time", "otherwise"]
    never_eligible: NamedActions
    never_logged: NamedActions
    hardly_eligible: NamedActions


@dataclass(frozen=True, kw_only=True)
class RefundFacts:
    """Conversions with a value below 0.

    Parameters
    ----------
    conversions
        Number of them.
    per_display
        What they take back, below 0.
    smallest
        Least that a display has earned at any time.
    """

    conversions: Positive
    per_display: NotPositive
    smallest: NotPositive


@dataclass(frozen=True, kw_only=True)
class CostFacts:
    """What displays cost, on average and at the ends."""

    per_display: NotNegative
    smallest: NotNegative
    largest: NotNegative


@dataclass(frozen=True, kw_only=True)
class OutcomeFacts:
    """Events of one kind beside the conversions.

    Parameters
    ----------
    name
        Name of the outcome.
    events
        Number of its events.
    value_per_display
        Sum of their values a display; below 0 where rewards are taken back.
    reward, told
        Whether they count as rewards, and whether policies are told of them.
    observed_until, attribution_window
        Time up to which they were followed, and longest delay that the log records, in ticks; None where there is none.
    value_max
        Largest value of an event; None where the log names none.
    delay_quantiles
        Quantiles of the delays in ticks; empty without events.
    """

    name: str
    events: Count
    value_per_display: Finite
    reward: bool
    told: bool
    observed_until: int | None
    attribution_window: Count | None
    value_max: Finite | None
    delay_quantiles: DelayQuantiles


@dataclass(frozen=True, kw_only=True)
class ActionFacts:
    """How often an action was shown, and how many conversions its displays have."""

    label: str
    displays: Count
    conversions: Count


@dataclass(frozen=True, kw_only=True)
class LogFacts(JsonPart):
    """What a log holds. Times and delays in ticks.

    Parameters
    ----------
    displays, conversions
        Number of displays, and of conversions.
    conversions_per_display, reward_per_display
        Conversions, and sum of their values, a display.
    actions
        Number of actions K.
    tick
        Unit of all times.
    time_range
        Times of the first and of the last display.
    observed_until, attribution_window
        Time up to which conversions were followed, and longest delay that the log records; None where there is none.
    propensity
        Origin of the propensities.
    refunds
        Conversions with a value below 0; None without.
    costs
        What displays cost; None where the log does not say.
    delay_quantiles
        Quantiles of the delays; empty without conversions.
    outcomes
        Kinds of events beside the conversions.
    top_actions
        Actions that were shown most.
    context_dimensions, action_vector_dimensions
        Number of values that a display has of its context, and of each action; None where it has none.
    kept_columns
        Columns to group by.
    eligible
        How the sets of eligible actions vary; None where every action always is.
    counts
        What the reader of the files counted, by name.
    fingerprint
        Hash of the log's rows.
    notes
        Sentences that the log says of itself.
    """

    displays: Positive
    conversions: Count
    conversions_per_display: NotNegative
    reward_per_display: Finite
    actions: Positive
    tick: Tick
    time_range: tuple[int, int]
    observed_until: int | None
    attribution_window: Count | None
    propensity: PropensityKind
    refunds: RefundFacts | None
    costs: CostFacts | None
    delay_quantiles: DelayQuantiles
    outcomes: tuple[OutcomeFacts, ...]
    top_actions: Annotated[tuple[ActionFacts, ...], several, Field(max_length=TOP)]
    context_dimensions: Positive | None
    action_vector_dimensions: Positive | None
    kept_columns: tuple[str, ...]
    eligible: SetFacts | None
    counts: dict[str, Finite]
    fingerprint: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DatasetFacts(JsonDocument):
    """Facts of a dataset.

    Parameters
    ----------
    name
        Name of the dataset.
    spec
        What the spec says, by the schema of `evaluate datasets schema`; None for a converted folder.
    log
        What the log holds.
    """

    schema: ClassVar[str] = "evaluate.dataset/1"

    name: str
    spec: dict[str, Any] | None
    log: LogFacts


@dataclass(frozen=True, kw_only=True)
class PromotionsFacts(DatasetFacts):
    """Facts of a log of promotions.

    Parameters
    ----------
    truth
        Values that each way to choose promotions brings a display on average.
    """

    truth: tuple[TrueValues, ...]


@dataclass(frozen=True, kw_only=True)
class SpecFacts(JsonDocument):
    """Facts of a dataset whose files are absent.

    Parameters
    ----------
    name, spec
        Name of the dataset, and what the spec says.
    log
        Nothing, as no file was read.
    missing
        Why there is no log.
    """

    schema: ClassVar[str] = DatasetFacts.schema

    name: str
    spec: dict[str, Any]
    log: None = None
    missing: Text


@dataclass(frozen=True, kw_only=True)
class Validation(JsonDocument):
    """Whether a dataset is sound.

    Parameters
    ----------
    ok
        Whether no row was left out, which is asked for by ``on_error="quarantine"``.
    name
        Name of the dataset.
    counts
        What the reader of the files counted, by name.
    eligible
        How the sets of eligible actions vary; None where every action always is.
    notes
        Sentences that the reader should know.
    """

    schema: ClassVar[str] = "evaluate.validation/1"

    ok: bool
    name: str
    counts: dict[str, Finite]
    eligible: SetFacts | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Conversion(JsonDocument):
    """What a conversion of a dataset wrote.

    Parameters
    ----------
    out
        Folder or address of the log.
    name
        Name of the log.
    displays, conversions, actions, quarantined
        Number of displays, of conversions, of actions, and of rows that were left out.
    counts
        What else the reader of the files counted, by name.
    """

    schema: ClassVar[str] = "evaluate.conversion/1"
    beside: ClassVar[str] = "counts"

    out: str
    name: str
    displays: Positive
    conversions: Count
    actions: Positive
    quarantined: Count
    counts: dict[str, Finite]


@dataclass(frozen=True, kw_only=True)
class MadeShop(JsonDocument):
    """The made-up shop.

    Parameters
    ----------
    out
        Folder of the shop.
    truth, table
        File of what is true of it, and table of what is true of its parts.
    displays, sales, delays
        Number of its displays, sales and delays.
    """

    schema: ClassVar[str] = "evaluate.made/1"

    out: str
    truth: str
    table: str
    displays: Positive
    sales: Count
    delays: Count


@dataclass(frozen=True, kw_only=True)
class MadeTwin(JsonDocument):
    """Twin of a real file.

    Parameters
    ----------
    out
        File of the twin.
    truth, table
        File of what is true of it, and table of what is true of its parts.
    rows, users
        Number of its rows, and of their users.
    conversion_rows, conversions, shared_conversions, attributed_conversions
        Number of rows with a conversion, of conversions, of those that several rows share, and of those attributed.
    colliding_ids
        Number of conversion ids that two users share.
    """

    schema: ClassVar[str] = MadeShop.schema

    out: str
    truth: str
    table: str
    rows: Positive
    users: Positive
    conversion_rows: Count
    conversions: Count
    shared_conversions: Count
    attributed_conversions: Count
    colliding_ids: Count
