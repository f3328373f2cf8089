"""Holm's adjustment by hand."""

from __future__ import annotations

import numpy as np

from evaluator.estimates.simultaneous import holm


def test_by_hand() -> None:
    # In order .004 x 5, .01 x 4, .011 x 3 (raised to the one before), .3 x 2, .9 x 1 (raised).
    p = np.array([0.3, 0.01, 0.9, 0.004, 0.011])
    np.testing.assert_allclose(holm(p), [0.6, 0.04, 0.9, 0.02, 0.04])


def test_ties_one_and_none() -> None:
    np.testing.assert_allclose(holm([0.5, 0.5, 0.5]), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(holm([0.02]), [0.02])
    assert holm([]).shape == (0,)
