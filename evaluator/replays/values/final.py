"""The value of a policy that does not learn (any more), on displays that taught it nothing: IPS, SNIPS and DR.

A replay's value is that of the rounds in which the policy learned. This is another target: what the final policy,
frozen with its action probabilities pi(a|x), would earn per round from then on. It is estimated on displays that the
replay left out (``final="last:20%"``), or, for a policy whose probabilities the log itself holds, on all displays.

Which policy that is makes a difference (`evaluator.engine.frozen`): the *greedy* one shows what was learned to be
best; the *exploring* one, frozen, repeats the pull it would make next, for its bonus as well as for what it earns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.frozen import FrozenPolicy, shares_among
from evaluator.engine.log_replay import Replay
from evaluator.errors import LogError
from evaluator.estimates.weighted import ESTIMATORS, WeightedValue, Weights, mean_value, weights_of
from evaluator.findings.codes import FEW_WEIGHTED_REWARDS, FINAL_EXPLORES, FINAL_TIES, WEIGHTS_OFF
from evaluator.findings.finding import Finding
from evaluator.log.breaches import TARGET_REPAIR
from evaluator.log.schema import ELIGIBLE, is_target
from evaluator.log.vectors_of_displays import readable_vectors
from evaluator.replays.findings.plan import warn_of_few_clusters
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.stream import LogPiece, pieces
from evaluator.replays.values.doubly_robust import RewardModels
from evaluator.replays.values.rewards import eventual_rewards
from evaluator.results.json_documents import Count, Finite, Positive, Share, in_document, in_place_of, omitted

Floats = npt.NDArray[np.float64]
FinalKind = Literal["greedy", "exploring", "posterior sampling", "columns", "fixed"]

# Probabilities of all actions for so many displays at a time that they fit into 32 MB.
_PROBABILITIES = 2**22
# Displays at which several actions have the same largest estimate, of which the reader must know.
_MANY_TIES = 0.01


@dataclass(frozen=True)
class FinalValue:
    """Value of the final policy, frozen.

    Parameters
    ----------
    policy
        Kind of policy that this is the value of. ``greedy``: the action with the largest estimated reward, no bonus, no
        draw. ``exploring``: the policy as it would choose next, its bonus and draws included. ``posterior sampling``:
        the same of a policy that samples from a posterior, whose choice probabilities these are. ``columns``: the log's
        own probabilities. ``fixed``: one that has nothing to learn.
    displays
        Number of displays that it is estimated on.
    learned
        Whether the policy learned before it was frozen; else it is one that never learns.
    draws
        Number of choices drawn for the probabilities of a display; 0 where they are known exactly.
    repeats
        Number of final policies that it is of: any of them, with equal chance.
    tied
        Share of the displays at which the greedy policy has several actions to choose from; 0 for others.
    estimates
        Value of the final policy by each of `evaluator.estimates.weighted.ESTIMATORS`, by name; the model of DR:
        `evaluator.replays.values.doubly_robust`.
    logging
        Mean reward of the same displays under the logging policy.
    weights
        Weights of the displays: effective sample size, mean and largest.
    rewarded
        Number of displays with a reward and a weight above 0: what IPS and SNIPS rest on.
    action_share
        Mean probability of each action, K numbers in the order of the log's actions; by its label in a document.
    action_labels
        Labels of these K actions.
    findings
        What to read before the numbers.
    """

    policy: FinalKind
    displays: Count
    learned: bool
    draws: Count
    repeats: Positive
    tied: Share
    estimates: Annotated[Mapping[str, WeightedValue], *omitted]
    logging: WeightedValue
    weights: Weights
    rewarded: Count
    action_share: tuple[float, ...]
    action_labels: Annotated[tuple[str, ...], *omitted]
    findings: Annotated[tuple[Finding, ...], *omitted]

    @in_document
    @property
    def ips(self) -> WeightedValue:
        """The value by inverse propensities."""
        return self.estimates["ips"]

    @in_document
    @property
    def snips(self) -> WeightedValue:
        """The value by inverse propensities, normalised by their sum."""
        return self.estimates["snips"]

    @in_document
    @property
    def dr(self) -> WeightedValue:
        """The doubly robust value."""
        return self.estimates["dr"]

    @in_place_of("action_share")
    def _by_label(self, shares: tuple[float, ...]) -> dict[str, Finite]:
        return dict(zip(self.action_labels, shares, strict=True))


def frozen_value(plan: ReplayPlan, replays: Sequence[Replay], models: RewardModels) -> FinalValue:
    """Estimate what the final policy of some repeats of a plan would earn, in one scan of its `held_out` displays.

    One more scan of the log fits the model of the rewards, where `models` does not hold it yet.
    """
    judged, policy, options, k = plan.held_out, plan.policy, plan.options, plan.log.n_actions
    n, target = len(judged), _Target(plan, [], None if policy.learns else policy.shares(k))
    if target.shares is None and not is_target(policy.reads):
        target.frozen = [
            FrozenPolicy(
                policy, replay.state, n_actions=k, displays=n * len(replays), wanted=options.final_policy,
                seed=options.seed, repeat=repeat, has_sets=plan.sets is not None,
            )
            for repeat, replay in enumerate(replays)
        ]  # fmt: skip
    reward = eventual_rewards(plan, used=plan.maturity.used).taken(np.arange(judged.start, judged.stop))
    model, vectors = models.of(plan), readable_vectors(plan.log)
    chosen, propensity, q_shown, q_chosen = np.empty((4, n))
    shares = np.zeros(k)
    for part in target.scan(judged, [plan.rounds.vectors, vectors]):
        at, rows = part.at, np.arange(len(part.action))
        q = model.values(judged.start + at.start, len(rows), part.piece.part_of_all(vectors, part.rows, k))
        chosen[at], q_shown[at] = part.pi[rows, part.action], q[rows, part.action]
        propensity[at] = part.propensity
        q_chosen[at] = (part.pi * q).sum(axis=1)
        shares += part.pi.sum(axis=0)
    weights = weights_of(chosen, propensity)
    clusters = None if plan.clusters is None else plan.clusters.code[judged.start : judged.stop]
    asked: dict[str, Any] = {"level": options.level, "clusters": clusters}
    estimates = {
        one.name: one.estimate(reward, chosen, propensity, *((q_shown, q_chosen) if one.models else ()), **asked)
        for one in ESTIMATORS
    }
    frozen = target.frozen
    kind: FinalKind = frozen[0].kind if frozen else "columns" if target.shares is None else "fixed"
    tied = target.tied / (n * len(replays)) if kind == "greedy" else 0.0
    return FinalValue(
        policy=kind,
        displays=n,
        learned=policy.learns,
        draws=sum(one.draws for one in frozen),
        repeats=max(len(frozen), 1),
        tied=tied,
        estimates=estimates,
        logging=mean_value(reward, **asked),
        weights=weights,
        rewarded=int(np.count_nonzero((reward != 0) & (chosen > 0))),
        action_share=tuple((shares / max(n, 1)).tolist()),
        action_labels=tuple(plan.log.labels),
        findings=(
            *_of_kind(plan, kind, tied),
            *_warnings(weights, estimates),
            *warn_of_few_clusters(plan, clusters, "the final policy"),
        ),
    )


def display_weights(plan: ReplayPlan) -> Floats:
    """Return the weight pi(a_i|x_i) / p_i of each display that can be judged, of a policy that never learned, (n,).

    In one scan of the displays. The log has propensities, and its displays are an even sample of the traffic.
    """
    n, shares = plan.maturity.used, plan.policy.shares(plan.log.n_actions)
    weight = np.empty(n)
    if shares is not None and plan.sets is None:
        for first, batch in plan.log.batches(list(dict.fromkeys(["action", *plan.propensities.reads]))):
            size = min(len(batch["action"]), n - first)
            if size <= 0:
                break
            weight[first : first + size] = (shares[batch["action"]] / plan.propensities.of(batch))[:size]
        return weight
    for part in _Target(plan, [], shares).scan(range(n), [plan.rounds.vectors]):
        weight[part.at] = part.pi[np.arange(len(part.action)), part.action] / part.propensity
    return weight


class _Part(NamedTuple):
    """Some displays: where they are among those read, their rows of a piece, and what was and would be shown."""

    at: slice
    piece: LogPiece
    rows: slice
    action: npt.NDArray[np.int32]
    propensity: Floats
    pi: Floats


@dataclass(eq=False)
class _Target:
    """The policy that is valued: known shares, shape (K,), frozen ones, one a repeat, or columns of the log.

    `tied` counts the displays, of all repeats, at which a greedy policy has no action above 1/2: equals share.
    """

    plan: ReplayPlan
    frozen: list[FrozenPolicy]
    shares: Floats | None
    tied: int = 0

    def scan(self, displays: range, names: Sequence[str | None]) -> Iterator[_Part]:
        """Yield displays of the plan's log, part by part, with vectors of these names, and the probabilities."""
        plan, n = self.plan, len(displays)
        step = max(_PROBABILITIES // plan.log.n_actions, 1)
        propensities = plan.propensities.after(displays.start)
        sets = [] if plan.sets is None else [ELIGIBLE]
        columns = list(dict.fromkeys(["action", *propensities.reads, *sets]))
        for piece in pieces(plan.log.after(displays.start), columns, [name for name in dict.fromkeys(names) if name]):
            size = min(len(piece.action), n - piece.first)
            if size <= 0:
                break
            p = propensities.of(piece.displays)[:size]
            for low in range(0, size, step):
                rows = slice(low, min(low + step, size))
                at = slice(piece.first + rows.start, piece.first + rows.stop)
                pi = self._probabilities(piece, rows, displays.start + at.start)
                yield _Part(at, piece, rows, piece.action[rows], p[rows], pi)

    def _probabilities(self, piece: LogPiece, part: slice, first: int) -> Floats:
        """Return pi(a|x_i), shape (n, K), of displays from number `first` on: the mean over the repeats."""
        plan, n, k = self.plan, part.stop - part.start, self.plan.log.n_actions
        vectors = piece.part(plan.rounds.vectors, part)
        rows, eligible = plan.rounds.choices(vectors, piece.eligible(part), piece.first_vectors(part))
        if not self.frozen and eligible is None:
            return _known(rows, k, stand_in=1.0 / k) if self.shares is None else np.tile(self.shares, (n, 1))
        if not self.frozen and eligible is not None:
            known = _known(vectors, k, stand_in=0.0) if self.shares is None else self.shares[None]
            labels = self.shares is None and vectors.shape[2] == 1
            found, wrong = shares_among(known, eligible, strict=self.shares is None and not labels)
            if wrong >= 0:
                raise LogError(
                    f"displays.{plan.rounds.vectors}: no eligible action has a probability (row {first + wrong}).",
                    remedy=TARGET_REPAIR,
                )
            return found
        if eligible is None:
            each = [one.probabilities(rows, n) for one in self.frozen]
        else:
            dense = piece.part_of_all(plan.rounds.vectors, part, k)
            each = [one.probabilities_among(dense, rows, eligible) for one in self.frozen]
        for one, pi in zip(self.frozen, each, strict=True):
            self.tied += int((pi.max(axis=1) <= 0.5).sum()) if one.kind == "greedy" else 0
        return each[0] if len(each) == 1 else np.asarray(np.mean(each, axis=0))


def _known(vectors: npt.NDArray[np.floating], n_actions: int, *, stand_in: float) -> Floats:
    """Return the probabilities that columns hold, shape (n, K), from the actions taken if they hold these.

    Where there is no such action, all have the probability `stand_in`.
    """
    if vectors.shape[2] != 1:
        return vectors[:, 0].astype(np.float64, copy=False)
    action = vectors[:, 0, 0].astype(np.int64)
    found = np.zeros((len(action), n_actions))
    known = (action >= 0) & (action < n_actions)
    found[np.flatnonzero(known), action[known]] = 1.0
    found[~known] = stand_in
    return found


def _of_kind(plan: ReplayPlan, kind: FinalKind, tied: float) -> Iterator[Finding]:
    if kind in ("exploring", "posterior sampling") and plan.options.final_policy == "greedy":
        yield FINAL_EXPLORES.found(
            f"{plan.policy.name} says nothing of its estimates (it has no method estimates), so its final policy is "
            "valued as it would choose next, exploration included: not the value of what it learned.",
            about=plan.policy.name,
        )
    if tied > _MANY_TIES:
        yield FINAL_TIES.found(
            f"Greedy final policy: at {tied:.1%} of the displays several actions have the same largest estimate, and "
            "are shown with equal chance. It has learned too little to tell them apart.",
            share=tied,
        )


def _warnings(weights: Weights, estimates: dict[str, WeightedValue]) -> Iterator[Finding]:
    if not weights.calibrated:
        yield WEIGHTS_OFF.found(
            f"Frozen policy: the mean weight is {weights.mean:.3g} (standard error {weights.mean_error:.2g}), where "
            "right propensities give 1: IPS and SNIPS cannot be trusted, DR only as far as its model.",
            mean=weights.mean,
        )
    if few := {one.short: estimates[one.name] for one in ESTIMATORS if not estimates[one.name].given}:
        least = min(few.values(), key=lambda found: found.rewards)
        yield FEW_WEIGHTED_REWARDS.found(
            f"Frozen policy: no value by {', '.join(few)} is given: {least.withheld}. Its {weights.n:,} displays are "
            f"worth {weights.effective_sample_size:,.0f} of its own (effective sample size).",
            effective=weights.effective_sample_size,
        )
