"""A policy that plays live in a truth that twins are drawn from: what its rounds are drawn from, and what they earn.

And what a replay claims where delays depend on the action: the share of a reward that counts, and when it is revealed.
A `Claim` is of one delay law, and `ClaimsByLaw` hold one for each law of the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.pushes import LiveClock, PushTimes
from evaluator.errors import ParameterError
from evaluator.log.eligible import to_codes
from evaluator.log.schema import to_numpy
from evaluator.log.vectors_of_displays import target_vectors
from evaluator.options.deployment import Deployment, parse_kept
from evaluator.options.shared import PropensityMode
from evaluator.policies.base import Setting
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from evaluator.replays.rounds.clock import ReplayClock, ReplayWindow
from evaluator.replays.rounds.stream import EligibleActions, eligible_actions, read_only_sets
from evaluator.replays.schedule import pushes_in_rounds, pushes_in_time, rounds_from
from evaluator.streams import Stream, random_stream
from evaluator.units import NO_WINDOW
from evaluator.worlds.event_laws import EventLaw
from evaluator.worlds.live_parts import LiveEvents, LiveExploration, LiveMoney, LiveRounds, LiveWorld, MoneyWeights
from evaluator.worlds.live_rounds import play_live
from evaluator.worlds.logger import TwinSets
from evaluator.worlds.truth import LogTruth
from evaluator.worlds.twin_log import draw_twin

Floats = npt.NDArray[np.float64]
# Pairs of a display and a delay that a mean is taken of, and the step of the lattice.
_PAIRS, _GOLDEN = 262_144, (5**0.5 - 1) / 2


class LiveSpan(NamedTuple):
    """How long a run on a calendar is, and which displays of a twin its rounds are among: the first and the last."""

    rounds: int
    first: int
    last: int


class LivePolicy:
    """A policy in a truth; `claim` says what counts of its rounds.

    Its runs have `lengths` rounds, and policies are compared at `common` ones. It may hear of delays of `reach` rounds,
    and its rounds are among the displays of a twin from the first to the last of `arrivals`. It learns and
    explores as its `deployment` says, on the `clock` of its replays.
    """

    def __init__(
        self,
        truth: LogTruth,
        policy: Any,
        claim: ClaimsByLaw,
        lengths: Sequence[int],
        common: int,
        *,
        reach: int,
        arrivals: tuple[float, float],
        told_costs: bool,
        deployment: Deployment,
        clock: ReplayClock,
    ) -> None:
        self._deployment, self._clock = deployment, clock
        for name in deployment.times if truth.moving else ():
            raise ParameterError(
                f"{deployment.named(name)}: the eligible actions of {truth.name!r} follow a calendar, over which its "
                "live runs are spread, and a time has no place there.",
                remedy=f"count rounds, such as `{name}=500`.",
            )
        self._truth, self._policy, self._claim, self._common = truth, policy, claim, common
        self._weights, self._of_money = claimed_weights(claim, lengths, common), money_weights(claim, lengths, common)
        told_costs = told_costs and claim.money is not None and claim.money.costs
        self._money = live_money(truth, claim, told_costs=told_costs)
        self._world = live_world(truth, policy, claim, self.rounds, reach=reach, arrivals=arrivals)
        self._eligible: EligibleActions | None = None
        if truth.sets is not None:
            self._world, self._eligible = eligible_in_world(self._world, truth.sets)

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return int(self._weights.shape[2])

    def value(self, run: int, setting: Setting, span: LiveSpan, seed: int) -> Floats:
        """Return the value of a run after the rounds of all runs, and after the common ones, shape (2,).

        Number and seed fix the streams of the run. Where eligible actions move with time, `span` says how long it is
        and which displays it is among.
        """
        found = self._value(run, setting, span, seed)
        if self._truth.traffic is not None:
            self._truth.traffic.times.forget()
        return found

    def _value(self, run: int, setting: Setting, span: LiveSpan, seed: int) -> Floats:
        truth, claim, policy, world = self._truth, self._claim, self._policy, self._world
        weights, of_money = self._weights, self._of_money
        if isinstance(policy, LoggingPolicy) and not truth.moving:  # its rounds are alike: known without playing
            return _known(truth, claim, weights, of_money)
        own = random_stream(Stream.AUDIT_POLICY, seed, run)
        luck = random_stream(Stream.AUDIT_WORLD, seed, run)
        horizon = weights.shape[2]
        pushes, explores, begins = self._deployed(luck, horizon)
        waits = (0 if pushes is None else pushes.waits(horizon)) + (0 if explores is None else explores.rounds)
        setting = replace(setting, waits=max(setting.waits, waits))
        rounds = None
        if truth.sets is not None and self._eligible is not None:
            if truth.moving:  # a run of its own length, which is a share of the calendar
                common = min(self._common, span.rounds)
                weights = claimed_weights(claim, [span.rounds], common)
                of_money = money_weights(claim, [span.rounds], common)
            rounds = draw_rounds(luck, weights.shape[2], truth.sets, world, displays=truth.displays, span=span)
            if begins >= 0:
                at_time = begins + np.asarray(np.arange(len(rounds.at_time)) / world.share, np.int64)
                rounds = rounds._replace(at_time=np.minimum(at_time, len(world.times) - 1))
            if isinstance(policy, LoggingPolicy):
                return logger_value(truth, claim, rounds, world, weights, of_money)
        horizon, money = weights.shape[2], self._money
        if money is not None:
            # A row a round: runs of different lengths begin alike.
            numbers = 3 * len(money.events.longest)
            money = money._replace(luck=random_stream(Stream.AUDIT_LIVE_MONEY, seed, run).random((horizon, numbers)))
        live = play_live(
            policy, setting, world, horizon,
            own=own, luck=luck, rounds=rounds, eligible=self._eligible, money=money, weights=weights, of_money=of_money,
            pushes=pushes, begins=begins, explores=explores,
        )  # fmt: skip
        return live * truth.mean_value

    def _deployed(
        self, luck: np.random.Generator, horizon: int
    ) -> tuple[PushTimes | None, LiveExploration | None, int]:
        """Return when the policy learns, the first rounds that it explores, and the arrival at which its run begins.

        None for at each event, and for none; -1 where the run may begin at any.
        """
        deployment, clock, live, begins = self._deployment, self._clock, None, -1
        schedule, exploration = deployment.schedule, deployment.exploration
        if deployment.times:
            times, share = self._world.times, self._world.share
            begins = int(luck.random() * (len(times) - self._truth.displays + 1))
            at = np.array(times[begins : begins + int(horizon / share) + 2])
            live = LiveClock(np.arange(len(at)), at, 0.0, share, self._world.rate)
        explores = None
        if exploration is not None:
            chances = np.ascontiguousarray(self._truth.logger) if exploration.as_logger else None
            explores = LiveExploration(rounds_from(exploration.span, live, clock), chances)
        if schedule is None:
            return None, explores, begins
        if live is None or not schedule.in_time:
            return pushes_in_rounds(schedule, clock, horizon), explores, begins
        return pushes_in_time(deployment, live, clock, self._truth.meta.timezone, horizon), explores, begins


def live_money(truth: LogTruth, claim: ClaimsByLaw, *, told_costs: bool) -> LiveMoney | None:
    """Return refunds and costs of the live rounds of a policy, without luck; None where twins have neither."""
    money = truth.money
    if money is None or claim.money is None:
        return None
    in_time, refunds, k = truth.traffic is not None, money.refunds, len(money.sold.first) - 1
    # A duration cuts the delays themselves; one that counts displays is cut by the window in rounds.
    longest = NO_WINDOW if claim.longest is None or not in_time else claim.longest
    costs = money.costs if told_costs else None
    return LiveMoney(
        luck=np.zeros((0, 3)),
        kept=money.sold.flat,
        kept_first=money.sold.first,
        back=np.zeros(0) if refunds is None or refunds.worth is None else refunds.worth.flat,
        share=claim.share,
        costs=np.zeros(0) if costs is None else costs.flat,
        costs_first=np.zeros(0, np.int64) if costs is None else costs.first,
        events=_live_events([refunds, *(one for one in money.outcomes if one.kind.told)], k, longest, claim, in_time),
    )


def _live_events(
    laws: Sequence[EventLaw | None], k: int, longest: int, claim: ClaimsByLaw, in_time: bool
) -> LiveEvents:
    """Return the events of K actions that policies are told of, up to a delay in ticks of the twins; None for none."""
    grid = np.unique(np.concatenate([np.zeros(1, np.int64), *(one.laws.grid for one in laws if one is not None)]))
    rate, law, first, ends = np.zeros((len(laws), k)), np.zeros((len(laws), k), np.int64), [], []
    rows, flat = [np.zeros((0, len(grid)))], [np.zeros(0)]
    for e, one in enumerate(laws):
        if one is None:
            first.append(np.zeros(k + 1, np.int64))
            ends.append(longest)
            continue
        rate[e] = one.rate
        law[e] = one.laws.of_action + sum(map(len, rows))
        rows.append(one.laws.at(grid))
        first.append(one.values.first + sum(map(len, flat)))
        flat.append(one.values.flat)
        window = one.kind.attribution_window
        ends.append(longest if window is None else min(longest, window if in_time else round(window * claim.share)))
    return LiveEvents(
        rate=rate,
        tau=np.ascontiguousarray(np.concatenate(rows)),
        delays=grid,
        law=law,
        value=np.concatenate(flat),
        first=np.array(first, np.int64),
        longest=np.array(ends, np.int64),
    )


def money_weights(claim: ClaimsByLaw, rounds: Sequence[int], common: int) -> MoneyWeights | None:
    """Return what counts of refunds and costs, as `claimed_weights`; None where twins have neither."""
    money = claim.money
    if money is None:
        return None
    refunds = claimed_weights(money.refunds, rounds, common)
    return MoneyWeights(money.sold, money.owed, money.cost, refunds, money.refunds.law, display_weights(rounds, common))


def _known(truth: LogTruth, claim: ClaimsByLaw, weights: Floats, money: MoneyWeights | None) -> Floats:
    """Return the value of the logging policy, shape (2,), whose rounds are alike."""
    of_sales = weights.sum(axis=2)[:, claim.law]
    if money is None:
        return np.asarray(of_sales @ truth.logging_values)
    of_refunds = money.refunds.sum(axis=2)[:, money.refund_law]
    net = of_sales * money.sold - of_refunds * money.owed
    cost = float(truth.logger.mean(axis=0) @ money.cost) * truth.mean_value
    return np.asarray(net @ truth.logging_values - money.displays.sum(axis=1) * cost)


def claimed_weights(claim: ClaimsByLaw, rounds: Sequence[int], common: int) -> Floats:
    """Return the weights of live rounds by delay law, shape (2, R, T).

    First those in the mean value after these numbers of rounds, then after the common one.
    """
    out = np.zeros((2, len(claim.of_laws), max(*rounds, common)))
    for t in rounds:
        out[0, :, :t] += claim.weights(t) / len(rounds)
    out[1, :, :common] = claim.weights(common)
    return out


def display_weights(rounds: Sequence[int], common: int) -> Floats:
    """Return the weights of live rounds in which what counts is known at once, shape (2, T): as `claimed_weights`."""
    out = np.zeros((2, max(*rounds, common)))
    for t in rounds:
        out[0, :t] += 1.0 / (max(t, 1) * len(rounds))
    out[1, :common] = 1.0 / max(common, 1)
    return out


def live_world(
    truth: LogTruth, policy: Any, claim: ClaimsByLaw, rounds: int, *, reach: int, arrivals: tuple[float, float]
) -> LiveWorld:
    """Return what live rounds of a policy are drawn from; parameters are those of `LivePolicy`."""
    if not policy.contextual:
        vectors = np.zeros((1, 1, 0))
    elif policy.reads in truth.targets:
        vectors = target_vectors(truth.targets[policy.reads], truth.actions["label"].combine_chunks())
    elif truth.pool is None:
        vectors = to_numpy(truth.actions["features"]).astype(np.float64)[None]
    else:
        vectors = truth.pool.astype(np.float64)
        vectors = vectors[:, None, :] if vectors.ndim == 2 else vectors
    vectors = np.ascontiguousarray(vectors)
    if truth.traffic is None:
        tau = claim.tables(rounds)
        money = truth.money
        if money is None or (money.refunds is None and not money.outcomes):  # which come later than the last sale
            reach = tau.shape[1] - 1
        return LiveWorld(vectors, truth.rates, truth.values, tau, reach, law=truth.laws.of_action)
    # A duration cuts the delays themselves, a window in rounds what they come to.
    cut = NO_WINDOW if claim.longest is None else claim.longest
    steps = int(np.searchsorted(truth.laws.grid, cut, side="right"))
    times = truth.traffic.times.mapped()
    # A twin is one stretch of the traffic.
    first, last = round(arrivals[0]), len(times) - truth.displays + round(arrivals[1]) + 1
    return LiveWorld(
        vectors=vectors,
        rates=truth.rates,
        values=truth.values,
        tau=np.ascontiguousarray(truth.laws.tau[:, :steps]),
        law=truth.laws.of_action,
        by_hour=np.zeros(0) if truth.hours.by_hour is None else truth.hours.by_hour,
        hour=truth.hours.ticks,
        reach=reach,
        delays=np.array(truth.laws.grid[:steps]),
        times=times,
        first=first,
        last=max(last, first + 1),
        rate=truth.traffic.rate,
        share=claim.share,
    )


def eligible_in_world(world: LiveWorld, sets: TwinSets) -> tuple[LiveWorld, EligibleActions]:
    """Return the world with its vectors as rows, shape (1, rows, d), and the eligible actions of its entries."""
    playable = sets.truths.sum(axis=0) > 0
    vectors, eligible = eligible_actions(to_codes(sets.column), playable, world.vectors, None)
    return world._replace(vectors=np.ascontiguousarray(vectors)), read_only_sets(eligible)


def draw_rounds(
    rng: np.random.Generator, rounds: int, sets: TwinSets, world: LiveWorld, *, displays: int, span: LiveSpan
) -> LiveRounds:
    """Return the rounds of a live run, among entries with these sets.

    A twin has so many `displays`. Where sets move with time, the run is spread over the displays of `span`, which shows
    `rounds` of them at least.
    """
    begins = rng.random()
    # A row a round: runs of different lengths begin alike.
    uniform = rng.random((rounds, 4))
    in_time = len(world.times) > 0
    at_time = np.zeros(rounds, np.int64)
    if not sets.moving:
        if in_time:
            width = world.last - world.first
            at_time = world.first + (int(begins * width) + np.arange(1, rounds + 1)) % width
        share = np.zeros(rounds)
        return LiveRounds(sets.entries(share, uniform[:, 3]), at_time, uniform[:, :3], share)
    shown = np.sort(rng.choice(span.last - span.first + 1, span.rounds, replace=False))[:rounds] + span.first
    if in_time:
        at_time = int(begins * (len(world.times) - displays + 1)) + shown
    share = shown / displays
    return LiveRounds(sets.entries(share, uniform[:, 3]), at_time, uniform[:, :3], share)


def logger_value(
    truth: LogTruth,
    claim: ClaimsByLaw,
    rounds: LiveRounds,
    world: LiveWorld,
    weights: Floats,
    money: MoneyWeights | None,
) -> Floats:
    """Return the weighted rewards of a run of the logging policy on a calendar, shape (C,), known without playing.

    `weights` are those of what is claimed, by law and round, shape (C, R, T).
    """
    assert truth.sets is not None
    sets, block = truth.sets, truth.sets.block(rounds.share)

    factor = truth.hours.factor(world.times[rounds.at_time])[:, None] if len(world.by_hour) else 1.0

    def earned(of_law: Floats) -> Floats:
        expected = sets.by_block((truth.rates * truth.logger) @ of_law)[block] * truth.mean_value
        return np.asarray(expected * factor)

    of_law = np.eye(len(claim.of_laws))[claim.law]
    if money is None:
        found: Floats = np.einsum("crt,tr->c", weights, earned(of_law))
        return found
    of_refunds = np.eye(money.refunds.shape[1])[money.refund_law]
    sold = np.einsum("crt,tr->c", weights, earned(of_law * money.sold[:, None]))
    owed = np.einsum("crt,tr->c", money.refunds, earned(of_refunds * money.owed[:, None]))
    cost = sets.by_block(truth.logger @ money.cost[:, None])[block, 0] * truth.mean_value
    return np.asarray(sold - owed - money.displays @ cost)


def play_in(
    truth: LogTruth,
    policy: Any,
    rounds: int,
    seed: int,
    *,
    runs: int,
    window: str | int | None,
    delays: str,
    deployment: ReplayOptions,
) -> tuple[Floats, float]:
    """Return the mean expected reward per round of live runs, and that of the best fixed action or order.

    `window` and `delays` are options of a replay, and `deployment` has others, of how the policy is deployed. It raises
    ParameterError where options do not fit, or where eligible actions follow a calendar that is shorter than the run.
    """
    kept = parse_kept(truth.meta.deployment.get("keep_for"))
    if kept is not None:
        raise ParameterError(
            f"`keep_for='{kept.text}'`, as log {truth.name!r} says of its deployment: no {kept.column} comes back in a "
            "world that is fitted to a log.",
            remedy="fit it to a log that does not say so: `log.with_meta(deployment={})`.",
        )
    if truth.moving and rounds > truth.displays:
        raise ParameterError(
            f"{rounds:,} rounds, and the eligible actions of {truth.name!r} follow a calendar of {truth.displays:,} "
            "displays.",
            remedy=f"take {truth.displays:,} rounds at most.",
        )
    # All that ever comes counts: the log of this twin is followed to its end.
    followed = truth if truth.beyond is not None else replace(truth, beyond=0)
    twin = draw_twin(followed, seed=seed, twin=0, vectors=policy.contextual)
    propensity: PropensityMode | None = "uniform" if truth.meta.propensity == "absent" else None
    options = replace(deployment, window=truth.window or window, delays=delays, propensity=propensity)
    plan = plan_replay(twin, policy, options)
    claim, setting = claims_of(followed, plan), replace(plan.setting, horizon=rounds)
    live = LivePolicy(
        followed, plan.policy, claim, [rounds], rounds,
        reach=min(setting.window, rounds - 1), arrivals=(0, truth.displays - 1), told_costs=True,
        deployment=plan.deployment, clock=plan.clock,
    )  # fmt: skip
    span = LiveSpan(rounds, 0, truth.displays - 1)
    cost = np.zeros(len(truth.laws.of_action)) if claim.money is None else claim.money.cost * truth.mean_value
    values = np.array([live.value(run, setting, span, seed)[0] for run in range(runs)])
    return values, truth.best_value(claim.net(rounds), cost)


@dataclass(frozen=True, eq=False)
class Claim:
    """Share of a round's expected reward that counts, and when its conversions are revealed."""

    cdf: DelayCDF  # of conversions within `longest`, in rounds of live traffic at the share that the policy is to serve
    window: int  # m, in the same rounds
    longest: int | None  # longest delay revealed, in ticks of the twins, where the window is a duration
    share: float  # rounds per display of the traffic
    observed: bool  # whether rewards count only if revealed by the last round
    counted: float  # share of the eventual rewards that count: tau_m where rewards end with the policy's window, else 1

    def weights(self, rounds: int) -> Floats:
        """Return the weight of each round's expected eventual reward in the mean of T rounds, shape (T,)."""
        if not self.observed:
            return np.full(rounds, self.counted / max(rounds, 1))
        ages = np.minimum(np.arange(rounds - 1, -1, -1), self.window)
        return np.asarray(self.cdf(ages)) / max(rounds, 1)

    def table(self, rounds: int) -> Floats:
        """Return tau_a for a = 0 up to the longest delay that T rounds reveal, where twins count rounds."""
        tau = np.asarray(self.cdf(np.arange(min(self.window, max(rounds - 1, 0)) + 1)))
        return tau[: int(np.searchsorted(tau, tau[-1])) + 1]


