"""Logs whose conversion rates and delays depend on the context, and what becomes of the joint model on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from evaluator.delays.study.joint_rate import study_joint
from evaluator.errors import DataError
from evaluator.log import Log
from tests.logs import build_log

MEAN, SPREAD = 300.0, 0.7


class World(NamedTuple):
    """What a log is like: columns of its contexts, hashed or not, its length in mean delays, window, stamps, rhythm."""

    columns: int = 2
    hashed: bool = False
    span: float = 4.0
    window: int | None = None
    stamp: int = 1
    rhythm: bool = False
    law: float = 1.0  # shape of a gamma law; 1 is the model's exponential one


WORLDS = {
    "2 contexts": World(),
    "2 contexts, window": World(window=500),
    "5 contexts, rhythm, stamps of 60, window": World(columns=5, window=480, stamp=60, rhythm=True),
    "12 hashed contexts, window": World(columns=12, hashed=True, window=500),
    "12 hashed contexts": World(columns=12, hashed=True),
    "2 contexts, log of 1 mean delay": World(span=1.0),
    "delays of gamma law (shape .5), window": World(window=500, law=0.5),
}


def joint_log(world: World, conversions: int, rng: np.random.Generator) -> tuple[Log, float]:
    """Return a log of about so many conversions, and the rate that its displays will have (within the window)."""
    rate, span = 0.15, world.span * MEAN
    n = int(conversions / rate / (1.0 - (1.0 - np.exp(-world.span)) / world.span))
    if world.hashed:
        x = np.zeros((n, world.columns))
        for _ in range(2):
            np.add.at(x, (np.arange(n), rng.zipf(1.5, n) % world.columns), 1.0)
    else:
        x = rng.standard_normal((n, world.columns))
    effects = np.random.default_rng(7).standard_normal((2, world.columns)) * SPREAD / np.sqrt(x.var(axis=0).sum())
    odds, log_rate = effects @ (x - x.mean(axis=0)).T
    scale = MEAN * np.exp(-log_rate) / world.law
    delay = rng.gamma(world.law, scale)
    time = np.sort(rng.random(n)) * span
    if world.rhythm:
        day = span / 8
        time = np.sort(time // day * day + 0.3 * (time % day))
    shown = (time // world.stamp * world.stamp).astype(np.int64)
    until = int(span // world.stamp * world.stamp)
    came = ((time + delay) // world.stamp * world.stamp).astype(np.int64)
    late = came - shown
    converts = (rng.random(n) < expit(np.log(rate / (1 - rate)) + odds)) & (late <= (world.window or np.inf))
    of = np.flatnonzero(converts & (came <= until))
    log = build_log(
        time=shown, action=np.zeros(n, int), conversion_display=of, conversion_time=came[of], n_actions=2, context=x,
        observed_until=until, attribution_window=world.window,
    )  # fmt: skip
    return log, float(converts.mean())


class Outcome(NamedTuple):
    """Shares of the logs: `given` a rate; of those, whose interval holds the truth, whose naive rate's does, and whose
    model was said not to hold; `ratio` the median of estimate over truth.
    """

    given: float
    held: float
    naive_held: float
    refuted: float
    ratio: float


def outcome(name: str, conversions: int, logs: int, *, seed: int = 0) -> Outcome:
    """Draw logs and study them."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(logs):
        log, truth = joint_log(WORLDS[name], conversions, rng)
        try:
            found = study_joint(log)
        except DataError:
            continue
        of = found.rate
        width = 1.96 * np.sqrt(of.naive * (1 - of.naive) / of.displays)
        rows.append((of.low <= truth <= of.high, abs(of.naive - truth) <= width, not found.calibration.holds,
                     of.corrected / truth))  # fmt: skip
    if not rows:
        return Outcome(0.0, *[float("nan")] * 4)
    kept = np.array(rows, float)
    return Outcome(len(rows) / logs, *kept[:, :3].mean(axis=0).tolist(), float(np.median(kept[:, 3])))
