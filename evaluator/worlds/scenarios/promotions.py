"""The log of a shop's promotions, and what each way to choose them is truly worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log import EventKind, Log
from evaluator.log.eligible import pack, unpack
from evaluator.log.log_tables import merge_events, with_kind
from evaluator.log.schema import COST, ELIGIBLE, fixed_size_lists, to_numpy
from evaluator.results.json_documents import Finite, NotNegative
from evaluator.units import SECONDS
from evaluator.worlds.scenarios.problem import (
    DAY_S,
    TICK,
    arrival_times,
    come,
    event_table,
    generated_log,
    log_streams,
    scenario_laws,
    size_and_seed,
)
from evaluator.worlds.scenarios.scenario import Promotion, PromotionsScenario

UNSUBSCRIBE = "unsubscribe"
CUSTOMER, AGE = "customer", "age"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Promotions:
    """A shop's promotions: name, scenario, the folder of the files that it names, and how it deploys policies."""

    name: str
    scenario: PromotionsScenario
    folder: Path
    deployment: Mapping[str, str] = field(default_factory=dict)

    def draw(self, *, displays: int | None = None, seed: int | None = None) -> Log:
        """Return a log of the shop, as `generate_promotions`."""
        log = generate_promotions(self.scenario, displays=displays, seed=seed, name=self.name, folder=self.folder)
        return log.with_meta(deployment=dict(self.deployment)) if self.deployment else log


def generate_promotions(
    scenario: PromotionsScenario, *, displays: int | None, seed: int | None, name: str, folder: Path
) -> Log:
    """Return a complete log of a shop's promotions; arguments and errors as of `evaluator.datasets.generate`.

    Every event that ever comes is in it. With ``eligible``, ``cost``, ``context`` (one number for each kind of
    customer, 1 or 0, and the age from -1 to 1, over the square root of 2), ``expected_reward`` (K,), the revenue less
    refunds that a display of each action brings, and the columns ``customer`` and ``age``.
    """
    n, seed = size_and_seed(scenario, displays, seed, name, each=len(scenario.promotions))
    arrive, who, logger, *luck = log_streams(9, seed)
    sold_u, sale_u, back_u, refund_u, left_u, unsubscribe_u = (rng.random(n) for rng in luck)
    sale, refund, unsubscribe = scenario_laws(scenario, folder)
    seconds = arrival_times(scenario.arrivals, n, arrive)
    time = np.floor(seconds / SECONDS[TICK]).astype(np.int64)
    unit = round(SECONDS[scenario.arrivals.delay_unit] / SECONDS[TICK])

    kinds, (youngest, oldest) = list(scenario.customers), scenario.ages
    kind_u, age_u = who.random((n, 2)).T
    shares = np.array(list(scenario.customers.values()))
    customer = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], kind_u, side="right")
    age = youngest + np.floor(age_u * (oldest - youngest + 1)).astype(np.int64)
    older = 2 * (age - youngest) / (oldest - youngest) - 1

    promotions = scenario.promotions
    price, cost, refunded, unsubscribes, weight, slope = (
        np.array([getattr(promotion, column) for promotion in promotions])
        for column in ("price", "cost", "refunded", "unsubscribes", "weight", "age")
    )
    sells = np.array([[promotion.sells[kind] for promotion in promotions] for kind in kinds])
    chance = sells[customer] * (1 + slope * older[:, None])
    sets = np.column_stack([_flies(promotion, seconds / DAY_S) for promotion in promotions])
    shown = np.arange(n)
    edges = np.cumsum(weight * sets, axis=1)
    # Below the last edge whatever the rounding, hence an action of the set.
    action = (edges <= (logger.random(n) * edges[:, -1])[:, None]).sum(axis=1)

    sold = np.flatnonzero(sold_u < chance[shown, action])
    sold, sold_at = come(sold, time[sold], sale.draw(sale_u[sold]), unit)
    returns = back_u[sold] < refunded[action[sold]]
    back, back_at = come(sold[returns], sold_at[returns], refund.draw(refund_u[sold[returns]]), unit)
    left = np.flatnonzero(left_u < unsubscribes[action])
    left, left_at = come(left, time[left], unsubscribe.draw(unsubscribe_u[left]), unit)

    # A sale comes before its refund, for that is how they are put together.
    of = np.concatenate([sold, back])
    order = np.argsort(of, kind="stable")
    value = np.concatenate([price[action[sold]], -price[action[back]]])
    kept = 1 - refunded * refund.reach
    context = np.column_stack([customer[:, None] == np.arange(len(kinds)), older]) / 2**0.5
    return generated_log(
        time,
        action,
        weight[action] / edges[:, -1],
        {
            "context": fixed_size_lists(context),
            "expected_reward": fixed_size_lists(chance * (sale.reach * price * kept)),
            COST: pa.array(cost[action], pa.float64()),
            CUSTOMER: pa.array(np.array(kinds)[customer], pa.string()),
            AGE: pa.array(age, pa.int64()),
            ELIGIBLE: pack(sets),
        },
        merge_events(
            event_table(of[order], np.concatenate([sold_at, back_at])[order], value[order]),
            with_kind(event_table(left, left_at, np.ones(len(left))), UNSUBSCRIBE),
        ),
        [promotion.label for promotion in promotions],
        name=name,
        tick=TICK,
        propensity="logged",
        reward_max=float(price.max()),
        reward_min=0.0,
        counts={"displays": n, "sales": len(sold), "refunds": len(back), "unsubscribes": len(left)},
        outcomes=(EventKind(name=UNSUBSCRIBE, value_max=1.0),),
    )


