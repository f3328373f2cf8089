"""Twins and live runs of an audit that are there already, and those that are kept as they are finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from evaluator.audits.replays import TwinReplays
from evaluator.audits.twin_units import TwinWorkers, twin_key, twin_of, twin_text
from evaluator.executors.plain_values import as_text, from_text
from evaluator.outputs.kept_units import KeptUnits

# Live runs that are kept at a time.
_TOGETHER = 64

Task = tuple[int, int]
Floats = npt.NDArray[np.float64]


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

    def live(
        self, twins: int, common: int, play: Callable[[Sequence[Task]], Iterable[Floats]], tasks: Sequence[Task]
    ) -> Iterator[Floats]:
        """Yield the values of live runs in their order, which depend on all twins."""
        parts = [tasks[at : at + _TOGETHER] for at in range(0, len(tasks), _TOGETHER)] if self._kept else [tasks]
        keys = [hashlib.sha256(json.dumps([self._key, "live", twins, common, of]).encode()).hexdigest() for of in parts]
        texts = self._found(keys)
        for key, part in zip(keys, parts, strict=True):
            if key in texts:
                yield from from_text(texts[key], ())
                continue
            values = []
            for value in play(part):
                values.append(value)
                yield value
            self._keep(key, lambda: as_text(tuple(values)))  # noqa: B023  # called at once

    def _found(self, keys: Sequence[str]) -> dict[str, str]:
        return {} if self._kept is None else self._kept.find(keys)

    def _keep(self, key: str, text: Callable[[], str]) -> None:
        if self._kept is not None:
            self._kept.keep(key, text())
