"""What every section of a spec is made of, and what says how a table beside that of the displays is read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from evaluator.datasets.query_keys import Database, Parameter, Query, VariableName
from evaluator.datasets.secrets import refuse_secret_keys, without_secret
from evaluator.datasets.text import known_encoding

Name = Annotated[str, Field(min_length=1)]
# One ASCII character that neither ends a line nor quotes a cell.
Delimiter = Annotated[str, Field(pattern=r"^[\t -!#-~]$")]
Sentinel = str | int | Annotated[float, Field(allow_inf_nan=True)]
FileFormat = Literal["csv", "tsv", "jsonl", "parquet", "ipc", "dsjson", "dsjson-actions", "vw", "vw-actions"]


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
    Field(description="column; or, by design, the number for all actions, or each one's: { red = 0.4, blue = 0.6 }"),
]


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


# A path, or where a store answers; no message repeats one that holds a secret.
Address = Annotated[Name, AfterValidator(without_secret)]


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


# Keys of a section of which each says alone where its table lies, and the keys that go with it.
PLACES = {
    "files": ("format", "delimiter", "encoding", "header", "columns", "storage"),
    "delta": ("version", "storage"),
    "iceberg": ("snapshot", "storage"),
    "database": ("uri_env", "query", "parameters"),
}
_ROWS = {*PLACES, "version", "snapshot", *PLACES["database"]}


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
