"""Policy files for the tests: policies that have lived some rounds, in Python, and files changed in one place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.pending import nothing_pending, push
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.replays.learned.policy import LearnedPolicy

Arrays = dict[str, np.ndarray]
K, DIMENSION, WINDOW, HORIZON = 4, 3, 20, 200
DELAYS = DelayCDF(delays=np.array([0, 2, 9]), cdf=np.array([0.4, 0.7, 1.0]), source="by hand")


def lived(policy: Any, *, rounds: int = 60, delay_cdf: DelayCDF = DELAYS, **numbers: int) -> LearnedPolicy:
    """Return a policy that has chosen and learned for so many rounds, with three conversions pending."""
    description = resolve(policy) if isinstance(policy, str) else policy
    contextual = description.contextual
    told = {"n_actions": K, "dimension": DIMENSION if contextual else 0, "rows": K if contextual else 0}
    setting = Setting(**{**told, "window": WINDOW, "horizon": HORIZON, **numbers}, delay_cdf=delay_cdf)
    pending = nothing_pending(3, setting.dimension, reach=WINDOW)
    learned = LearnedPolicy(
        policy=description,
        setting=setting,
        labels=("a", "b", "c", "d"),
        rounds=0,
        state=description.start(setting),
        prepared=False,
        rng=np.random.default_rng(1),
        pending=pending,
    )
    live(learned, rounds, np.random.default_rng(2))
    for delay in (1, 7, 20):
        vectors = np.full((1, setting.dimension), 0.25)
        push(pending, learned.rounds + delay, delay, delay % K, 1.0, vectors, 0)
    return learned


def live(learned: LearnedPolicy, rounds: int, rng: np.random.Generator) -> list[int]:
    """Live some rounds, in each of which one action converts, some rounds late; return what was chosen."""
    rows, d = learned.setting.rows, learned.setting.dimension
    chosen = []
    for _ in range(rounds):
        context = None if rows == 0 else rng.random((rows, d)) if rows > 1 else rng.random(d)
        chosen.append(learned.choose(context))
        learned.displayed(context, chosen[-1])
        late = int(rng.integers(0, min(learned.rounds, 10)))
        learned.converted(context, int(rng.integers(K)) if late else chosen[-1], delay=late)
    return chosen


def read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what a file says, and its arrays."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return json.loads(bytes(arrays.pop("about"))), arrays


def write(path: Path, about: Any, arrays: Arrays, *, compress: bool = False) -> Path:
    """Write a file, as whoever wants to may."""
    said = np.frombuffer(json.dumps(about).encode(), np.uint8)
    (np.savez_compressed if compress else np.savez)(path, about=said, **arrays)
    return path