def claim_of(truth: LogTruth, plan: ReplayPlan) -> Claim:
    """Return what a replay of this plan claims, whose clock must be the traffic's.

    The wall clock is right for one share of the traffic only; a policy that is to serve all of it is what its replay is
    held to.
    """
    share, window = plan.clock.share, plan.window
    cdf = _in_rounds(truth, share, window)
    counted = 1.0
    if plan.rewards_end_with_window:
        counted = float(cdf(window.rounds) if window.ticks is None else truth.cdf(window.ticks))
    return Claim(cdf, window.rounds, window.ticks, share, plan.options.reward == "observed", counted)


def _in_rounds(truth: LogTruth, share: float, window: ReplayWindow) -> DelayCDF:
    """Return the CDF of the delays in rounds, of the conversions that a duration does not cut off.

    Where twins have times, it is the mean over displays and delays, evenly spaced over both (a lattice of golden
    section), each turned into rounds by the traffic that follows that display.
    """
    if truth.traffic is None:
        return truth.cdf if share == 1.0 else truth.cdf.scaled(share)
    i = np.arange(_PAIRS)
    arrival = ((i + 0.5) / _PAIRS * len(truth.traffic)).astype(np.int64)
    step = np.searchsorted(truth.cdf.cdf, (i * _GOLDEN) % 1.0, side="right")
    known = step < truth.cdf.delays.size
    ticks = truth.cdf.delays[np.minimum(step, truth.cdf.delays.size - 1)]
    known &= ticks <= (NO_WINDOW if window.ticks is None else window.ticks)
    displays = truth.traffic.displays_within(arrival[known], ticks[known])
    rounds, count = np.unique(np.rint(displays * share).astype(np.int64), return_counts=True)
    if not rounds.size:
        rounds, count = np.array([2**53]), np.array([_PAIRS])
    return DelayCDF(delays=rounds, cdf=np.minimum(np.cumsum(count) / _PAIRS, 1.0), source=truth.cdf.source)


