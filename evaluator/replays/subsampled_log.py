"""What cannot be said of a log whose displays are no even sample of the traffic, and what its replay must say."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError
from evaluator.estimates.confidence import SparseRewards
from evaluator.findings.codes import NO_WEIGHTED_VALUE, UNEVEN_WEIGHTS
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.reward_kinds import sales
from evaluator.log.schema import WEIGHT, is_target, to_numpy
from evaluator.replays.guardrails import parse_guardrails, refuse_on_a_choice
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.correction import correct_by
from evaluator.replays.rounds.propensity import Propensities
from evaluator.streams import Stream, random_stream


def refuse_on_parts(log: Log, propensities: Propensities, options: ReplayOptions) -> None:
    """Refuse by name the options that average over all displays of a log that is no even sample of the traffic.

    Raises
    ------
    ParameterError
        Such an option was given; the message names it, the cause, and what to do instead.
    """
    if not propensities.tilted:
        return
    weighted = propensities.weights is not None
    cause = (
        "has display weights, so that its displays are not those of the traffic"
        if weighted
        else "keeps the displays of some actions, with propensities that depend on the context"
    )
    remedy = "leave it out: a replay thins by the weights." if weighted else (
        "leave it out: a rejection replay is right; or replay the log with all actions."
    )  # fmt: skip
    for name, asked in (("`doubly_robust`", options.doubly_robust), ("`final`", options.final is not None)):
        if asked:
            raise ParameterError(f"{name} averages over all displays of log {log.meta.name!r}, which {cause}.",
                                 remedy=remedy)  # fmt: skip
    if not weighted:
        refuse_on_a_choice(log, parse_guardrails(options.guardrails))
        if options.by:
            raise ParameterError(
                f"`by` compares groups with the logging policy, whose displays in log {log.meta.name!r} are no even "
                "sample of those that a replay is valued on: it " + cause + ".",
                remedy="leave it out; or replay the log with all actions.",
            )
        return
    if correct_by(options.immature) is not None:
        raise ParameterError(
            f"`immature='correct'` cannot weigh the delays of log {log.meta.name!r}, which {cause}.",
            remedy="use `immature='drop'`.",
        )
    if options.delays_from is not None:
        raise ParameterError(
            f"`delays_from` cannot weigh the delays of log {log.meta.name!r}, which {cause}.",
            remedy="leave it out, or give the delays with `delays`.",
        )
    if options.bootstrap and options.propensity == "estimate":
        raise ParameterError(
            f"`bootstrap` cannot estimate the propensities of log {log.meta.name!r} anew, which {cause}.",
            remedy="give the logged propensities, or leave the bootstrap out.",
        )


def said_of_parts(propensities: Propensities, policy: Any) -> list[Finding]:
    """Return the warnings of a replay of a log whose displays are no even sample of the traffic."""
    said = []
    if propensities.weights is not None and propensities.weights.kept < 1.0:
        least, most = np.nanmin(propensities.weights.smallest), np.nanmax(propensities.weights.largest)
        said.append(
            UNEVEN_WEIGHTS.found(
                f"Display weights reach from {least:.3g} to {most:.3g}. Thinning by them to an even sample of the "
                f"traffic costs rounds: it leaves {propensities.weights.kept:.1%} of the displays.",
                kept=propensities.weights.kept,
            )
        )
    if propensities.tilted and is_target(policy.reads):
        said.append(
            NO_WEIGHTED_VALUE.found(
                "IPS, SNIPS and DR of the policy's columns are left out: they average over all displays, and these "
                "are no even sample of the traffic."
            )
        )
    return said


def even_conversions(log: Log, display: npt.NDArray[np.int64], seed: int) -> slice | npt.NDArray[np.int64]:
    """Return which sales are an even sample of the traffic's, as an index: all where their weights are alike.

    Delays are those of sales: refunds have their own, and costs none.

    Parameters
    ----------
    log
        Log whose displays are weighted.
    display
        Number of each conversion's display, shape (c,).
    seed
        Seed of the draws where weights differ.
    """
    sold = sales(log.conversions)
    every = slice(None) if sold is None else np.flatnonzero(sold)
    if WEIGHT not in log.schema.names or not len(display):
        return every
    weight = to_numpy(log.take(display, [WEIGHT])[WEIGHT])
    if weight.min() == weight.max():
        return every
    draws = random_stream(Stream.EVEN_CONVERSIONS, seed).random(len(weight))
    even = draws * weight.max() < weight
    return np.flatnonzero(even if sold is None else even & sold)


def evened(log: Log, rewards: SparseRewards, seed: int) -> SparseRewards:
    """Return the rewards of an even sample of the traffic among the first displays of a log; all without weights.

    Parameters
    ----------
    log
        Log whose displays are weighted.
    rewards
        Rewards of the log's first `rewards.n` displays.
    seed
        Seed of the draws: a display is kept with probability weight / largest weight.
    """
    if WEIGHT not in log.schema.names:
        return rewards
    largest = max(float(batch[WEIGHT].max()) for _, batch in log.batches([WEIGHT]))
    rng = random_stream(Stream.EVEN_DISPLAYS, seed)
    n, at, value = 0, [np.zeros(0, np.int64)], [np.zeros(0)]
    for first, batch in log.batches([WEIGHT]):
        weight = batch[WEIGHT][: max(rewards.n - first, 0)]
        kept = rng.random(len(weight)) * largest < weight
        low, high = np.searchsorted(rewards.at, [first, first + len(weight)])
        mine = np.arange(low, high)[kept[rewards.at[low:high] - first]]
        at.append(n + np.cumsum(kept)[rewards.at[mine] - first] - 1)
        value.append(rewards.value[mine])
        n += int(kept.sum())
    return SparseRewards(n, np.concatenate(at), np.concatenate(value))
