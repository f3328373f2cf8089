"""A command that is stopped while it keeps finished jobs, wherever that may be."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.outputs.kept_folder import KeptJobs


class Stopping:
    """Stops a command at the number of writes that `left` has: before the file is written, or after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng = np.random.default_rng(1)
        self.left = 0
        self.keys: list[str] = []
        keep = KeptJobs.keep

        def stopped(kept: KeptJobs, key: str, text: str) -> None:
            if self.left == 0 and self.rng.random() < 0.5:  # before it is written, else after
                raise KeyboardInterrupt
            keep(kept, key, text)
            self.keys.append(key)
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt

        monkeypatch.setattr(KeptJobs, "keep", stopped)

    def after_fewer_than(self, writes: int) -> None:
        """Stop next after fewer writes than this."""
        self.left = int(self.rng.integers(0, writes))
