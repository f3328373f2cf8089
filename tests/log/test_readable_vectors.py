"""Which vectors of a log are read, where it has several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evaluator.log.schema import fixed_size_lists
from evaluator.log.vectors_of_displays import display_vectors, readable_vectors
from tests.logs import build_log

SETS, CONTEXTS = np.zeros((4, 2, 3)), np.zeros((4, 5))
SHOWN = {"time": range(4), "action": [0, 1, 1, 0], "n_actions": 2}


def test_action_sets_come_first_for_policies_and_contexts_for_loggers() -> None:
    both = build_log(**SHOWN, context=CONTEXTS, action_set=SETS)
    assert display_vectors(both) == readable_vectors(both) == "action_set"
    assert display_vectors(both, first="context") == "context"
    sets, contexts = build_log(**SHOWN, action_set=SETS), build_log(**SHOWN, context=CONTEXTS)
    assert display_vectors(sets, first="context") == "action_set"
    assert display_vectors(contexts) == readable_vectors(contexts) == "context"


def test_features_of_the_actions_are_read_where_displays_have_no_vectors() -> None:
    bare = build_log(**SHOWN)
    assert readable_vectors(bare) is None
    features = bare.actions.append_column("features", fixed_size_lists(np.zeros((2, 3))))
    catalogue = replace(bare, actions=features)
    assert (display_vectors(catalogue), readable_vectors(catalogue)) == (None, "features")
