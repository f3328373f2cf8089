"""The live runs of an audit: every policy plays as often as it was replayed, and is told what its replays were told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import Fitted, TwinReplay
from evaluator.worlds.twins.live_policy import LivePolicy, LiveSpan

# Live runs a twin: their error is then small beside that of the replays.
RUNS_PER_TWIN = 2

# Number of a run, and of its policy.
Task = tuple[int, int]
Floats = npt.NDArray[np.float64]


class LiveRuns:
    """Live runs of the audited policies, on the truth that the twins were drawn from.

    Parameters
    ----------
    fitted, options
        Truth and policies, and options of the audit.
    told
        What the replays of each policy told, twin by twin.
    common
        Number of rounds at which policies are compared.
    """

    def __init__(
        self, fitted: Fitted, options: AuditOptions, told: Sequence[tuple[TwinReplay, ...]], common: int
    ) -> None:
        self.told, self.common, self._seed = told, common, options.seed
        self._live = []
        for p, (plan, claim) in enumerate(zip(fitted.plans, fitted.claimed, strict=True)):
            lengths = [t for of in told for t in of[p].rounds]
            # Where replays found their rounds.
            first, last = np.mean([of[p].arrivals for of in told], axis=0)
            self._live.append(
                LivePolicy(
                    fitted.truth,
                    plan.policy,  # as planned on the log, which says what its actions are called
                    claim,
                    lengths,
                    common,
                    reach=int(min(*(of[p].setting.window for of in told), max(*lengths, common) - 1)),
                    arrivals=(float(first), float(last)),
                    told_costs=options.learn_from == "objective",
                )
            )

    @property
    def tasks(self) -> list[Task]:
        """All runs of all policies."""
        return [(run, p) for run in range(RUNS_PER_TWIN * len(self.told)) for p in range(len(self._live))]

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return max(live.rounds for live in self._live)

    def value(self, task: Task) -> Floats:
        """Return the value of a run after its replays' rounds, and after the common ones, shape (2,)."""
        run, p = task
        told = self.told[run % len(self.told)][p]
        length = told.rounds[run // len(self.told) % len(told.rounds)]
        return self._live[p].value(run, told.setting, LiveSpan(length, *told.arrivals), self._seed)
