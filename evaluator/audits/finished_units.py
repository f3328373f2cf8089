"""Twins and live runs of an audit that are there already, and those that are kept as they are finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

import numpy as np

from evaluator.audits.live_runs import Floats, LiveRuns
from evaluator.audits.replays import TwinReplays
from evaluator.audits.twin_units import LivePart, TwinWorkers, twin_key, twin_of, twin_text
from evaluator.jobs.serialise import as_text, from_text
from evaluator.outputs.kept_units import KeptUnits

# Rounds of live runs that are played and kept together, about a second of work, and runs at most.
LIVE_WORK = 4_000_000
_TOGETHER = 64


class AuditUnits:
    """The units of an audit.

    Parameters
    ----------
    key
        Hash of all that fixes the replays of every twin.
    kept
        Folder in which units are kept and looked for; None for none.
    """

    def __init__(self, key: str, kept: KeptUnits | None) -> None:
        self._key = key
        self._kept = kept

    def twin(self, twin: int, horizon: int | None, replayed: Callable[[], TwinReplays]) -> TwinReplays:
        """Return the replays of a twin, as kept or as a function gives them."""
        key = twin_key(self._key, twin, horizon)
        texts = self._found([key])
        if key in texts:
            return twin_of(texts[key])
        found = replayed()
        self._keep(key, lambda: twin_text(found))
        return found

    def twins(
        self, twins: int, horizon: int, workers: TwinWorkers, advance: Callable[[int], None]
    ) -> list[TwinReplays]:
        """Return the replays of all twins, compared at a horizon, in their order; the first has been told of."""
        keys = [twin_key(self._key, twin, horizon) for twin in range(twins)]
        texts = self._found(keys)
        done = {twin: twin_of(texts[key]) for twin, key in enumerate(keys) if key in texts}
        advance(len(done) - (0 in done))
        for twin, replayed in workers.results([twin for twin in range(twins) if twin not in done], horizon):
            self._keep(keys[twin], lambda: twin_text(replayed))  # noqa: B023  # called at once
            done[twin] = replayed
            advance(int(twin > 0))
        return [done[twin] for twin in range(twins)]

    def live(self, runs: LiveRuns, workers: TwinWorkers, advance: Callable[[int], None]) -> Floats:
        """Return the values of all live runs, which depend on all twins, shape (2, policies, runs)."""
        tasks, size = runs.tasks, min(max(LIVE_WORK // runs.rounds, 1), _TOGETHER)
        parts = [tuple(tasks[at : at + size]) for at in range(0, len(tasks), size)]
        keys = {part: self._live_key(runs, part) for part in parts}
        texts = self._found([*keys.values()])
        done = {part: from_text(texts[key], ()) for part, key in keys.items() if key in texts}
        advance(sum(map(len, done)))
        for part, values in workers.live(runs, [part for part in parts if part not in done]):
            self._keep(keys[part], lambda: as_text(values))  # noqa: B023  # called at once
            done[part] = values
            advance(len(part))
        policies = tasks[-1][1] + 1
        found = np.array([value for part in parts for value in done[part]])
        return found.reshape(-1, policies, 2).transpose(2, 1, 0)

    def _live_key(self, runs: LiveRuns, part: LivePart) -> str:
        return hashlib.sha256(json.dumps([self._key, "live", len(runs.told), runs.common, part]).encode()).hexdigest()

    def _found(self, keys: Sequence[str]) -> dict[str, str]:
        return {} if self._kept is None else self._kept.find(keys)

    def _keep(self, key: str, text: Callable[[], str]) -> None:
        if self._kept is not None:
            self._kept.keep(key, text())
