"""The ``[scenario]`` of a shop's promotions (pydantic only, so that specs validate without NumPy)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from evaluator.worlds.scenarios.scenario import Delay, Positive, Probability, ScenarioArrivals, ScenarioPart

Name = Annotated[str, Field(min_length=1)]
Day = Annotated[float, Field(ge=0, le=10_000, strict=False)]
Amount = Annotated[float, Field(ge=0, le=1e9, strict=False)]


class Flight(ScenarioPart):
    """A stretch of time in which a promotion is eligible."""

    start: Annotated[Day, Field(alias="from", description="days since the log begins")] = 0.0
    until: Annotated[Day | None, Field(description="the same, itself not included; for good when absent")] = None


class Promotion(ScenarioPart):
    """An action of the shop: the product that it sells, the customers who see it, and its side effects."""

    label: Name
    flights: Annotated[
        tuple[Flight, ...],
        Field(strict=False, description="when it is eligible, in order; always when absent: one promotion at least"),
    ] = ()
    weight: Annotated[
        float, Field(ge=0.01, le=100, strict=False, description="the logger shows it in proportion, of the eligible")
    ] = 1.0
    price: Annotated[float, Field(gt=0, le=1e9, strict=False, description="value of a sale, and of its refund")]
    cost: Annotated[Amount, Field(description="of showing it once")] = 0.0
    sells: Annotated[
        dict[Name, Probability], Field(description="by kind of customer: chance of a sale, averaged over the ages")
    ]
    age: Annotated[
        float,
        Field(ge=-1, le=1, strict=False, description="that chance is 1 + age times as large for the oldest customer"),
    ] = 0.0
    refunded: Annotated[Probability, Field(description="share of its sales that come back")] = 0.0
    unsubscribes: Annotated[Probability, Field(description="chance that a display brings an unsubscribe")] = 0.0

    @model_validator(mode="after")
    def _parts_fit(self) -> Promotion:
        ends = [0.0]
        for flight in self.flights:
            ends += [flight.start, float("inf") if flight.until is None else flight.until]
        if any(a > b for a, b in pairwise(ends)) or any(f.until == f.start for f in self.flights):
            raise ValueError("flights come in order, and each ends after it begins")
        if max(self.sells.values(), default=0.0) * (1 + abs(self.age)) > 1:
            raise ValueError("a chance of a sale exceeds 1: sells times 1 + age must not")
        return self


class PromotionsScenario(ScenarioPart):
    """Log of a shop: eligible actions, costs, sales that may be refunded, unsubscribes, two columns to group by."""

    kind: Literal["promotions"]
    displays: Annotated[int, Field(ge=1)] = 100_000
    seed: Annotated[int, Field(ge=0)] = 0
    arrivals: ScenarioArrivals
    customers: Annotated[
        dict[Name, Positive], Field(min_length=1, description="kinds of customers, in these proportions")
    ]
    ages: Annotated[tuple[int, int], Field(strict=False, description="youngest and oldest; all are as common")] = (
        18,
        77,
    )
    sale: Annotated[Delay, Field(description="delay of sales after their displays")] = Delay()
    refund: Annotated[Delay, Field(description="delay of refunds after their sales")] = Delay()
    unsubscribe: Annotated[Delay, Field(description="delay of unsubscribes after their displays")] = Delay()
    promotions: Annotated[list[Promotion], Field(min_length=2, max_length=1000)]

    @model_validator(mode="after")
    def _parts_fit(self) -> PromotionsScenario:
        if not 0 <= self.ages[0] < self.ages[1] <= 200:
            raise ValueError("ages go from the youngest to an older, within 0 to 200")
        if all(promotion.flights for promotion in self.promotions):
            raise ValueError("one promotion at least is always eligible, without flights: no set is empty")
        labels = [promotion.label for promotion in self.promotions]
        if len(set(labels)) < len(labels):
            raise ValueError("two promotions have the same label")
        for promotion in self.promotions:
            if set(promotion.sells) != set(self.customers):
                raise ValueError(f"sells of {promotion.label!r} must name the customers: {', '.join(self.customers)}")
        return self
