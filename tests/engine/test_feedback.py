"""What a policy is told, and when, equals a list of events made by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.engine.log_replay import Replay
from tests.engine.recorder import logged_rounds, record
from tests.logged_rounds import LoggedRounds


def events_by_brute_force(rounds: LoggedRounds, replay: Replay, window: int) -> list[tuple[Any, ...]]:
    """Return the events that the accepted displays must lead to: each round's display, then all that is due by its end.

    Within a round conversions come oldest display first, those of a display in the order of the log.
    """
    events: list[tuple[Any, ...]] = []
    accepted = replay.displays.tolist()
    for t, i in enumerate(accepted, start=1):
        row = rounds.vectors[i][rounds.action[i] % rounds.vectors.shape[1]]
        events.append(("displayed", row.tolist(), int(rounds.action[i])))
        for s, j in enumerate(accepted[:t], start=1):
            vector = rounds.vectors[j][rounds.action[j] % rounds.vectors.shape[1]].tolist()
            for c in range(rounds.first_conversion[j], rounds.first_conversion[j + 1]):
                if rounds.delay[c] <= window and s + rounds.delay[c] == t:
                    what = (vector, int(rounds.action[j]), int(rounds.delay[c]), float(rounds.value[c]))
                    events.append(("converted", *what))
    return events


@given(logged_rounds(), st.integers(0, 8), st.integers(1, 30), st.integers(0, 2**32), st.sampled_from([1, 7, 1000]))
def test_events_equal_those_of_brute_force(
    rounds: LoggedRounds, window: int, horizon: int, seed: int, batch_size: int
) -> None:
    replay, events = record(rounds, window=window, horizon=horizon, seed=seed, batch_size=batch_size)
    assert events == events_by_brute_force(rounds, replay, window)


@given(logged_rounds(), st.integers(0, 8), st.integers(1, 30), st.integers(0, 2**32))
def test_nothing_is_lost(rounds: LoggedRounds, window: int, horizon: int, seed: int) -> None:
    replay, events = record(rounds, window=window, horizon=horizon, seed=seed)
    assert replay.generated == replay.delivered + replay.expired + replay.pending
    per_display = np.diff(rounds.first_conversion)
    assert replay.generated == per_display[replay.displays].sum()
    assert replay.delivered == sum(e[0] == "converted" for e in events)
    # Rejected displays leave no trace: the policy was told of the accepted ones alone.
    assert sum(e[0] == "displayed" for e in events) == len(replay.displays) <= horizon
    assert (np.diff(replay.displays) > 0).all()
    assert (rounds.action[replay.displays] >= 0).all()
    # Every display is read, accepted or rejected, up to the one that fills the horizon.
    filled = len(replay.displays) == horizon
    assert replay.read == (replay.displays[-1] + 1 if filled else len(rounds))


@pytest.mark.parametrize(("delay", "told_after"), [(0, 1), (1, 2), (4, 5), (5, None)])
def test_the_window_includes_its_edge(delay: int, told_after: int | None) -> None:
    n, window = 10, 4
    rounds = LoggedRounds(
        action=np.zeros(n, np.int32),
        vectors=np.zeros((1, 1, 0)),
        first_conversion=np.array([0] + [1] * n),
        delay=np.array([delay]),
        value=np.ones(1),
        n_actions=1,
    )
    replay, events = record(rounds, window=window)
    at = [i for i, e in enumerate(events) if e[0] == "converted"]
    # A conversion with delay D comes after D + 1 displays, its own included.
    assert at == ([] if told_after is None else [told_after])
    assert (replay.expired, replay.delivered) == ((1, 0) if told_after is None else (0, 1))
