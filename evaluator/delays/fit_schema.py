"""What a file of a fitted delay law must hold."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evaluator.delays.families import FAMILIES
from evaluator.units import ROUND, parse_duration

SCHEMA = "delay-fit/1"
Number = Annotated[float, Field(ge=-1e300, le=1e300)]
Delay = Annotated[float, Field(ge=0, le=2**53)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Part(BaseModel):
    # Null stands for what JSON has no word for.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class LawFile(_Part):
    """A fitted law as JSON: the fields of `DelayFit`."""

    family: Literal[tuple(FAMILIES)]  # type: ignore[valid-type]
    parameters: dict[str, Number]
    standard_errors: dict[str, Number | None]
    covariance: list[list[Number | None]]
    log_likelihood: Number | None
    aic: Number | None
    bic: Number | None
    free_parameters: Count
    conversions: Count
    rounding: Literal["floor", "none"]
    longest: Delay | None
    converged: bool
    notes: list[str] = []
    width: Annotated[Delay, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _shapes_fit(self) -> LawFile:
        n = len(self.parameters)
        if list(self.standard_errors) != list(self.parameters) or [n] * n != [len(row) for row in self.covariance]:
            raise ValueError("standard errors and covariance are of other parameters")
        return self


class StepsFile(_Part):
    """A nonparametric fit as JSON."""

    delays: list[Delay]
    cdf: list[Annotated[float, Field(ge=0, le=1)]]

    @model_validator(mode="after")
    def _shapes_fit(self) -> StepsFile:
        if len(self.delays) != len(self.cdf) or not self.delays:
            raise ValueError(f"{len(self.delays)} delays and {len(self.cdf)} values of the cdf")
        return self


class FitFile(_Part):
    """What a file of `save_fit` holds."""

    schema_: Annotated[str, Field(alias="schema")]
    tick: str
    longest: Delay | None
    law: LawFile | None
    steps: StepsFile | None
    source: str

    @field_validator("tick")
    @classmethod
    def _is_a_unit(cls, tick: str) -> str:
        if tick != ROUND and not parse_duration(tick) > 0:
            raise ValueError("a tick takes time")
        return tick
