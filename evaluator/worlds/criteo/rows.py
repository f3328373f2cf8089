"""Plan of the converted rows: users, times, delays and groups (`evaluator.worlds.criteo.make` explains it)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import expit, ndtri

from evaluator.errors import SpecError
from evaluator.worlds.criteo.parameters import (
    AmountLaw,
    Campaigns,
    Category,
    DailyArrivals,
    KnotLaw,
    SizeLaw,
    TwinParameters,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SmallInts = npt.NDArray[np.int32]
DAY_S = 86_400
GRID_S = 600
GOLDEN = (5**0.5 - 1) / 2
PASSES = 200
# Columns share no category: more than any column's number of values.
APART = 100_000
# Ids of the real file reach 3.24e7; multiplication modulo a prime of that size maps indices one to one.
PRIME = 32_452_843
FACTORS = {"uid": 7_654_321, "campaign": 5_432_101, "conversion": 9_876_541, "category": 3_141_593}


class Journeys(NamedTuple):
    """J conversions on C rows; rows are sorted by time."""

    rows: Ints  # (J,) number of displays of the conversion
    conversion_time: Ints  # (J,) seconds
    identity: Ints  # (J,) index of its conversion id; some are shared
    attributed: npt.NDArray[np.bool_]  # (J,)
    cell: Ints  # (J,) context * K + campaign
    row_journey: Ints  # (C,)
    row_time: Ints  # (C,) seconds, ascending
    row_position: Ints  # (C,) 0 for the first display of the journey


def journey_sizes(twin: TwinParameters, rows: int) -> Ints:
    """Return the numbers of displays per conversion, ascending, of a twin with so many rows."""
    return sizes(twin.journey_rows, max(1, round(twin.conversions * rows / twin.rows)))


def plan_journeys(
    twin: TwinParameters, clock: ArrivalQuantiles, per_journey: Ints, cell_weights: Floats, rng: np.random.Generator
) -> Journeys:
    """Return the converted rows of a twin.

    `per_journey` is the number of rows of each conversion, shape (J,), from `journey_sizes`; `cell_weights` the
    probability that a converted row is of each context and campaign, shape (G * K,).
    """
    n_journeys, n_rows = len(per_journey), int(per_journey.sum())
    per_journey = rng.permutation(per_journey)
    start = np.cumsum(per_journey) - per_journey
    shown = clock.times(rng.random(n_rows))
    # Stratified: one draw from each of C equal parts of the law.
    delay = durations(twin.delays, (rng.permutation(n_rows) + rng.random(n_rows)) / n_rows)
    order = np.argsort(shown + delay, kind="stable")
    shown, delay = shown[order], delay[order]
    middle = start + per_journey // 2
    # Every display must stay inside the log; the longest delay is shorter than it, so the bounds never cross.
    earliest = np.maximum.reduceat(delay, start)
    latest = np.minimum.reduceat(delay, start) + clock.seconds - 1
    conversion_time = np.clip((shown + delay)[middle], earliest, latest)
    journey = np.repeat(np.arange(n_journeys), per_journey)
    shown = conversion_time[journey] - delay

    in_journey = np.lexsort((shown, journey))
    position = np.empty(n_rows, dtype=np.int64)
    position[in_journey] = np.arange(n_rows) - start[journey]
    by_time = np.argsort(shown, kind="stable")
    chance = np.where(per_journey == 1, twin.attributed_single, twin.attributed_shared)
    return Journeys(
        rows=per_journey,
        conversion_time=conversion_time,
        identity=_identities(n_journeys, twin.colliding_ids / twin.conversions, rng),
        attributed=rng.random(n_journeys) < chance,
        cell=draw(np.cumsum(cell_weights), rng.random(n_journeys)),
        row_journey=journey[by_time],
        row_time=shown[by_time],
        row_position=position[by_time],
    )


def _identities(count: int, colliding: float, rng: np.random.Generator) -> Ints:
    """Return an id per journey, `colliding * count` of which serve two journeys."""
    identity = rng.permutation(count)
    pairs = round(colliding * count)
    chosen = rng.permutation(count)[: 2 * pairs]
    identity[chosen[:pairs]] = identity[chosen[pairs:]]
    return identity


class Users(NamedTuple):
    """Users of the conversions and of all other rows."""

    of_journey: Ints  # (J,), all different
    of_others: SmallInts  # (rows - converted rows,) in random order
    total: int


def plan_users(twin: TwinParameters, rows: int, per_journey: Ints, rng: np.random.Generator) -> Users:
    """Return the users of a twin with so many rows, given the number of rows of each conversion, shape (J,)."""
    per_user = _rows_per_user(twin, rows)
    of_journey = _choose(per_user, per_journey, rng)
    per_user[of_journey] -= per_journey.astype(np.int32)
    others = np.repeat(np.arange(len(per_user), dtype=np.int32), per_user)
    rng.shuffle(others)
    return Users(of_journey, others, len(per_user))


def _rows_per_user(twin: TwinParameters, rows: int) -> SmallInts:
    """Return rows per user, descending; they add up to `rows`, and the share of users with one row is the law's."""
    per_user = sizes(twin.user_rows, round(twin.users * rows / twin.rows))[::-1].astype(np.int32)
    missing = rows - int(per_user.sum())
    # Quantiles at finitely many levels miss the mean by a little: users with several rows make up for it.
    while missing:
        able = int((per_user > (1 if missing > 0 else 2)).sum())
        chosen = np.linspace(0, able - 1, min(abs(missing), able)).astype(np.int64)
        per_user[chosen] += np.sign(missing)
        per_user = np.sort(per_user)[::-1]
        missing = rows - int(per_user.sum())
    return per_user


