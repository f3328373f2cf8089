"""What every section of a spec is made of: how a table is read, where it lies, and how its times are written.

``where`` of a table is a few conditions on its columns that say which of its rows are meant:

    conditions = condition {"and" condition}
    condition  = column "=" text | column "!=" text | column "in" "(" text {"," text} ")" | column "is" ["not"] "null"

A column is a name, in double quotes where it is no plain one, and a text stands in single quotes. No other word is
known, and what is written here never reaches an engine as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import polars as pl
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from evaluator.escape import shortened
from evaluator.log.encoder import value_text
from evaluator.reading.cells import Kind, why_no_format, why_no_zone
from evaluator.reading.roles import CALENDAR, CANDIDATE, TARGETS, VECTORS, Role
from evaluator.reading.text import known_encoding
from evaluator.store_addresses import refuse_secret_keys, without_secret

Name = Annotated[str, Field(min_length=1)]
# One ASCII character that neither ends a line nor quotes a cell.
Delimiter = Annotated[str, Field(pattern=r"^[\t -!#-~]$")]
Sentinel = str | int | Annotated[float, Field(allow_inf_nan=True)]
FileFormat = Literal["csv", "tsv", "jsonl", "parquet", "ipc", "dsjson", "dsjson-actions", "vw", "vw-actions"]
# In the place of a column of times: the number of the row. No column is called so.
ORDER = "__order"
# What a query begins with that only reads. Each database sees to it by itself that nothing is written.
READING = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")

_BEFORE = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Instant = Annotated[int, Field(ge=-(2**62), le=2**62)] | str
Parameter = str | bool | Annotated[int, Field(ge=-(2**63), lt=2**63)] | float
# A path, or where a store answers; no message repeats one that holds a secret.
Address = Annotated[Name, AfterValidator(without_secret)]
# Keys of a section of which each says alone where its table lies, and the keys that go with it.
PLACES = {
    "files": ("format", "delimiter", "encoding", "header", "columns", "storage"),
    "delta": ("version", "storage"),
    "iceberg": ("snapshot", "storage"),
    "database": ("uri_env", "query", "parameters"),
}
_ROWS = {*PLACES, "version", "snapshot", *PLACES["database"]}
TimeUnit = Literal["ns", "us", "ms", "s", "min", "h", "d", "round", "datetime"]
_TOKENS = re.compile(
    r"""\s*(?:(?P<name>[^\W\d][\w.$-]*)|"(?P<quoted>(?:[^"]|"")+)"|'(?P<text>(?:[^']|'')*)'"""
    r"""|(?P<number>[-+]?\d[\w.]*)|(?P<mark>!=|==|<>|<=|>=|.))""",
    re.DOTALL,
)
_JOINED = "conditions are joined by and; of several texts write column in ('a', 'b')"


def first_word(query: str) -> str:
    r"""Return the word that a query begins with, in capitals, after its comments.

    >>> first_word("-- displays\n (select 1)"), first_word("")
    ('SELECT', '')
    """
    found = re.match(r"\w*", query[_BEFORE.match(query).end() :])  # type: ignore[union-attr]
    assert found is not None
    return found[0].upper()


def _reads(query: str) -> str:
    if (word := first_word(query)) not in READING:
        begins = f"begins with {word}" if word else "is empty"
        raise ValueError(
            f"query {begins}: it may only read, and begins with {', '.join(READING[:-1])} or {READING[-1]}"
        )
    if "\0" in query:
        raise ValueError("query holds a character that is none, \\0: take it out")
    return query


def _is_variable(name: str) -> str:
    # What stands there in its place may be the URI, with a password: it is not quoted.
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "uri_env is the name of an environment variable, such as SHOP_DB, and not the URI itself, which would "
            "stand here for all to read"
        )
    return name


def _no_uri(value: object) -> object:
    if isinstance(value, str) and not value.isalpha():
        raise ValueError("database is one of postgresql, sqlite and duckdb; its URI stands in the variable of uri_env")
    return value


Database = Annotated[Literal["postgresql", "sqlite", "duckdb"], BeforeValidator(_no_uri)]
VariableName = Annotated[str, AfterValidator(_is_variable)]
Query = Annotated[str, AfterValidator(_reads)]


