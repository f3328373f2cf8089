"""The truth of a scenario in time, as live runs in it are drawn from: its own laws, none of them fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evaluator.delays.laws import DelayLaw
from evaluator.log.eligible import pack, unpack
from evaluator.log.meta import REFUNDS, EventKind
from evaluator.log.schema import ELIGIBLE
from evaluator.log.vectors_of_displays import display_vectors
from evaluator.units import SECONDS
from evaluator.worlds.scenarios.problem import LinearProblem, Problem, scenario_laws
from evaluator.worlds.scenarios.promotion_log import Promotions
from evaluator.worlds.scenarios.scenario import ScenarioArrivals
from evaluator.worlds.scenarios.synthetic import TICK, draw_log, logging_chances
from evaluator.worlds.twins.arrivals import HourFactors, read_traffic
from evaluator.worlds.twins.disk_column import taken
from evaluator.worlds.twins.event_laws import ActionPools, DelayLaws, EventLaw, LogCosts, TwinMoney
from evaluator.worlds.twins.truth import LogTruth, pool_entries
from evaluator.worlds.twins.twin_sets import BLOCK, TwinSets

# Quantiles of a law at which delays are drawn.
_QUANTILES = 20_000
Floats = npt.NDArray[np.float64]


def known_truth(model: Problem | Promotions) -> LogTruth:
    """Return the truth of a scenario in time, given the times, contexts and eligible actions of its own log."""
    log = model.draw() if isinstance(model, Promotions) else draw_log(model)
    n, k = len(log), log.n_actions
    entries = pool_entries(n, k)
    traffic = model.scenario.arrivals if isinstance(model, Promotions) else model.arrivals
    assert traffic is not None
    expected = taken(log, entries, "expected_reward").astype(np.float64)
    truths, money = np.ones((len(entries), k), np.bool_), None
    if isinstance(model, Promotions):
        sale, refund, _ = scenario_laws(model.scenario, model.folder)
        price, refunded, weight = (
            np.array([getattr(promotion, name) for promotion in model.scenario.promotions], np.float64)
            for name in ("price", "refunded", "weight")
        )
        truths = unpack(log.take(entries, [ELIGIBLE])[ELIGIBLE], k)
        laws = laws_in_ticks([sale], k, traffic)
        own = ActionPools(price, np.arange(k + 1))
        rate = refunded * refund.reach
        refunds = EventLaw(
            EventKind(name=REFUNDS, reward=True, told=True), rate, ActionPools(-price, own.first),
            laws_in_ticks([refund], k, traffic), refund.source, after=laws, worth=own,
        )  # fmt: skip
        money = TwinMoney(own, refunds, LogCosts(log))
        rates, values, logger = expected / (price * (1.0 - rate)), price, weight * truths
    else:
        laws = laws_in_ticks(model.laws, k, traffic)
        rates, values = expected, np.ones(1)
        reach = np.array([law.reach for law in model.laws])
        logger = logging_chances(model, rates / np.where(reach > 0, reach, 1.0))
    vectors = display_vectors(log)
    if not isinstance(model, Promotions | LinearProblem):  # all displays are alike
        rates, logger, entries = rates[:1], logger[:1], entries[:1]
    return LogTruth(
        vectors=vectors,
        pool=None if vectors is None else taken(log, entries, vectors),
        rates=rates,
        logger=logger / logger.sum(axis=1, keepdims=True),
        values=values,
        laws=laws,
        cdf=laws.cdfs[0],
        hours=HourFactors(),
        displays=n,
        traffic=read_traffic(log, n),
        beyond=0,
        longest=None,
        actions=log.actions,
        meta=replace(log.meta, outcomes=(), fingerprint="", counts={}),
        said=("as the scenario says",),
        sets=None if truths.all() else TwinSets(pack(truths), truths, max(len(entries) // BLOCK, 1)),
        money=money,
    )


def laws_in_ticks(laws: Sequence[DelayLaw], n_actions: int, traffic: ScenarioArrivals) -> DelayLaws:
    """Return one law for all actions, or one an action, at evenly spaced quantiles, of the delays that come at all."""
    unit = round(SECONDS[traffic.delay_unit] / SECONDS[TICK])
    even = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    grid = np.unique(np.concatenate([law.draw(even * law.reach) for law in laws if law.reach > 0]))
    tau = np.stack([law(grid) / max(law.reach, 1e-300) for law in laws])
    tau[:, -1] = 1.0
    of_action = np.arange(n_actions) if len(laws) > 1 else np.zeros(n_actions, np.int64)
    return DelayLaws(grid * unit, tau, of_action, laws[0].source)