def _choose(per_user: SmallInts, per_journey: Ints, rng: np.random.Generator) -> Ints:
    """Return a user with enough rows for each journey, at random; the longest journeys choose first."""
    user = np.empty(len(per_journey), dtype=np.int64)
    free = np.ones(len(per_user), dtype=np.bool_)
    for size in np.unique(per_journey)[::-1]:
        journeys = np.flatnonzero(per_journey == size)
        enough = int((per_user >= size).sum())  # a prefix at first; taken users are not free
        pool = np.flatnonzero(free[:enough])
        user[journeys] = rng.choice(pool, size=len(journeys), replace=False)
        free[user[journeys]] = False
    return user


def durations(law: KnotLaw, uniform: Floats) -> Ints:
    """Return whole seconds (n,) by inversion of a `KnotLaw` at `uniform` (n,)."""
    return np.rint(np.exp(np.interp(uniform, law.cdf, np.log(law.seconds)))).astype(np.int64)


def sizes(law: SizeLaw, count: int) -> Ints:
    """Return `count` sizes, ascending: the quantiles of a `SizeLaw` at (i + 1/2) / count."""
    n = np.arange(2, law.longest + 1)
    weights = (n + law.shift) ** -law.exponent
    edges = law.single + (1 - law.single) * np.cumsum(weights / weights.sum())
    levels = (np.arange(count) + 0.5) / count
    # The last edge may round below 1.
    above = np.searchsorted(edges[:-1], levels, side="right") + 2
    return np.where(levels < law.single, 1, above)


class ArrivalQuantiles:
    """Cumulative intensity of the arrivals, as a CDF over [0, seconds)."""

    def __init__(self, arrivals: DailyArrivals) -> None:
        self.seconds = arrivals.seconds
        self._grid = np.append(np.arange(0, arrivals.seconds, GRID_S), arrivals.seconds).astype(np.float64)
        phase = 2 * np.pi * (self._grid - arrivals.trough_s) / DAY_S
        mass = self._grid - arrivals.amplitude * DAY_S / (2 * np.pi) * np.sin(phase)
        self._cdf = (mass - mass[0]) / (mass[-1] - mass[0])

    def cdf(self, seconds: npt.ArrayLike) -> Floats:
        """Return the share of the displays before each time."""
        return np.asarray(np.interp(np.asarray(seconds, dtype=np.float64), self._grid, self._cdf), dtype=np.float64)

    def times(self, uniform: Floats) -> Ints:
        """Return whole seconds by inversion."""
        drawn = np.interp(uniform, self._cdf, self._grid).astype(np.int64)
        return np.minimum(drawn, self.seconds - 1)


def category_shares(category: Category) -> Floats:
    """Return the shares (values,) of a column's ids, commonest first; the Zipf exponent is solved by bisection."""
    rank = np.arange(1, category.values + 1, dtype=np.float64)
    floor = category.even / category.values
    wanted = (category.commonest - floor) / (1 - category.even)
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 / (rank**-middle).sum() < wanted else (low, middle)
    weights = rank**-low
    return np.asarray(floor + (1 - category.even) * weights / weights.sum())