@dataclass(frozen=True, eq=False)
class MoneyClaim:
    """What else a replay counts, as shares of the mean value of a sale, by action, shape (K,) each."""

    sold: Floats  # what a sale brings
    owed: Floats  # what its refund is expected to take back
    cost: Floats  # of a display, where costs count, less what its outcomes are expected to bring
    refunds: ClaimsByLaw
    costs: bool = False  # whether costs count


@dataclass(frozen=True, eq=False)
class ClaimsByLaw:
    """Claims of one plan: one for each law of the truth, or a single one where laws need not be told apart."""

    of_laws: tuple[Claim, ...]
    law: npt.NDArray[np.int64]  # (K,) number of each action's claim
    money: MoneyClaim | None = None  # what else counts of a display where twins have refunds or costs

    @property
    def observed(self) -> bool:
        """Whether rewards count only if revealed by the last round."""
        return self.of_laws[0].observed

    @property
    def longest(self) -> int | None:
        """The longest delay that is revealed, in ticks of the twins, where the window is a duration."""
        return self.of_laws[0].longest

    @property
    def share(self) -> float:
        """Rounds per display of the traffic."""
        return self.of_laws[0].share

    def weights(self, rounds: int) -> Floats:
        """Return what each round's expected eventual reward counts in the mean of T rounds, by law, shape (R, T)."""
        return np.stack([claim.weights(rounds) for claim in self.of_laws])

    def counted(self, rounds: int) -> Floats:
        """Return the share of each action's eventual rewards that counts in the mean of T rounds, shape (K,)."""
        share: Floats = self.weights(rounds).sum(axis=1)[self.law]
        return share

    def net(self, rounds: int) -> Floats:
        """Return what counts of a conversion of each action, as a share of their mean value, shape (K,)."""
        share = self.counted(rounds)
        if self.money is None:
            return share
        return self.money.sold * share - self.money.owed * self.money.refunds.counted(rounds)

    def tables(self, rounds: int) -> Floats:
        """Return tau_a of each law up to the longest delay that T rounds reveal, shape (R, J)."""
        tables = [claim.table(rounds) for claim in self.of_laws]
        longest = max(table.size for table in tables)
        return np.stack([np.pad(table, (0, longest - table.size), mode="edge") for table in tables])


