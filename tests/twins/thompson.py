"""Beta Thompson sampling on delay-corrected counts."""

from __future__ import annotations

import numpy as np

from tests.twins.history import Floats
from tests.twins.naive import ThompsonTwin


class DelayedThompsonTwin(ThompsonTwin):
    def trials(self) -> Floats:
        """Return N~_k, the sum of tau_min(m, age) over the pulls of arm k."""
        tau = self.setting.delay_cdf
        assert tau is not None
        weights = [tau(min(self.setting.window, int(age))) for age in self.ages]
        return np.bincount(self.actions, weights=weights, minlength=self.setting.n_actions)
