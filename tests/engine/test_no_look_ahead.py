"""The future of a log never changes the past of a replay (traffic clock, share 1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.api import replay as api_replay
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from tests.engine.recorder import logged_rounds, record
from tests.logged_rounds import LoggedRounds
from tests.logs import bernoulli_log, build_log, linear_log


def altered_after(rounds: LoggedRounds, x: int, shift: int) -> LoggedRounds:
    """Return the rounds with other displays after position x, and other delays for conversions that come after it."""
    rng = np.random.default_rng(shift)
    action, vectors, delay = rounds.action.copy(), rounds.vectors.copy(), rounds.delay.copy()
    action[x + 1 :] = rng.integers(0, rounds.n_actions, len(action) - x - 1)
    vectors[x + 1 :] += 1000.0
    # A conversion's place in the log is its display's plus its delay.
    display = np.repeat(np.arange(len(rounds)), np.diff(rounds.first_conversion))
    late = display + delay > x
    soonest = np.maximum(x + 1 - display, 0)
    delay[late] = (soonest + rng.integers(0, 5, len(delay)))[late]
    return replace(rounds, action=action, vectors=vectors, delay=delay)


@given(logged_rounds(), st.integers(0, 39), st.integers(0, 9), st.integers(0, 8))
def test_later_displays_and_conversions_do_not_change_earlier_rounds(
    rounds: LoggedRounds, x: int, shift: int, window: int
) -> None:
    x = min(x, len(rounds) - 1)
    before, events = record(rounds, window=window)
    after, altered_events = record(altered_after(rounds, x, shift), window=window)
    np.testing.assert_array_equal(before.displays[before.displays <= x], after.displays[after.displays <= x])
    # What was told until the first later display is the same, too.
    played = int((before.displays <= x).sum())
    cut, other_cut = (nth_display(e, played) for e in (events, altered_events))
    assert events[:cut] == altered_events[:other_cut]


def nth_display(events: list[tuple[object, ...]], n: int) -> int:
    at = [i for i, e in enumerate(events) if e[0] == "displayed"]
    return at[n] if n < len(at) else len(events)


def log_with_another_end(log: Log, x: int, seed: int) -> Log:
    """Return the log with actions redrawn after x, and without the conversions that come after x."""
    rng = np.random.default_rng(seed)
    action = log.column("action").copy()
    action[x + 1 :] = rng.integers(0, log.n_actions, len(action) - x - 1)
    when, of = (to_numpy(log.conversions[c]) for c in ("time", "display_id"))
    early = when <= x
    return build_log(
        time=log.column("time"),
        action=action,
        conversion_display=of[early],
        conversion_time=when[early],
        n_actions=log.n_actions,
        action_set=log.column("action_set") if "action_set" in log.displays.column_names else None,
    )


@settings(max_examples=15)
@given(st.integers(0, 1999), st.integers(0, 9))
@pytest.mark.parametrize("policy", ["thompson", "delayed-ucb", "otflinucb", "waitlinucb"])
def test_the_end_of_a_log_does_not_change_the_beginning_of_its_trajectory(policy: str, x: int, seed: int) -> None:
    log = linear_log(2000, n_actions=3, dimension=5, mean_delay=20.0, seed=seed)
    if policy in ("thompson", "delayed-ucb"):
        log = bernoulli_log(2000, [0.5, 0.3, 0.2], mean_delay=20.0, seed=seed)
    sampler = "keep" if policy in ("thompson", "delayed-ucb") else "rejection"
    # The CDF and the horizon are given: the log's own CDF is hindsight, as its assumption says.
    options = {"window": 30, "sampler": sampler, "delays": "geometric:20", "horizon": 500, "seed": seed}
    whole, cut = (
        to_numpy(api_replay(one, policy, **options).trajectory["display_id"])
        for one in (log, log_with_another_end(log, x, seed))
    )
    np.testing.assert_array_equal(whole[whole <= x], cut[cut <= x])