def _flies(promotion: Promotion, day: Floats) -> npt.NDArray[np.bool_]:
    """Return at which of some times, in days, a promotion is eligible."""
    if not promotion.flights:
        return np.ones(len(day), np.bool_)
    stretches = [(day >= f.start) & (day < (np.inf if f.until is None else f.until)) for f in promotion.flights]
    return np.asarray(np.logical_or.reduce(stretches), np.bool_)


@dataclass(frozen=True, kw_only=True)
class TrueValues:
    """What one way to choose promotions brings a display on average.

    Parameters
    ----------
    chooses
        The way, in words.
    policy
        Spec of the policy, as `evaluate replay` takes it; None where it has no name.
    revenue
        Revenue less refunds.
    cost, profit, unsubscribe
        Cost, what is left of the revenue, and share of the displays after which a customer leaves.
    profit_by
        Profit a display for each kind of customers.
    """

    chooses: str
    policy: str | None
    revenue: Finite
    cost: NotNegative
    profit: Finite
    unsubscribe: NotNegative
    profit_by: dict[str, Finite]


def true_values(scenario: PromotionsScenario, log: Log, folder: Path) -> list[TrueValues]:
    """Return what each way to choose promotions brings a display on average, over the displays of a log drawn from it.

    Expected values given the customers, ages and eligible actions of these displays, so that a replay of the log
    differs from them by the luck of sales and of which displays it accepts, and by nothing else.
    """
    revenue = to_numpy(log.displays["expected_reward"]).astype(np.float64)
    sets = unpack(log.displays[ELIGIBLE], log.n_actions)
    cost, weight, unsubscribes = (
        np.array([getattr(promotion, column) for promotion in scenario.promotions])
        for column in ("cost", "weight", "unsubscribes")
    )
    unsubscribes = unsubscribes * scenario_laws(scenario, folder)[2].reach
    kinds = {kind: np.asarray(log.column(CUSTOMER) == kind) for kind in scenario.customers}

    def values(chooses: str, policy: str | None, chance: Floats) -> TrueValues:
        """Return the values of choosing each action with a chance, shape (n, K), that sums to 1 at each display."""
        earns = (chance * revenue).sum(axis=1)
        costs, leaves = chance @ cost, chance @ unsubscribes
        return TrueValues(
            chooses=chooses,
            policy=policy,
            revenue=float(earns.mean()),
            cost=float(costs.mean()),
            profit=float((earns - costs).mean()),
            unsubscribe=float(leaves.mean()),
            profit_by={kind: float((earns - costs)[of].mean()) for kind, of in kinds.items() if of.any()},
        )

    evenly = _shares(sets.astype(np.float64))
    best = np.where(sets, revenue - cost, -np.inf).argmax(axis=1)
    return [
        values("as the log was written", None, _shares(weight * sets)),
        values("each eligible promotion alike", "random", evenly),
        *(
            values(
                f"{label} where it is eligible, else each alike",
                f"fixed:action={k}",
                np.where(sets[:, [k]], np.arange(log.n_actions) == k, evenly),
            )
            for k, label in enumerate(log.labels)
        ),
        values("the most profitable for each customer and age", None, np.eye(log.n_actions)[best]),
    ]


def _shares(weights: Floats) -> Floats:
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares
