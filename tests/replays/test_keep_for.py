"""Units that keep their action: a replay is what a slow loop in plain Python makes of the same log, to the bit."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator.api import plan
from evaluator.engine.log_replay import policy_stream, sampler_stream
from evaluator.engine.pushes import rounds_until
from evaluator.log import Log
from evaluator.policies import dispatch
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.run import execute
from evaluator.units import NO_WINDOW
from tests.logs import build_log

DAY = 86_400
START = 1_772_445_600
P = np.array([0.5, 0.3, 0.2])


def visits(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return whose display each one is: some users come once, some often, and for as long as the log lasts."""
    users = rng.integers(0, n // 3, n)
    often = rng.integers(0, 20, n)
    return np.where(rng.random(n) < 0.2, often, 20 + users)


def kept_log(
    n: int, seed: int, *, keeps: bool = True, days: float | None = None, rounds: bool = False, dimension: int = 0
) -> Log:
    """Return a log whose logger keeps the action of a user, or asks anew after some days, or at each display."""
    rng = np.random.default_rng(seed)
    user = visits(n, rng)
    # Many displays share a second.
    time = np.arange(n) if rounds else START + np.sort(rng.integers(0, n * 20, n)) // 60 * 60
    drawn = rng.choice(3, n, p=P)
    action, asked = np.empty(n, np.int64), dict[int, tuple[int, int]]()
    for i in range(n):
        of = asked.get(int(user[i]))
        anew = of is None or not keeps or (days is not None and time[i] - of[0] >= days * (500 if rounds else DAY))
        if anew:
            asked[int(user[i])] = int(time[i]), int(drawn[i])
        action[i] = asked[int(user[i])][1]
    shown = np.flatnonzero(rng.random(n) < np.array([0.3, 0.25, 0.1])[action])
    delay = rng.exponential(200.0 if rounds else 7200.0, len(shown)).astype(np.int64)
    log = build_log(
        time=time,
        action=action,
        conversion_display=shown,
        conversion_time=time[shown] + delay,
        n_actions=3,
        propensity=P[action],
        context=rng.random((n, dimension)) if dimension else None,
        tick="round" if rounds else "s",
    )
    return log.changed(displays=log.displays.append_column("user", pa.array([f"u{of}" for of in user])))


def slow(log: Log, asked: ReplayPlan, *, days: float | None = None) -> list[int]:
    """Return the displays of the rounds of a plan on a log of whose users the first displays are thinned."""
    user, time, action = (np.asarray(log.column(name)) for name in ("user", "time", "action"))
    rounds_log = log.meta.tick_seconds is None
    first, begun, unit_of = [0] * len(log), dict[str, int](), [0] * len(log)
    units = 0
    for i, name in enumerate(user.tolist()):
        span = None if days is None else days * (500 if rounds_log else DAY)
        if name not in begun or (span is not None and time[i] - time[begun[name]] >= span):
            begun[name] = i
            unit_of[i] = units
            units += 1
        first[i] = begun[name]
        unit_of[i] = unit_of[first[i]]
    draws = sampler_stream(0, 0).random(units)
    c = asked.matched.c[0]
    setting, clock, window = asked.setting, asked.clock, asked.setting.window
    state, rng = asked.policy.start(setting), policy_stream(0, 0)
    delay = np.asarray(asked.rounds.delay if asked.rounds.told is None else asked.rounds.told.delay)
    of_display = np.asarray(asked.survey.display)
    value = log.conversions["value"].to_numpy()
    contexts = np.asarray(log.column("context"))[:, None, :] if asked.policy.contextual else np.zeros((len(log), 1, 0))
    heap: list[tuple[int, int]] = []
    played, due = dict[int, int](), dict[int, list[tuple[float, Any, int, int]]]()
    lived: list[int] = []
    live = None if asked.pushes is None else asked.pushes.clock
    at, accepted = 0, set[int]()

    def distance(i: int) -> int:
        if clock.kind == "wall":
            return 0
        if live is not None:
            return rounds_until(live, played[first[i]], int(time[i] - time[first[i]]))
        return round((i - first[i]) * clock.share)

    while len(lived) < setting.horizon:
        now = len(lived) + 1
        dispatch.begin(state, rng)
        found = None
        if heap and heap[0][0] <= now:
            found = heapq.heappop(heap)[1]
        while found is None and at < asked.rounds.used:
            i, at = at, at + 1
            if first[i] == i:
                if draws[unit_of[i]] * P[action[i]] < c:
                    chosen = dispatch.choose_possible(state, contexts[i], 3)
                    if chosen == action[i]:
                        found, played[i] = i, now
                        accepted.add(i)
            elif first[i] in accepted and action[i] == action[first[i]]:
                when = played[first[i]] + distance(i)
                if when <= now:
                    found = i
                else:
                    heapq.heappush(heap, (when, i))
        if found is None:
            break
        lived.append(found)
        dispatch.shown(state, contexts[found], int(action[found]))
        for c_ in range(*np.searchsorted(of_display, [found, found + 1])):
            if delay[c_] <= min(window, NO_WINDOW - 1):
                what = (float(value[c_]), contexts[found][0], int(action[found]), int(delay[c_]))
                due.setdefault(now + int(delay[c_]), []).append(what)
        total = 0.0
        for worth, vector, shown, waited in due.pop(now, []):
            dispatch.told(state, vector, shown, waited, worth)
            total += worth
        dispatch.told_sum(state, total)
    return lived


def displays(result: Any) -> list[int]:
    found: list[int] = result.trajectory["display_id"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("policy", "keep_for", "days", "options"),
    [
        ("ucb1", "user", None, {}),
        ("thompson", "user", None, {"window": 300}),
        ("delayed-klucb", "user@1d", 1.0, {"window": 300}),
        ("ucb1", "user@1d", 1.0, {"traffic_share": 0.25}),
        ("thompson", "user", None, {"traffic_share": 0.1}),
        ("ucb1", "user", None, {"clock": "wall"}),
        ("random", "user@1d", 1.0, {}),
        ("linucb", "user", None, {"window": 500}),
        ("thompson", "user", None, {"horizon": 150}),
    ],
)
def test_a_replay_is_the_slow_loop(policy: str, keep_for: str, days: float | None, options: dict[str, Any]) -> None:
    log = kept_log(4000, 1, days=days, dimension=3 if policy == "linucb" else 0)
    asked = plan(log, policy, keep_for=keep_for, **options)
    lived = slow(log, asked, days=days)
    assert len(lived) > 100
    for batch_size in (65_536, 700, 64):
        assert displays(execute(asked, batch_size=batch_size)) == lived
