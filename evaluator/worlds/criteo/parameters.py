"""The ``[twin]`` section of a spec: fitted parameters (pydantic only, so that specs validate without NumPy)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, le=1, strict=False)]
Rate = Annotated[float, Field(gt=0, lt=1, strict=False)]
Real = Annotated[float, Field(strict=False)]
Positive = Annotated[float, Field(gt=0, strict=False)]
Count = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class KnotLaw(_Part):
    """Distribution of a duration: its CDF at knots, log-uniform between them."""

    seconds: Annotated[list[Positive], Field(min_length=2)]
    cdf: Annotated[list[Share], Field(min_length=2)]

    @model_validator(mode="after")
    def _is_a_cdf(self) -> KnotLaw:
        if len(self.seconds) != len(self.cdf):
            raise ValueError(f"{len(self.seconds)} seconds for {len(self.cdf)} values of cdf")
        if any(a >= b for a, b in (*pairwise(self.seconds), *pairwise(self.cdf))):
            raise ValueError("seconds and cdf must increase from knot to knot")
        if (self.cdf[0], self.cdf[-1]) != (0, 1):
            raise ValueError("cdf must run from 0 to 1")
        return self


class SizeLaw(_Part):
    """P(1) = single, P(n) proportional to (n + shift)^-exponent for n = 2..longest."""

    single: Rate
    exponent: Positive
    shift: Annotated[float, Field(gt=-2, strict=False)] = 0.0
    longest: Annotated[int, Field(ge=2)]


class DailyArrivals(_Part):
    """Intensity of the displays: 1 - amplitude * cos(2 pi (t - trough_s) / 1 day)."""

    seconds: Annotated[int, Field(ge=86_400, description="whole seconds covered: 0 to seconds - 1")]
    amplitude: Annotated[float, Field(ge=0, lt=1, strict=False)]
    trough_s: Real


class Campaigns(_Part):
    """Sizes by rank and rates; campaigns past those listed follow logit-normal laws."""

    ranks: Annotated[list[Count], Field(description="ranks whose size is listed; geometric interpolation between them")]
    sizes: list[Count]
    conversion_rates: Annotated[list[Rate], Field(description="rows that convert, of the largest campaigns")]
    click_rates: Annotated[list[Rate], Field(description="of the same campaigns")]
    conversion_logit_mean: Real
    conversion_logit_sd: Positive
    conversion_stride: Annotated[Positive, Field(description="spreads the quantiles of the law over the ranks")]
    click_logit_intercept: Real
    click_logit_slope: Annotated[Real, Field(description="on the logit of the conversion rate")]
    click_logit_sd: Positive
    click_stride: Positive

    @model_validator(mode="after")
    def _lists_fit(self) -> Campaigns:
        if len(self.ranks) != len(self.sizes) or len(self.ranks) < 2 or self.ranks[0] != 1:
            raise ValueError("ranks starts at 1 and has one size each")
        if any(a >= b for a, b in pairwise(self.ranks)) or any(a < b for a, b in pairwise(self.sizes)):
            raise ValueError("ranks must increase and sizes must not")
        if not 0 < len(self.conversion_rates) == len(self.click_rates) <= self.ranks[-1]:
            raise ValueError("conversion_rates and click_rates list the same campaigns")
        return self


class Contexts(_Part):
    """What the conversion probability depends on besides the campaign.

    With x = 1 + effect1 * cos(cat1, campaign) + effect4 * cos(class of cat4, campaign), the conversion probability is
    proportional to x and the logger's preference for a campaign to x^lean, before both are fitted to their margins.
    """

    classes: Annotated[list[Count], Field(min_length=2, description="values of cat4 in each class, commonest first")]
    effect1: Share
    effect4: Share
    lean: Real

    @model_validator(mode="after")
    def _stays_positive(self) -> Contexts:
        if self.effect1 + self.effect4 >= 1:
            raise ValueError("effect1 + effect4 must stay below 1")
        return self


class Category(_Part):
    """Column of `values` ids: Zipf with the given share of the commonest, mixed with `even` of a uniform law."""

    values: Annotated[int, Field(ge=2)]
    commonest: Rate
    even: Share = 0.1

    @model_validator(mode="after")
    def _commonest_leads(self) -> Category:
        if self.commonest <= 1 / self.values:
            raise ValueError("commonest must exceed 1 / values")
        return self


class LastClick(KnotLaw):
    """Time since the user's last click, -1 with probability `none`."""

    none: Share


class AmountLaw(_Part):
    """Lognormal amounts."""

    median: Positive
    log_sd: Positive
    floor: Positive
    levels: Annotated[Count, Field(description="distinct amounts: of the file, or of each campaign")]


class TwinParameters(_Part):
    """Facts at full size, and the laws fitted to them."""

    rows: Count
    users: Count
    conversions: Annotated[Count, Field(description="distinct (conversion_id, uid)")]
    colliding_ids: Annotated[Count, Field(description="conversion ids shared by two users")]
    attributed_single: Annotated[Share, Field(description="P(attributed) of a conversion on one row")]
    attributed_shared: Annotated[Share, Field(description="P(attributed) of a conversion on several rows")]
    arrivals: DailyArrivals
    delays: KnotLaw
    journey_rows: SizeLaw
    user_rows: SizeLaw
    campaigns: Campaigns
    contexts: Contexts
    categories: Annotated[list[Category], Field(min_length=9, max_length=9, description="cat1 to cat9")]
    last_click: LastClick
    cost: AmountLaw
    cpo: Annotated[AmountLaw, Field(description="median and log_sd across campaigns")]

    @model_validator(mode="after")
    def _parts_fit(self) -> TwinParameters:
        if sum(self.contexts.classes) != self.categories[3].values:
            raise ValueError("contexts.classes must add up to the values of cat4")
        if self.delays.seconds[-1] >= self.arrivals.seconds:
            raise ValueError("the longest delay must be shorter than the log, so that every journey fits in it")
        if self.conversions >= self.users or self.users >= self.rows:
            raise ValueError("conversions < users < rows is needed: every conversion has its own user")
        return self
