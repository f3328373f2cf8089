"""Of two variants that each lock in by chance, neither is said to be better."""

from __future__ import annotations

import numpy as np

from evaluator import compare
from tests.comparisons.test_ranking import said
from tests.logs import bernoulli_log

GREEDY = ["ucb1:exploration=0", "ucb1:exploration=0.001"]


def test_of_two_greedy_variants_neither_is_said_to_be_better() -> None:
    """On 30 logs of one truth each run locks in by itself: told from 0 in both directions, and of these runs only."""
    ahead, expected = [0, 0], 0
    for seed in range(30):
        log = bernoulli_log(2000, [0.2, 0.5, 0.35], mean_delay=40, seed=seed)
        found, again = (compare(log, GREEDY, baseline=GREEDY[0], seed=seed, horizon=500, bootstrap=b) for b in (0, 20))
        for of, target in ((found, "realised"), (again, "expected")):
            words = said(of, full=True)
            ranked = words[words.index("Ranking") : words.index("Regret")]
            assert "really" not in ranked
            assert "better" not in ranked
            assert of.ranking.target == target
        assert found.ranking.conclusion.startswith("In these runs, ")
        assert "not of the policies" in found.ranking.conclusion
        assert again.ranking.conclusion.startswith("Of the expected values, ")
        for i in (0, 1):
            ahead[i] += len(found.ranking.ahead_of[i])
        expected += sum(test.apart for test in again.ranking.tests)
    # "Better" would have been said of either; their expected values are all but the same.
    assert min(ahead) >= 1
    assert expected <= 30 * 0.05 + 4 * np.sqrt(30 * 0.05 * 0.95)
