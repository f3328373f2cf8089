"""Parameters of the synthetic scenarios (pydantic only, so that specs validate without NumPy)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.delays.law_names import LAWS

Probability = Annotated[float, Field(ge=0, le=1, strict=False)]
Positive = Annotated[float, Field(gt=0, strict=False)]
# Actions among which flights are told apart.
_MOST = 100_000
Name = Annotated[str, Field(min_length=1)]
Day = Annotated[float, Field(ge=0, le=10_000, strict=False)]
Amount = Annotated[float, Field(ge=0, le=1e9, strict=False)]


class ScenarioPart(BaseModel):
    """A table of a scenario: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Delay(ScenarioPart):
    """Delay distribution in rounds, or in the unit that a scenario's arrivals name.

    Laws of continuous variables are rounded up (`evaluator.delays.laws`).

    ``geometric`` with support 1 has P(D = k) = p (1 - p)^(k - 1), p = 1/mean (Vernade et al. 2020); with support 0
    the survival ratio is mean / (1 + mean) (Vernade et al. 2017). ``fixed`` is always `mean`.
    """

    family: Literal[tuple(LAWS)] = "geometric"  # type: ignore[valid-type]
    mean: Annotated[float | None, Field(ge=0, strict=False, description="100 for geometric and fixed")] = None
    support: Annotated[Literal[0, 1] | None, Field(description="smallest geometric delay, 1 by default")] = None
    low: Annotated[int | None, Field(ge=0, description="smallest uniform delay, 0 by default")] = None
    high: Annotated[int | None, Field(ge=0)] = None
    alpha: Annotated[Positive | None, Field(description="tail index: P(D > a) = factor (a + shift)^-alpha")] = None
    factor: Annotated[float | None, Field(gt=0, le=1, strict=False)] = None
    shift: Annotated[float | None, Field(ge=0, strict=False)] = None
    weights: Annotated[list[Positive] | None, Field(min_length=1)] = None
    medians: Annotated[list[Positive] | None, Field(min_length=1, description="in rounds")] = None
    sigmas: Annotated[list[Positive] | None, Field(min_length=1, description="of the logarithms")] = None
    lost: Annotated[float | None, Field(gt=0, lt=1, strict=False, description="share that does not come at once")] = (
        None
    )
    retry: Annotated[int | None, Field(ge=1, description="delay of the lost share, which never comes without it")] = (
        None
    )
    file: Annotated[str | None, Field(min_length=1, description="csv or parquet, relative to the spec")] = None
    delay: Annotated[str | None, Field(min_length=1, description="its column of delays, 'delay' by default")] = None
    cdf: Annotated[str | None, Field(min_length=1, description="its column of P(D <= delay), 'cdf' by default")] = None
    density: Annotated[
        str | None, Field(min_length=1, description="its column of weights of the delays, instead of cdf")
    ] = None
    scale: Annotated[Positive | None, Field(description="rounds in a unit of the file's delays, 1 by default")] = None

    @model_validator(mode="after")
    def _keys_fit_the_family(self) -> Delay:
        law = LAWS[self.family]
        needed = {key.name for key in law.keys if key.needed}
        for name in type(self).model_fields:
            given = getattr(self, name) is not None
            if name != "family" and given and name not in law.takes:
                raise ValueError(f"{self.family} delays take {', '.join(law.takes)}, not {name}")
            if name in needed and not given:
                raise ValueError(f"{self.family} delays need {name}")
        self._check_numbers(needed)
        return self

    def _check_numbers(self, needed: set[str]) -> None:
        if self.family == "geometric" and self.support != 0 and self.mean is not None and self.mean < 1:
            raise ValueError("a geometric delay on {1, 2, ...} has mean >= 1; use support = 0")
        if self.family == "fixed" and self.mean is not None and self.mean != int(self.mean):
            raise ValueError("a fixed delay is a whole number of rounds")
        if "mean" in needed and self.mean == 0:
            raise ValueError(f"{self.family} delays have a mean above 0")
        if self.high is not None and (self.low or 0) > self.high:
            raise ValueError(f"uniform delays from {self.low} to {self.high}: low must not exceed high")
        if self.weights is not None and not len(self.weights) == len(self.medians or []) == len(self.sigmas or []):
            raise ValueError("weights, medians and sigmas must be of one length")
        if self.weights is not None and abs(sum(self.weights) - 1) > 1e-6:
            raise ValueError("weights must sum to 1")
        if self.cdf is not None and self.density is not None:
            raise ValueError("name the column of the cdf or of the density, not both")


class ScenarioArrivals(ScenarioPart):
    """Traffic in time: displays come at random at a rate that follows the hour, grows and jumps; delays are durations.

    The rate t seconds after the start is displays_per_day growth^(t / 1 day) (1 - amplitude cos(2 pi (t - trough_s) /
    1 day)), from `step_at_s` on times `step`.
    """

    displays_per_day: Annotated[Positive, Field(description="at the start, averaged over the hours")]
    amplitude: Annotated[float, Field(ge=0, lt=1, strict=False, description="of the daily rhythm")] = 0.0
    trough_s: Annotated[float, Field(ge=0, lt=86_400, strict=False, description="when the fewest come")] = 14_400.0
    growth: Annotated[Positive, Field(description="factor by which the traffic grows each day")] = 1.0
    step: Annotated[Positive | None, Field(description="factor by which it jumps once")] = None
    step_at_s: Annotated[float | None, Field(ge=0, strict=False, description="when it jumps")] = None
    delay_unit: Annotated[Literal["s", "min", "h", "d"], Field(description="unit of the laws of delay")] = "s"

    @model_validator(mode="after")
    def _step_is_whole(self) -> ScenarioArrivals:
        if (self.step is None) != (self.step_at_s is None):
            raise ValueError("step and step_at_s go together")
        return self