def _by_design(given: str | float | dict[str, float]) -> str | float | dict[str, float]:
    shares = {"": given} if isinstance(given, float | int) else given if isinstance(given, dict) else {}
    for label, p in shares.items():
        if not 0 < p <= 1:
            raise ValueError(f"propensity {p:g}{f' of {label!r}' if label else ''} is no probability in (0, 1]")
    if isinstance(given, dict) and abs(sum(shares.values()) - 1) > 1e-6:
        raise ValueError(f"propensities sum to {sum(shares.values()):g}, not to 1: name every action's")
    return given


# A column; or, by design, the probability of every action, or of each by its label.
Propensity = Annotated[
    Name | float | dict[Name, float],
    AfterValidator(_by_design),
]


def of_role(role: Role, **more: Any) -> Any:
    """Return the field of a key, as its role describes it."""
    return Field(description=role.what, **more)


class Section(BaseModel):
    """A table of the spec: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _is_encoding(name: str) -> str:
    if not known_encoding(name):
        raise ValueError(
            f"Python knows no text encoding {name!r}: write 'utf-8', 'windows-1252', 'latin-1', 'utf-16'..."
        )
    return name


TextEncoding = Annotated[
    str,
    AfterValidator(_is_encoding),
    Field(description="of text files: any that Python knows, such as 'windows-1252', 'latin-1' or 'utf-16'"),
]


class Storage(Section):
    """Where an object store answers. Secrets come from the environment alone."""

    endpoint: Annotated[
        Address | None, Field(description="http(s):// address of a store that is not the provider's own")
    ] = None
    region: Annotated[Name | None, Field(description="of s3://; that of AWS_REGION when absent, else us-east-1")] = None
    account: Annotated[
        Name | None, Field(description="storage account of az://; that of AZURE_STORAGE_ACCOUNT_NAME when absent")
    ] = None
    anonymous: Annotated[bool, Field(description="ask without credentials, as public buckets allow")] = False

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, data: Any) -> Any:
        if not isinstance(data, dict | Storage):
            raise ValueError(
                'expected a table such as { endpoint = "https://minio.example.org", region = "eu-west-1" }'
            )
        refuse_secret_keys(data if isinstance(data, dict) else ())
        return data


def _states_conditions(where: str) -> str:
    conditions(where)
    return where


class Table(Section):
    """Where a table lies, and how it is read."""

    files: Annotated[
        Address | None, Field(description="path, glob or folder, relative to the spec, or s3://, gs://, az://")
    ] = None
    delta: Annotated[Address | None, Field(description="folder or URL of a Delta table, in place of files")] = None
    version: Annotated[int | None, Field(ge=0, description="of the Delta table; the last when absent")] = None
    iceberg: Annotated[
        Address | None,
        Field(description="table folder, metadata.json or catalog.namespace.table of Iceberg, in place of files"),
    ] = None
    snapshot: Annotated[int | None, Field(ge=0, description="of the Iceberg table; the current one when absent")] = None
    format: Annotated[FileFormat | None, Field(description="inferred from the suffix when absent")] = None
    delimiter: Annotated[Delimiter | None, Field(description="csv ',' and tsv tab by default")] = None
    encoding: TextEncoding = "utf-8"
    header: Annotated[bool, Field(description="the first line names the columns")] = True
    columns: Annotated[list[Name] | None, Field(description="names in file order, with header = false")] = None
    none: Annotated[
        list[Sentinel] | dict[str, list[Sentinel]],
        Field(description="values that mean 'missing', everywhere or by column"),
    ] = []
    explode: Annotated[
        Name | None,
        Field(
            description="column of lists, or of a map, each of whose elements makes a row, its fields called "
            "'<column>.<field>', of a map '<column>.key' and '<column>.value'"
        ),
    ] = None
    where: Annotated[
        Annotated[str, AfterValidator(_states_conditions)] | None,
        Field(
            description="conditions that say which rows are meant, joined by and: \"event = 'sale'\", "
            "\"event in ('a', 'b')\", \"bot != 'yes'\", \"user is not null\""
        ),
    ] = None
    storage: Annotated[
        Storage | None, Field(description="where the object store answers; that of [source] when absent")
    ] = None
    database: Annotated[Database | None, Field(description="in place of files: what answers a query")] = None
    uri_env: Annotated[
        VariableName | None, Field(description="environment variable that holds the database's URI, or its path")
    ] = None
    query: Annotated[Query | None, Field(description="what gives the rows; it is run once, and can only read")] = None
    parameters: Annotated[
        list[Parameter], Field(description="values bound to the query, in the order of its placeholders")
    ] = []

    @property
    def place(self) -> dict[str, object]:
        """What it says of where it lies: equal for sections that are read from the same rows."""
        return self.model_dump(include=_ROWS)

    @property
    def is_on_disk(self) -> bool:
        """Whether it lies in files on disk."""
        return self.files is not None and "://" not in self.files

    @model_validator(mode="after")
    def _one_place(self) -> Table:
        given = [place for place in PLACES if getattr(self, place) is not None]
        if len(given) != 1:
            *most, last = PLACES
            raise ValueError(f"give exactly one of {', '.join(most)} and {last}: where the table lies")
        (place,) = given
        for other, keys in PLACES.items():
            # A spec that was written out again has all keys, those that say nothing at their defaults.
            said = [key for key in keys if getattr(self, key) != type(self).model_fields[key].default]
            if stray := [key for key in said if key not in PLACES[place]]:
                raise ValueError(f"{stray[0]} goes with {other} = '...', not with {place}")
        if self.database is not None and (lacking := [key for key in ("uri_env", "query") if not getattr(self, key)]):
            raise ValueError(f"database = '{self.database}' needs {lacking[0]}")
        return self

    @model_validator(mode="after")
    def _names_or_header(self) -> Table:
        if self.header == (self.columns is not None):
            raise ValueError("columns must be given with header = false, and only then")
        return self


class Source(Table):
    """The table of the displays."""

    sort: Annotated[bool, Field(description="sort the displays by time instead of refusing unsorted ones")] = False


class ActionTimes(Section):
    """An action, and when it was eligible."""

    label: Name
    start: Annotated[
        Instant | None, Field(alias="from", description="first time, as display.time; ever when absent")
    ] = None
    until: Annotated[
        Instant | None, Field(description="first time at which it no longer was; for good when absent")
    ] = None


class Calendar(Table):
    """A table of the actions with the times between which they were eligible."""

    action: Annotated[Name, of_role(CALENDAR["action"])]
    start: Annotated[Name | None, of_role(CALENDAR["start"], alias="from")] = None
    until: Annotated[Name | None, of_role(CALENDAR["until"])] = None

    @property
    def times(self) -> list[str]:
        """Columns that hold times."""
        return [column for column in (self.start, self.until) if column is not None]


class Candidates(Table):
    """A table of the actions that could have been shown, a row for each of a display."""

    display: Annotated[Name, of_role(CANDIDATE["display"])]
    action: Annotated[Name, of_role(CANDIDATE["action"])]
    propensity: Annotated[Name | None, of_role(CANDIDATE["propensity"])] = None
    features: Annotated[list[Name], of_role(CANDIDATE["features"])] = []


def _names_actions(columns: str | dict[str, str] | None) -> None:
    if isinstance(columns, str) and columns.count("{action}") != 1:
        raise ValueError("columns = '<name>' needs {action} in it once, for the label: 'pi_{action}'")
    if columns is not None and not columns:
        raise ValueError("columns names no action")


class TargetSource(Table):
    """A table of its own for the actions that a policy takes, a row for each display."""

    display: Annotated[Name, of_role(TARGETS["display"])]


class NamedTarget(Section):
    """Policy to be evaluated that has a name: a column with the action that it takes, or columns of probabilities."""

    action: Annotated[Name | None, of_role(TARGETS["action"])] = None
    columns: Annotated[str | dict[str, Name] | None, of_role(TARGETS["columns"])] = None
    source: TargetSource | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> NamedTarget:
        if (self.action is None) == (self.columns is None):
            raise ValueError("a target has either action = '<column>' or columns = 'pi_{action}'")
        if self.source is not None and self.action is None:
            raise ValueError("source is a table of labels: name its column of them, action = '<column>'")
        _names_actions(self.columns)
        return self


class Target(Section):
    """Policies to be evaluated, as columns of the displays: one without a name, and others in tables [target.NAME]."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")], NamedTarget]

    columns: Annotated[str | dict[str, Name] | None, of_role(TARGETS["columns"])] = None

    @property
    def named(self) -> dict[str, NamedTarget]:
        """The policies that have a name, by it."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _names_policies(self) -> Target:
        if self.columns is None and not self.named:
            raise ValueError("[target] names no policy: write columns, or a table [target.NAME]")
        _names_actions(self.columns)
        return self


class ActionSet(Section):
    """Columns that hold the vectors of all actions at each display."""

    columns: Annotated[str | list[str], of_role(VECTORS)]

    @property
    def patterns(self) -> list[str]:
        """Name of the columns of each number of the vectors."""
        return [self.columns] if isinstance(self.columns, str) else self.columns

    @model_validator(mode="after")
    def _names_actions(self) -> ActionSet:
        for pattern in self.patterns:
            if pattern.count("{action}") != 1:
                raise ValueError(
                    f"columns: {pattern!r} needs {{action}} in it once, for the label: 'affinity_{{action}}'"
                )
        if not self.patterns:
            raise ValueError("columns names no number of the vectors")
        return self


def _are_formats(given: str | dict[str, str] | None) -> str | dict[str, str] | None:
    for form in given.values() if isinstance(given, dict) else [] if given is None else [given]:
        if refused := why_no_format(form):
            raise ValueError(f"{form!r} {refused}")
    return given


def _are_zones(given: str | dict[str, str] | None) -> str | dict[str, str] | None:
    for zone in given.values() if isinstance(given, dict) else [] if given is None else [given]:
        if refused := why_no_zone(zone):
            raise ValueError(f"{zone!r} {refused}")
    return given


class Time(Section):
    """Unit of the times, and what the order of equal ones means."""

    unit: Annotated[TimeUnit, Field(description="tick of integer times; 'datetime' gives ticks of us")]
    format: Annotated[
        str | dict[str, str] | None,
        AfterValidator(_are_formats),
        Field(description="how dates are written, everywhere or by column: '%d.%m.%Y'; ISO 8601 when absent"),
    ] = None
    timezone: Annotated[
        str | dict[str, str] | None,
        AfterValidator(_are_zones),
        Field(description="zone of dates that say none, everywhere or by column: 'Europe/Berlin'; UTC when absent"),
    ] = None
    offset: Annotated[
        Name | dict[str, Name] | None,
        Field(
            description="column that says by how many minutes the dates of a row are ahead of UTC, of those that say "
            "no zone, everywhere or by column: 120, or +02:00"
        ),
    ] = None
    ties: Annotated[
        Literal["shuffle", "file"],
        Field(description="displays of one time: 'shuffle' their order, or 'file' order is the order of the log"),
    ] = "shuffle"

    @model_validator(mode="after")
    def _format_of_dates(self) -> Time:
        for key, what in {
            "format": "how dates are written",
            **dict.fromkeys(("timezone", "offset"), "of dates"),
        }.items():
            if getattr(self, key) is not None and self.unit != "datetime":
                raise ValueError(f"{key} is {what}: it goes with unit = 'datetime', not {self.unit!r}")
        zone, offset = self.timezone, self.offset
        if isinstance(zone, str) and isinstance(offset, str):
            raise ValueError("timezone and offset both place all dates that say no zone: give one of them")
        if isinstance(zone, dict) and isinstance(offset, dict) and (both := sorted(zone.keys() & offset)):
            raise ValueError(f"timezone and offset both place the dates of {both[0]!r}: give one of them")
        return self

    def format_of(self, column: str) -> str | None:
        """Return how the times of a column are written; None for ISO 8601."""
        return self.format.get(column) if isinstance(self.format, dict) else self.format

    def zone_of(self, column: str) -> str | None:
        """Return the zone of a column's times that name none; None for UTC, or where a column of offsets names it."""
        if isinstance(self.timezone, dict):
            return self.timezone.get(column)
        return None if isinstance(self.offset, dict) and column in self.offset else self.timezone

    def offset_of(self, column: str) -> str | None:
        """Return the column that says by how much the times of a column are ahead of UTC; None without."""
        if isinstance(self.offset, dict):
            return self.offset.get(column)
        return None if isinstance(self.timezone, dict) and column in self.timezone else self.offset

    def kinds_of(self, *columns: str | None) -> dict[str, Kind]:
        """Return the kind of some columns of times, and of what says their offsets."""
        times = [column for column in columns if column is not None]
        kinds: dict[str, Kind] = dict.fromkeys(filter(None, map(self.offset_of, times)), "offset")
        return kinds | dict.fromkeys(times, "datetime" if self.unit == "datetime" else "int")


