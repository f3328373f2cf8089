"""Parameters of the synthetic scenarios (pydantic only, so that specs validate without NumPy)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Probability = Annotated[float, Field(ge=0, le=1, strict=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Delay(_Part):
    """Delay distribution in rounds.

    ``geometric`` with support 1 has P(D = k) = p (1 - p)^(k - 1), p = 1/mean (Vernade et al. 2020); with support 0
    the survival ratio is mean / (1 + mean) (Vernade et al. 2017). ``fixed`` is always `mean`.
    """

    family: Literal["geometric", "fixed"] = "geometric"
    mean: Annotated[float, Field(ge=0, strict=False)] = 100.0
    support: Literal[0, 1] = 1

    @model_validator(mode="after")
    def _mean_fits(self) -> Delay:
        if self.family == "geometric" and self.support == 1 and self.mean < 1:
            raise ValueError("a geometric delay on {1, 2, ...} has mean >= 1; use support = 0")
        if self.family == "fixed" and self.mean != int(self.mean):
            raise ValueError("a fixed delay is a whole number of rounds")
        return self


class _Scenario(_Part):
    displays: Annotated[int, Field(ge=1)] = 100_000
    seed: Annotated[int, Field(ge=0)] = 0
    delay: Delay = Delay()

    def _check_logger(self, logger: str | list[float], n_actions: int) -> None:
        if isinstance(logger, str):
            return
        if len(logger) != n_actions:
            raise ValueError(f"logger holds {len(logger)} propensities for {n_actions} actions")
        if min(logger) <= 0 or abs(sum(logger) - 1) > 1e-9:
            raise ValueError("logger propensities must be positive and sum to 1")


class LinearScenario(_Scenario):
    """Linear contextual bandit: action vectors drawn afresh each display, reward Bernoulli(<a, theta>).

    Vectors are uniform on [0, 1]^d, scaled to unit length; theta = 1/sqrt(d) in every coordinate
    (Vernade et al. 2020, Section 6).
    """

    kind: Literal["linear"]
    actions: Annotated[int, Field(ge=2)] = 10
    dimensions: Annotated[int, Field(ge=1)] = 5
    logger: Literal["uniform", "softmax"] | list[Probability] = "uniform"
    temperature: Annotated[float | None, Field(gt=0, strict=False)] = None

    @model_validator(mode="after")
    def _logger_fits(self) -> LinearScenario:
        self._check_logger(self.logger, self.actions)
        if (self.logger == "softmax") != (self.temperature is not None):
            raise ValueError("temperature goes with logger = 'softmax', and only with it")
        return self


class BernoulliScenario(_Scenario):
    """Bandit without context: action k converts with probability ``means[k]``."""

    kind: Literal["bernoulli"]
    means: Annotated[list[Probability], Field(min_length=2)]
    logger: Literal["uniform"] | list[Probability] = "uniform"

    @model_validator(mode="after")
    def _logger_fits(self) -> BernoulliScenario:
        self._check_logger(self.logger, len(self.means))
        return self


Scenario = LinearScenario | BernoulliScenario