class ScenarioFlight(ScenarioPart):
    """Rounds between which an action is eligible; an action with several flights has several, one without always is."""

    action: Annotated[int, Field(ge=0, description="its index")]
    start: Annotated[int, Field(alias="from", ge=0, description="rounds that are over when it arrives")] = 0
    until: Annotated[int | None, Field(ge=1, description="rounds that are over when it retires; never if absent")] = (
        None
    )


class _Scenario(ScenarioPart):
    displays: Annotated[int, Field(ge=1)] = 100_000
    seed: Annotated[int, Field(ge=0)] = 0
    delay: Delay = Delay()
    horizon: Annotated[int | None, Field(ge=1, description="rounds of a simulation that names none")] = None
    window: Annotated[int | None, Field(ge=1, description="cut-off in rounds of a simulation that names none")] = None
    zeros: Annotated[
        Literal["window", "told"],
        Field(description="when a simulation's qpm-d learns of a zero: at the window's end, or told after a delay"),
    ] = "window"
    arrivals: Annotated[ScenarioArrivals | None, Field(description="of the log; without, it counts rounds")] = None
    flights: Annotated[
        list[ScenarioFlight] | None,
        Field(min_length=1, description="of actions that come and go; without, all are always eligible"),
    ] = None

    @model_validator(mode="after")
    def _rounds_or_time(self) -> Self:
        if self.arrivals is not None and (self.horizon is not None or self.window is not None):
            raise ValueError("horizon and window are of a simulation, which counts rounds: not with arrivals")
        if self.arrivals is not None and self.flights is not None:
            raise ValueError("flights begin and end at rounds: not with arrivals, which are in time")
        return self

    @property
    def all_flights(self) -> tuple[Flight, ...]:
        """Flights of all actions; none where all are always eligible."""
        return tuple(Flight(f.action, f.start, f.until) for f in self.flights or ())

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
        if self.flights:
            flight_parts(self.all_flights, self.actions)
        if (self.logger == "softmax") != (self.temperature is not None):
            raise ValueError("temperature goes with logger = 'softmax', and only with it")
        return self


class BernoulliScenario(_Scenario):
    """Bandit without context: action k converts with probability ``means[k]``, after a delay of its own if need be."""

    kind: Literal["bernoulli"]
    means: Annotated[list[Probability], Field(min_length=2)]
    logger: Literal["uniform"] | list[Probability] = "uniform"
    delays: Annotated[list[Delay] | None, Field(description="one an action, instead of delay")] = None

    @model_validator(mode="after")
    def _parts_fit(self) -> BernoulliScenario:
        self._check_logger(self.logger, len(self.means))
        flight_parts(self.all_flights, len(self.means))
        if self.delays is not None:
            if "delay" in self.model_fields_set:
                raise ValueError("give delay, common to all actions, or delays, one an action: not both")
            if len(self.delays) != len(self.means):
                raise ValueError(f"{len(self.delays)} delays for {len(self.means)} actions")
        return self


Scenario = LinearScenario | BernoulliScenario


class Flight(NamedTuple):
    """A stretch of rounds in which an action is eligible; an action without any always is."""

    action: int
    start: int = 0  # number of rounds that are over when it arrives: 0 has it there from the first
    until: int | None = None  # number of rounds that are over when it retires; None for never


class Part(NamedTuple):
    """Rounds with the same eligible actions: from after `start` rounds on, until the next part; actions increasing."""

    start: int
    eligible: tuple[int, ...]


def flight_parts(flights: Sequence[Flight], n_actions: int) -> list[Part]:
    """Return the parts that flights divide the rounds into, the first from the first round on, the last without end.

    ValueError where a flight is of no action or ends before it begins, or no action is left; its message says which.

    >>> [tuple(part) for part in flight_parts([Flight(1, 10, 20)], 2)]
    [(0, (0,)), (10, (0, 1)), (20, (0,))]
    """
    if flights and n_actions > _MOST:
        raise ValueError(f"flights among {n_actions:,} actions: {_MOST:,} at most")
    changes: dict[int, list[tuple[int, int]]] = {0: []}
    for action, start, until in flights:
        if not 0 <= action < n_actions:
            raise ValueError(f"a flight of action {action}: actions go from 0 to {n_actions - 1}")
        if start < 0 or (until is not None and until <= start):
            raise ValueError(f"a flight of action {action} from {start} until {until}: it ends before it begins")
        changes.setdefault(start, []).append((action, 1))
        if until is not None:
            changes.setdefault(until, []).append((action, -1))
    flying = {flight.action for flight in flights}
    # How many flights each action is on: those of one action may overlap.
    on = [0 if action in flying else 1 for action in range(n_actions)]
    parts: list[Part] = []
    for start in sorted(changes):
        for action, more in changes[start]:
            on[action] += more
        eligible = tuple(action for action in range(n_actions) if on[action] > 0)
        if not eligible:
            raise ValueError(f"no action is eligible after {start:,} rounds")
        if not parts or parts[-1].eligible != eligible:
            parts.append(Part(start, eligible))
    return parts


class PromotionFlight(ScenarioPart):
    """A stretch of time in which a promotion is eligible."""

    start: Annotated[Day, Field(alias="from", description="days since the log begins")] = 0.0
    until: Annotated[Day | None, Field(description="the same, itself not included; for good when absent")] = None


class Promotion(ScenarioPart):
    """An action of the shop: the product that it sells, the customers who see it, and its side effects."""

    label: Name
    flights: Annotated[
        tuple[PromotionFlight, ...],
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