class Condition(NamedTuple):
    """What a cell of a column must be: one of some texts, or missing where there are None; or not, if `negated`."""

    column: str
    texts: tuple[str, ...] | None
    negated: bool

    def met(self, cells: pl.Series) -> pl.Series:
        """Return whether each cell, a text, meets it; what is missing is no text, neither equal nor another."""
        if self.texts is None:
            return cells.is_not_null() if self.negated else cells.is_null()
        found = cells.is_in(list(self.texts))
        return (~found if self.negated else found).fill_null(False)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int

    def is_word(self, *words: str) -> bool:
        return self.kind in ("name", "mark") and self.text.lower() in words

    @property
    def is_column(self) -> bool:
        return self.kind in ("name", "quoted")


def conditions(where: str) -> list[Condition]:
    """Return the conditions that a text states.

    Raises ValueError, which says at which character what is expected, for any other text.

    >>> conditions("event = 'purchase' and user is not null")
    [Condition(column='event', texts=('purchase',), negated=False), Condition(column='user', texts=None, negated=True)]
    >>> conditions("event == 'purchase'")
    Traceback (most recent call last):
    ValueError: "event == 'purchase'": at character 7: expected =, !=, in or is, got '==': write one =
    """
    tokens = list(_tokens(where))
    found, place = [], 0
    while True:
        condition, place = _condition(where, tokens, place)
        found.append(condition)
        if tokens[place].kind == "end":
            return found
        if not tokens[place].is_word("and"):
            _refuse(where, tokens[place], "and, or the end", _JOINED)
        place += 1


