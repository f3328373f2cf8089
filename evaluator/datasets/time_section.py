"""``[time]`` of a spec: the unit of the times, how they are written, and of which zone they are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from evaluator.datasets.cells import Kind
from evaluator.datasets.spec_sections import Name, Section
from evaluator.datasets.zones import why_no_format, why_no_zone

TimeUnit = Literal["ns", "us", "ms", "s", "min", "h", "d", "round", "datetime"]


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