def draw(edges: Floats, uniform: Floats) -> Ints:
    """Return indices (n,) by inversion of cumulated shares `edges` (k,); rounding never leaves the range."""
    return np.searchsorted(edges[:-1], uniform, side="right")


class CampaignTable(NamedTuple):
    """Columns (K,): share of the displays, share of them clicked, share of them converted."""

    share: Floats
    click_rate: Floats
    conversion_rate: Floats


def campaign_table(spec: Campaigns, *, conversion_rate: float) -> CampaignTable:
    """Return the campaigns of a spec, whose rates are scaled so that this share of all rows converts.

    With the bundled spec they change by 0.1 %.
    """
    rank = np.arange(1, spec.ranks[-1] + 1)
    size = np.exp(np.interp(rank, spec.ranks, np.log(spec.sizes)))
    share = size / size.sum()
    listed = len(spec.conversion_rates)
    others = rank[listed:]
    converts = spec.conversion_logit_mean + spec.conversion_logit_sd * spread(others, spec.conversion_stride)
    clicks = (
        spec.click_logit_intercept
        + spec.click_logit_slope * converts
        + spec.click_logit_sd * spread(others, spec.click_stride)
    )
    rate = np.concatenate([spec.conversion_rates, expit(converts)])
    return CampaignTable(
        share=share,
        click_rate=np.concatenate([spec.click_rates, expit(clicks)]),
        conversion_rate=rate * (conversion_rate / (share @ rate)),
    )


def spread(rank: npt.NDArray[np.int64], stride: float) -> Floats:
    """Return normal quantiles at multiples of a stride modulo 1: even over the ranks, in no visible order.

    >>> bool(abs(spread(np.arange(1, 666), 0.591).mean()) < 0.02)
    True
    """
    return np.asarray(ndtri(0.001 + 0.998 * np.mod(stride * rank, 1)))


class CampaignTruth(NamedTuple):
    """What the rows are drawn from; G contexts, K campaigns.

    Context g is the pair (cat1 = g // classes, class of cat4 = g % classes).
    """

    campaigns: CampaignTable
    context_share: Floats  # (G,)
    joint: Floats  # (G, K), sums to 1
    conversion_rate: Floats  # (G, K): P(the row converts | context, campaign)

    @property
    def propensity(self) -> Floats:
        """P(campaign | context), (G, K)."""
        return np.asarray(self.joint / self.context_share[:, None])


def truth(twin: TwinParameters, *, conversion_rate: float) -> CampaignTruth:
    """Return the truth of a twin of which `conversion_rate` of the rows convert.

    SpecError where the spec's rates are no probabilities once the effects of the context are applied.
    """
    campaigns = campaign_table(twin.campaigns, conversion_rate=conversion_rate)
    one = category_shares(twin.categories[0])
    four = _class_shares(twin)
    context_share = np.outer(one, four).ravel()
    effect = _effects(twin, len(campaigns.share))
    joint = _fit_margins(effect**twin.contexts.lean, context_share, campaigns.share)
    mean = (joint * effect).sum(axis=0) / campaigns.share
    rate = campaigns.conversion_rate * effect / mean
    if rate.max() >= 1 or (campaigns.click_rate <= campaigns.conversion_rate).any():
        raise SpecError(
            "twin: conversion rates reach 1 in some context, or exceed the click rate of a campaign.",
            remedy="lower contexts.effect1, contexts.effect4 or the campaigns' conversion rates.",
        )
    return CampaignTruth(campaigns, context_share, joint, rate)


def class_bounds(twin: TwinParameters) -> list[int]:
    """Return where the classes of cat4 begin and end among its values, commonest first."""
    return [0, *np.cumsum(twin.contexts.classes).tolist()]


def _class_shares(twin: TwinParameters) -> Floats:
    return np.add.reduceat(category_shares(twin.categories[3]), class_bounds(twin)[:-1])


def _effects(twin: TwinParameters, n_campaigns: int) -> Floats:
    """Return 1 + a(cat1, campaign) + b(class of cat4, campaign), (G, K): additive, so that linear policies learn it.

    Cosines of phases that differ from campaign to campaign, so that their order changes with the context.
    """
    k = np.arange(n_campaigns)
    turns = 1 + k % 4
    cat1 = np.arange(twin.categories[0].values)[:, None] / twin.categories[0].values
    cat4 = np.arange(len(twin.contexts.classes))[:, None] / len(twin.contexts.classes)
    first = twin.contexts.effect1 * np.cos(2 * np.pi * (GOLDEN * k + turns * cat1))
    second = twin.contexts.effect4 * np.cos(2 * np.pi * (GOLDEN**2 * k + cat4))
    return np.asarray(1 + (first[:, None, :] + second[None, :, :]).reshape(-1, n_campaigns))


