"""Sections of a spec about all actions of a display: which could have been shown, and what is known of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

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


class Target(Section):
    """Columns that hold the action probabilities of a policy to be evaluated."""

    columns: Annotated[
        str | dict[str, Name],
        Field(
            description="column of each action's label, or one name for all with {action} for the label: 'pi_{action}'"
        ),
    ]

    @model_validator(mode="after")
    def _names_actions(self) -> Target:
        if isinstance(self.columns, str) and self.columns.count("{action}") != 1:
            raise ValueError("columns = '<name>' needs {action} in it once, for the label: 'pi_{action}'")
        if not self.columns:
            raise ValueError("columns names no action")
        return self


class ActionSet(Section):
    """Columns that hold the vectors of all actions at each display."""

    columns: Annotated[
        str | list[str],
        Field(
            description="one name for all actions with {action} for the label: 'affinity_{action}'; several give a "
            "vector of so many numbers, in this order"
        ),
    ]

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
