"""What live runs of an audit are drawn from, and what each of their rounds counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.audits.by_action import ClaimsByLaw
from evaluator.audits.live import ContextPool
from evaluator.audits.replays import TwinReplay
from evaluator.audits.truth import LogTruth
from evaluator.units import NO_WINDOW

Floats = npt.NDArray[np.float64]


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


def live_pool(truth: LogTruth, policy: Any, claim: ClaimsByLaw, rounds: int, told: Sequence[TwinReplay]) -> ContextPool:
    """Return what live rounds of a policy are drawn from, which was `told` so by its replays."""
    if not policy.contextual:
        vectors = np.zeros((1, 1, 0))
    elif truth.pool is None:
        from evaluator.log.schema import to_numpy

        vectors = to_numpy(truth.actions["features"]).astype(np.float64)[None]
    else:
        vectors = truth.pool.astype(np.float64)
        vectors = vectors[:, None, :] if vectors.ndim == 2 else vectors
    vectors = np.ascontiguousarray(vectors)
    if truth.traffic is None:
        tau = claim.tables(rounds)
        reach = tau.shape[1] - 1
        if truth.money is not None and truth.money.refunds is not None:  # which come later than the last sale
            reach = _reach(rounds, told)
        return ContextPool(vectors, truth.rates, truth.values, tau, reach, law=truth.laws.of_action)
    # A duration cuts the delays themselves, a window in rounds what they come to.
    cut = NO_WINDOW if claim.longest is None else claim.longest
    steps = int(np.searchsorted(truth.laws.grid, cut, side="right"))
    times = truth.traffic.times.mapped()
    # Where replays found their rounds: a twin is one stretch of the traffic.
    low, high = np.mean([one.arrivals for one in told], axis=0)
    first, last = round(float(low)), len(times) - truth.displays + round(float(high)) + 1
    return ContextPool(
        vectors=vectors,
        rates=truth.rates,
        values=truth.values,
        tau=np.ascontiguousarray(truth.laws.tau[:, :steps]),
        law=truth.laws.of_action,
        by_hour=np.zeros(0) if truth.hours.by_hour is None else truth.hours.by_hour,
        hour=truth.hours.ticks,
        reach=_reach(rounds, told),
        delays=np.array(truth.laws.grid[:steps]),
        times=times,
        first=first,
        last=max(last, first + 1),
        rate=truth.traffic.rate,
        share=claim.share,
    )


def _reach(rounds: int, told: Sequence[TwinReplay]) -> int:
    """Return the longest delay in rounds that these let a policy hear of."""
    return int(min(*(one.setting.window for one in told), max(rounds - 1, 0)))
