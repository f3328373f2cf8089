"""Names do not matter: with arms renamed, the same history leads to the same choice under its new name.

The history is forced, since ties at the start (all arms unseen) go by index and would lead to other histories.
"""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.policies import dispatch, resolve
from tests.policies.rounds import Layout, random_rounds, setting_for
from tests.policies.variants import CDFS

# No arm keeps its name.
RENAMED = np.array([2, 0, 3, 1])
# Improved UCB shows its arms in the order of their names until it has eliminated the worse ones.
INDEX = (
    "ucb1:ties=lowest",
    "klucb:ties=lowest",
    "delayed-ucb:ties=lowest",
    "delayed-klucb:ties=lowest",
    "delayed-ucb:model=uncensored,ties=lowest",
    "delayed-ucb:cdf=online,ties=lowest",
    "delayed-klucb:cdf=online,model=uncensored,ties=lowest",
    "discarding-ucb:ties=lowest",
    "discarding-klucb:ties=lowest",
    "qpm-d:ties=lowest",
    "qpm-d:base=klucb,ties=lowest",
    "patient-bandits:width_scale=0.2,ties=lowest",
    "adapt-patient-bandits:width_scale=0.2,ties=lowest",
)
OPTIMISTS = (
    "nonambiguous-linucb:ties=lowest",
    "linucb:ties=lowest",
    "waitlinucb:ties=lowest",
    "otflinucb:ties=lowest",
    "otflinucb:width=theorem,bonus=exact,ties=lowest",
)
# Their one draw a round is of theta, not of an arm; disjoint arms draw one each, in the order of their names.
SAMPLERS = ("lints", "otflints", "otflints:bonus=exact")


@pytest.mark.parametrize(
    ("spec", "layout"),
    [
        *((spec, "none") for spec in INDEX),
        *((spec, layout) for spec in OPTIMISTS for layout in ("sets", "contexts", "catalogue")),
        *((spec, layout) for spec in SAMPLERS for layout in ("sets", "catalogue")),
    ],
)
def test_renamed_arms_are_chosen_alike(spec: str, layout: Layout) -> None:
    rounds = random_rounds(layout, 150, kept=1.0, seed=21)
    setting = setting_for(rounds, window=10, delay_cdf=CDFS["geometric from 0"])
    policy = resolve(spec)
    one, other = policy.start(setting), policy.start(setting)
    streams = np.random.default_rng(1), np.random.default_rng(1)
    for t in range(len(rounds)):
        vectors = rounds.vectors[t % len(rounds.vectors)]
        renamed = vectors if len(vectors) == 1 else vectors[np.argsort(RENAMED)]
        dispatch.begin(one, streams[0])
        dispatch.begin(other, streams[1])
        if t >= 60:  # every arm seen and converted, WaitLinUCB started: no ties are left
            assert dispatch.choose(other, renamed) == RENAMED[dispatch.choose(one, vectors)]
        arm = int(rounds.action[t])
        dispatch.shown(one, vectors, arm)
        dispatch.shown(other, renamed, int(RENAMED[arm]))
        # Small values keep every KL index below 1, where indices tie.
        for c in range(rounds.first_conversion[t], rounds.first_conversion[t + 1]):
            vector, value = vectors[arm] if len(vectors) > 1 else vectors[0], 0.2 * rounds.value[c]
            dispatch.told(one, vector, arm, 0, value)
            dispatch.told(other, vector, int(RENAMED[arm]), 0, value)