def _tokens(where: str) -> Iterator[_Token]:
    place = 0
    while (found := _TOKENS.match(where.rstrip(), place)) is not None:
        kind = str(found.lastgroup)
        quote = {"quoted": '"', "text": "'"}.get(kind)
        text = found[kind] if quote is None else found[kind].replace(2 * quote, quote)
        yield _Token(kind, text, found.start(kind) + (quote is None))
        place = found.end()
    yield _Token("end", "", len(where) + 1)


def _condition(where: str, tokens: list[_Token], place: int) -> tuple[Condition, int]:
    name, mark = tokens[place], tokens[min(place + 1, len(tokens) - 1)]
    if not name.is_column:
        _refuse(where, name, "a column", 'write its name, in double quotes where it has spaces: "event type"')
    if mark.is_word("=", "!="):
        return Condition(name.text, (_text(where, tokens[place + 2]),), mark.text != "="), place + 3
    if mark.is_word("is"):
        negated = tokens[place + 2].is_word("not")
        if not tokens[place + 2 + negated].is_word("null"):
            _refuse(
                where, tokens[place + 2 + negated], "null", f"write {name.text} is null, or {name.text} is not null"
            )
        return Condition(name.text, None, negated), place + 3 + negated
    if not mark.is_word("in"):
        said = {"==": "write one =", "not": f"write {name.text} != 'a' and {name.text} != 'b'"}
        _refuse(where, mark, "=, !=, in or is", said.get(mark.text.lower(), "a table takes no other comparison"))
    place += 2
    texts: list[str] = []
    while tokens[place].is_word("," if texts else "("):
        texts.append(_text(where, tokens[place + 1]))
        place += 2
    if not texts or not tokens[place].is_word(")"):
        _refuse(where, tokens[place], ", or )" if texts else "(", f"write {name.text} in ('a', 'b')")
    return Condition(name.text, tuple(texts), False), place + 1


