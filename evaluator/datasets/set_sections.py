"""Sections of a spec that say which actions could have been shown at a display."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluator.datasets.spec_sections import Name, Section, Table

Instant = Annotated[int, Field(ge=-(2**62), le=2**62)] | str


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

    action: Annotated[Name, Field(description="column that holds the label of the action")]
    start: Annotated[Name | None, Field(alias="from", description="its first time; ever where the cell is empty")] = (
        None
    )
    until: Annotated[
        Name | None, Field(description="first time at which it no longer was; for good where the cell is empty")
    ] = None

    @property
    def times(self) -> list[str]:
        """Columns that hold times."""
        return [column for column in (self.start, self.until) if column is not None]


class Candidates(Table):
    """A table of the actions that could have been shown, a row for each of a display."""

    display: Annotated[Name, Field(description="column that holds the id of the display")]
    action: Annotated[Name, Field(description="column that holds the label of the action")]
    propensity: Annotated[
        Name | None, Field(description="probability with which it would be shown; 1 over a display's candidates")
    ] = None
    features: Annotated[
        list[Name], Field(description="numbers about the action at that display: its vector, in this order")
    ] = []