def _fit_margins(start: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the joint distribution nearest to `start` with these margins (iterative proportional fitting)."""
    joint = start * np.outer(rows, columns)
    for _ in range(PASSES):
        joint *= (columns / joint.sum(axis=0))[None, :]
        joint *= (rows / joint.sum(axis=1))[:, None]
    return joint


class Categories:
    """cat1 to cat9 given the context of each row."""

    def __init__(self, twin: TwinParameters) -> None:
        self._edges = [np.cumsum(category_shares(c)) for c in twin.categories]
        self.ids = [ids("category", np.arange(c.values), offset=APART * k) for k, c in enumerate(twin.categories)]
        self._bounds = np.asarray(class_bounds(twin))
        self._classes = len(twin.contexts.classes)

    def columns(self, context: Ints, rng: np.random.Generator) -> dict[str, Ints]:
        """Return ids (n,) of each column; `context` (n,) fixes cat1 and the class of cat4."""
        drawn = {}
        for k, edges in enumerate(self._edges):
            if k == 0:
                index = context // self._classes
            elif k == 3:
                index = self._within_class(edges, context % self._classes, rng)
            else:
                index = draw(edges, rng.random(len(context)))
            drawn[f"cat{k + 1}"] = self.ids[k][index]
        return drawn

    def of_class(self, number: int) -> Ints:
        """Return the ids of cat4 in a class."""
        return self.ids[3][self._bounds[number] : self._bounds[number + 1]]

    def _within_class(self, edges: npt.NDArray[np.float64], number: Ints, rng: np.random.Generator) -> Ints:
        below = np.append(0.0, edges)[self._bounds]
        uniform = below[number] + rng.random(len(number)) * (below[number + 1] - below[number])
        # Rounding at an edge must not leave the class.
        return np.clip(draw(edges, uniform), self._bounds[number], self._bounds[number + 1] - 1)


class Amounts:
    """cost and cpo, as text: '%.12g' is the real file's format, and no CSV writer's.

    Both take few values in the real file, too, where they are ratios of round numbers; so they are drawn from tables.
    """

    def __init__(self, cost: AmountLaw, cpo: AmountLaw, n_campaigns: int) -> None:
        self._cost = pl.Series("cost", _texts(_quantiles(cost, cost.levels), cost.floor))
        level = np.linspace(0.7, 1.3, cpo.levels)
        mean = cpo.median * np.exp(cpo.log_sd * spread(np.arange(1, n_campaigns + 1), GOLDEN))
        self._cpo = pl.Series("cpo", _texts((mean[:, None] * level).ravel(), cpo.floor))
        self._levels = cpo.levels

    def columns(self, campaign: Ints, rng: np.random.Generator) -> list[pl.Series]:
        """Return text columns (n,) for campaign indices (n,)."""
        n = len(campaign)
        cost = rng.integers(len(self._cost), size=n)
        cpo = campaign * self._levels + rng.integers(self._levels, size=n)
        return [self._cost.gather(cost), self._cpo.gather(cpo)]


def last_click(twin: TwinParameters, n: int, rng: np.random.Generator) -> Ints:
    """Return seconds since the user's last click (n,), -1 for none; it may be before the log begins."""
    waited = durations(twin.last_click, rng.random(n))
    return np.where(rng.random(n) < twin.last_click.none, -1, waited)


def _quantiles(money: AmountLaw, count: int) -> npt.NDArray[np.float64]:
    from scipy.special import ndtri

    return np.asarray(money.median * np.exp(money.log_sd * ndtri((np.arange(count) + 0.5) / count)))


def _texts(values: npt.NDArray[np.float64], floor: float) -> list[str]:
    return [f"{value:.12g}" for value in np.maximum(values, floor).tolist()]


def ids(kind: str, index: npt.ArrayLike, *, offset: int = 0) -> npt.NDArray[np.int64]:
    """Return the ids of the indices 0 .. PRIME - 2; `offset` tells columns of one kind apart."""
    shifted = np.asarray(index, dtype=np.int64) + 1 + offset
    return np.asarray(shifted * FACTORS[kind] % PRIME, dtype=np.int64)