def claims_of(truth: LogTruth, plan: ReplayPlan) -> ClaimsByLaw:
    """Return what a replay of this plan claims, whose clock must be the traffic's.

    Eventual rewards count whatever their delay, so that one claim does for all actions where twins have times, by which
    live runs reveal them.
    """
    money = None if truth.money is None else _of_money(truth, plan)
    if truth.traffic is not None and not _late(plan):
        return ClaimsByLaw((claim_of(truth, plan),), np.zeros(len(truth.laws.of_action), np.int64), money)
    claims = tuple(claim_of(replace(truth, cdf=cdf), plan) for cdf in truth.laws.cdfs)
    return ClaimsByLaw(claims, truth.laws.of_action, money)


def _late(plan: ReplayPlan) -> bool:
    """Whether it depends on its delay how much of a reward counts."""
    return plan.options.reward == "observed" or plan.rewards_end_with_window


def _of_money(truth: LogTruth, plan: ReplayPlan) -> MoneyClaim:
    money = truth.money
    assert money is not None
    k = len(truth.laws.of_action)
    refunds = ClaimsByLaw((claim_of(truth, plan),), np.zeros(k, np.int64))
    if money.refunds is not None and _late(plan):
        laws = tuple(claim_of(replace(truth, cdf=cdf), plan) for cdf in money.refunds.totals)
        refunds = ClaimsByLaw(laws, money.refunds.pairs[1])
    cost = money.costs.means if plan.of_profit and money.costs is not None else np.zeros(k)
    unit, costs = truth.mean_value, bool(cost.any())
    if money.outcomes and plan.options.reward == "observed":
        raise ParameterError(
            f"`reward='observed'`: an audit values {money.outcomes[0].kind.name}, which counts as a reward, by what "
            "comes in the end.",
            remedy="audit `reward='eventual'`.",
        )
    for one in money.outcomes:
        cost = cost - one.brought
    return MoneyClaim(money.worth / unit, money.owed / unit, cost / unit, refunds, costs)