def _text(where: str, token: _Token) -> str:
    if token.kind != "text":
        repair = f"write '{token.text}'" if token.text and token.kind != "mark" else "write 'a'"
        _refuse(where, token, "a text in single quotes", repair)
    return value_text(token.text)


def _refuse(where: str, token: _Token, expected: str, repair: str) -> NoReturn:
    got = "the end" if token.kind == "end" else shortened(repr(token.text))
    raise ValueError(f"{shortened(repr(where))}: at character {token.place}: expected {expected}, got {got}: {repair}")


def written_name(column: str) -> str:
    """Return a column as conditions write it.

    >>> written_name("event"), written_name("event type")
    ('event', '"event type"')
    """
    found = _TOKENS.fullmatch(column)
    return column if found and found["name"] == column else '"' + column.replace('"', '""') + '"'


def written_text(value: str) -> str:
    """Return a text as conditions write it.

    >>> written_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def columns_of(where: str | None) -> list[str]:
    """Return the columns on which a table has conditions."""
    return [] if where is None else list(dict.fromkeys(of.column for of in conditions(where)))


def all_met(found: Iterable[Condition], cells: Callable[[str], pl.Series]) -> pl.Series:
    """Return whether each row meets all conditions; `cells` gives the texts of a column."""
    met = [of.met(cells(of.column)) for of in found]
    whole = met[0]
    for other in met[1:]:
        whole &= other
    return whole
