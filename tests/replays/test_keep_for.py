"""Units that keep their action: a replay is what a slow loop in plain Python makes of the same log, to the bit."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import audit, check, compare, replay
from evaluator.api import plan
from evaluator.comparisons.expected import WeightedPairs
from evaluator.engine.log_replay import policy_stream, sampler_stream
from evaluator.engine.pushes import rounds_until
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log
from evaluator.options.deployment import KeptFor, Span
from evaluator.policies import dispatch
from evaluator.replays.kept_units import read_units
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.run import execute
from evaluator.replays.values.resampled import ClusterDraws
from evaluator.units import NO_WINDOW
from evaluator.worlds.world import World
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
    pushes = None if asked.pushes is None else dict(zip(asked.pushes.after, asked.pushes.cut, strict=True))
    closes = asked.pushes is not None and asked.pushes.closes
    explored = 0 if asked.explores is None else asked.explores.rounds
    at, accepted, known = 0, set[int](), 0

    def learn(r: int) -> None:
        dispatch.shown(state, contexts[lived[r - 1]], int(action[lived[r - 1]]))
        total = 0.0
        for worth, vector, shown, waited in due.pop(r, []):
            dispatch.told(state, vector, shown, waited, worth)
            total += worth
        dispatch.told_sum(state, total)

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
                    chosen = (
                        int(rng.random() * 3) if now <= explored else dispatch.choose_possible(state, contexts[i], 3)
                    )
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
        for c_ in range(*np.searchsorted(of_display, [found, found + 1])):
            if delay[c_] == NO_WINDOW:
                continue
            waits = int(delay[c_]) if live is None else rounds_until(live, now, int(delay[c_]))
            if closes or waits <= min(window, NO_WINDOW - 1):
                what = (float(value[c_]), contexts[found][0], int(action[found]), waits)
                due.setdefault(now + waits, []).append(what)
        cut = now if pushes is None else pushes.get(now, known)
        for r in range(known + 1, cut + 1):
            learn(r)
        known = cut
    return lived


def displays(result: Any) -> list[int]:
    found: list[int] = result.trajectory["display_id"].to_pylist()
    return found


CELLS: list[tuple[str, str, float | None, dict[str, Any]]] = [
    ("ucb1", "user", None, {}),
    ("thompson", "user", None, {"window": 300}),
    ("ucb1", "user@1d", 1.0, {"traffic_share": 0.25}),
    ("thompson", "user", None, {"traffic_share": 0.1}),
    ("ucb1", "user", None, {"clock": "wall"}),
    ("thompson", "user", None, {"horizon": 150}),
    ("thompson", "user@1d", 1.0, {"learn_every": "6h", "learn_lag": "3h", "explore_first": "5h"}),
    ("thompson", "user", None, {"learn_every": "6h", "clock": "wall", "explore_first": 150}),
]
# Each has a loop of its own, which takes seconds to compile: replayed among the proofs.
LATER: list[tuple[str, str, float | None, dict[str, Any]]] = [
    ("delayed-klucb", "user@1d", 1.0, {"window": 300}),
    ("random", "user@1d", 1.0, {}),
    ("linucb", "user", None, {"window": 500}),
    ("ucb1", "user", None, {"learn_every": 60, "learn_lag": 25}),
    ("delayed-ucb", "user@1d", 1.0, {"learn_every": "1d@03:00", "traffic_share": 0.4}),
    ("ucb1", "user@1d", 1.0, {"deployment": "statsig", "window": "4h"}),
]


@pytest.mark.parametrize(("policy", "keep_for", "days", "options"), CELLS)
def test_a_replay_is_the_slow_loop(policy: str, keep_for: str, days: float | None, options: dict[str, Any]) -> None:
    log = kept_log(4000, 1, days=days, dimension=3 if policy == "linucb" else 0)
    asked = plan(log, policy, keep_for=keep_for, **options)
    lived = slow(log, asked, days=days)
    assert len(lived) > 100
    for batch_size in (65_536, 700, 64):
        assert displays(execute(asked, batch_size=batch_size)) == lived


LOG = kept_log(4000, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"learn_every": 200, "learn_lag": 50},
        {"learn_every": "6h"},
        {"explore_first": 100},
        {"explore_first": 100, "learn_every": "6h"},
        {"clock": "wall", "learn_every": 100},
    ],
)
def test_no_schedule_depends_on_how_a_log_is_read(options: dict[str, Any]) -> None:
    asked = plan(LOG, "thompson", keep_for="user", window=300, **options)
    whole = execute(asked)
    for batch_size in (700, 64):
        part = execute(asked, batch_size=batch_size)
        assert displays(part) == displays(whole)
        assert (part.delivered, part.pending, part.expired) == (whole.delivered, whole.pending, whole.expired)
    assert whole.generated == whole.delivered + whole.pending + whole.expired


def test_on_a_live_clock_a_unit_comes_back_as_long_after_as_it_did() -> None:
    asked = plan(LOG, "thompson", keep_for="user", learn_every="2h")
    assert asked.pushes is not None
    assert asked.pushes.clock is not None
    user, time = LOG.column("user"), np.asarray(LOG.column("time"))
    lived = displays(execute(asked))
    first: dict[Any, int] = {}
    for n, i in enumerate(lived, 1):
        begun = first.setdefault(user[i], n)
        if begun < n:
            earliest = begun + rounds_until(asked.pushes.clock, begun, int(time[i] - time[lived[begun - 1]]))
            # Not before it is due, and then as soon as no other one is.
            assert earliest <= n < earliest + 50


def test_a_policy_that_explores_for_ever_draws_uniformly_and_units_keep_that() -> None:
    result = replay(LOG, "thompson", keep_for="user", explore_first=4000)
    user, action = LOG.column("user"), LOG.column("action")
    shown: dict[Any, set[int]] = {}
    for i in displays(result):
        shown.setdefault(user[i], set()).add(int(action[i]))
    assert {len(of) for of in shown.values()} == {1}
    assert len(shown) < result.rounds


def test_first_displays_and_later_ones_are_valued_beside_the_value_of_all() -> None:
    result = replay(LOG, "ucb1", keep_for="user")
    [segments] = result.segments
    first, later = segments.groups
    assert first.value.n + later.value.n == result.value.n == result.rounds
    together = first.value.estimate * first.value.n + later.value.estimate * later.value.n
    assert together == pytest.approx(result.value.estimate * result.rounds)
    [lived] = [one for one in result.findings if one.code == "kept-rounds"]
    assert lived.numbers["chosen"] == first.value.n
    by_user = replay(LOG, "ucb1", keep_for="user", by="user")
    assert [one.column for one in by_user.segments] == [segments.column, "user"]


def test_intervals_of_expected_values_are_by_unit() -> None:
    alone, named = (replay(LOG, "ucb1", keep_for="user", bootstrap=20, **more) for more in ({}, {"cluster_by": "user"}))
    assert alone.plan["clusters"]["by"] == "user"
    assert alone.expected_value == named.expected_value
    assert alone.resampled == replay(LOG, "ucb1", keep_for="user", bootstrap=20, jobs=2).resampled


def test_each_copy_of_a_unit_in_a_resampled_log_begins_with_its_first_display() -> None:
    clusters = plan(LOG, "ucb1", keep_for="user").clusters
    units = read_units(LOG, KeptFor("user@6h", "user", Span(None, 21_600.0)))
    assert clusters is not None
    draws, seen, number = ClusterDraws(clusters, np.random.default_rng(0), units), dict[int, list[int]](), 0
    for first in range(0, len(LOG), 1000):
        at, unit = draws.with_units(first, 1000)
        number += len(at)
        for display, of in zip((first + at).tolist(), unit.tolist(), strict=True):
            seen.setdefault(of, []).append(display)
    assert len(seen) == draws.n_units
    of_unit = {unit: np.flatnonzero(units.code == unit) for unit in range(len(units.first))}
    for shown in seen.values():
        unit = units.code[shown[0]]
        assert shown[0] == units.first[unit]
        assert sorted(shown) == of_unit[unit].tolist()
    assert 0.8 * len(LOG) < number < 1.2 * len(LOG)


def test_clusters_that_cut_a_unit_apart_are_refused_and_larger_ones_hold() -> None:
    with pytest.raises(ParameterError, match=r"cluster_by='every:1h'` cuts the displays of user apart.* Hint: leave"):
        plan(LOG, "ucb1", keep_for="user", cluster_by="every:1h")
    of_user = {user: f"c{int(user[1:]) % 200}" for user in LOG.column("user")}
    larger = pa.array([of_user[user] for user in LOG.column("user")])
    log = LOG.changed(displays=LOG.displays.append_column("country", larger))
    clusters = plan(log, "ucb1", keep_for="user", cluster_by="country").clusters
    assert clusters is not None
    assert clusters.by == "country"
    assert replay(log, "ucb1", keep_for="user", cluster_by="country", bootstrap=20).expected_value is not None


def test_a_logger_that_chose_anew_is_refused_with_both_shares() -> None:
    log = kept_log(4000, 1, keeps=False)
    with pytest.raises(DataError) as refused:
        plan(log, "ucb1", keep_for="user")
    said = str(refused.value)
    assert "\n" not in said
    assert "did not keep its action by user" in said
    shares = [float(word.strip("%.")) for word in said.split() if "%" in word]
    assert shares[0] == pytest.approx(shares[1], abs=5.0)
    with pytest.raises(DataError, match="user@1d"):
        plan(kept_log(4000, 1, days=0.1), "ucb1", keep_for="user")
    assert plan(kept_log(4000, 1, days=0.1), "ucb1", keep_for="user@8640s").kept is not None


def test_too_few_units_are_refused_in_the_words_that_were_asked() -> None:
    user = pa.array(["a", "b"] * 300)
    shown = np.array([0, 1] * 300)
    log = build_log(time=START + 60 * np.arange(600), action=shown, propensity=P[shown], n_actions=3)
    log = log.changed(displays=log.displays.append_column("user", user))
    with pytest.raises(ParameterError, match=r"`keep_for='user'` makes 2 clusters, worth 2.0 clusters"):
        plan(log, "ucb1", keep_for="user")


def test_a_few_strays_are_noise_and_no_rounds() -> None:
    action = np.asarray(LOG.column("action")).copy()
    user = LOG.column("user")
    [stray] = np.flatnonzero(user == "u3")[5:6]
    action[stray] = (action[stray] + 1) % 3
    at = LOG.displays.schema.get_field_index("action")
    log = LOG.changed(displays=LOG.displays.set_column(at, "action", pa.array(action, LOG.schema.field("action").type)))
    asked = plan(log, "random", keep_for="user", clock="wall")
    assert asked.kept is not None
    assert asked.kept.units.alike == asked.kept.units.several - 1
    assert stray not in displays(execute(asked))


def test_a_longer_memory_of_the_logger_is_said() -> None:
    found = {one.code for one in replay(LOG, "ucb1", keep_for="user@6h").findings}
    assert "kept-longer" in found
    assert "kept-longer" not in {one.code for one in replay(LOG, "ucb1", keep_for="user").findings}


@pytest.mark.parametrize("keep_for", ["@7d", "user@", "user@soon", "user@0", "user@0h", "every:1d", "user@-1d"])
def test_what_names_no_unit_is_refused_in_a_line_that_says_how_one_is_written(keep_for: str) -> None:
    with pytest.raises(ParameterError) as refused:
        plan(LOG, "ucb1", keep_for=keep_for)
    said = str(refused.value)
    assert "\n" not in said
    assert f"keep_for='{keep_for}'" in said
    assert "user@7d" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sampler": "queue"}, "use `sampler='rejection'`"),
        ({"sampler": "keep"}, "use `sampler='rejection'`"),
        ({"doubly_robust": True}, "asks the policy at every display"),
        ({"final": "last:20%"}, "asks the policy at every display"),
        ({"reward": "observed"}, "use `reward='eventual'`"),
        ({"accept_quantile": 0.05}, "leave it out"),
        ({"repeats": 2}, "tear units apart"),
        ({"propensity": "estimate:context"}, "that of the first display decides"),
        ({"propensity": "estimate", "bootstrap": 20}, "cannot estimate the propensities of units anew"),
        ({"keep_for": "account"}, "`keep_for='account'`: log 'test' keeps no column 'account'"),
        ({"keep_for": "user@500"}, "has times. Hint: give a duration: user@7d"),
    ],
)
def test_what_does_not_go_with_units_is_refused_in_one_line(options: dict[str, Any], says: str) -> None:
    log = kept_log(4000, 1, dimension=2)
    with pytest.raises(ParameterError) as refused:
        plan(log, "ucb1", **{"keep_for": "user", **options})
    said = str(refused.value)
    assert "\n" not in said
    assert says in said


def test_a_log_of_rounds_counts_rounds() -> None:
    log = kept_log(4000, 1, rounds=True, days=1.0)
    with pytest.raises(ParameterError, match=r"counts rounds, not time. Hint: give rounds: user@500"):
        plan(log, "ucb1", keep_for="user@1d")
    asked = plan(log, "ucb1", keep_for="user@500")
    assert displays(execute(asked)) == slow(log, asked, days=1.0)


def test_propensities_are_those_of_first_displays() -> None:
    """A logger that logs a kept action with probability 1, as it was by then, is read all the same."""
    user, first = LOG.column("user"), set[Any]()
    p = np.asarray(LOG.column("propensity")).copy()
    for i, name in enumerate(user):
        if name in first:
            p[i] = 1.0
        first.add(name)
    at = LOG.displays.schema.get_field_index("propensity")
    log = LOG.changed(displays=LOG.displays.set_column(at, "propensity", pa.array(p)))
    assert displays(replay(log, "ucb1", keep_for="user")) == displays(replay(LOG, "ucb1", keep_for="user"))
    estimated = plan(LOG, "ucb1", keep_for="user", propensity="estimate")
    asked = estimated.kept
    assert asked is not None
    shown = np.bincount(asked.units.action) / len(asked.units.first)
    np.testing.assert_allclose(estimated.propensities.smallest, shown)


def test_what_a_log_says_of_its_deployment_is_done_unless_another_thing_is_asked() -> None:
    stated = LOG.with_meta(deployment={"keep_for": "user"})
    assert displays(replay(stated, "ucb1")) == displays(replay(LOG, "ucb1", keep_for="user"))
    assert replay(stated, "ucb1", keep_for="none").value == replay(LOG, "ucb1").value


def test_a_policy_that_needs_its_horizon_is_told_one_that_it_reaches() -> None:
    asked = plan(LOG, "odaaf", keep_for="user")
    assert execute(asked).rounds == asked.setting.horizon


def test_worlds_without_units_refuse_it_in_one_line() -> None:
    stated = LOG.with_meta(deployment={"keep_for": "user"})
    with pytest.raises(ParameterError, match=r"twins of an audit have displays, and no user who comes back.* Hint: "):
        audit(LOG, "ucb1", keep_for="user", twins=20)
    with pytest.raises(ParameterError, match=r"twins of an audit"):
        audit(stated, "ucb1", twins=20)
    with pytest.raises(ParameterError, match=r"no user comes back in a world that is fitted to a log\. Hint: fit it"):
        World.fit(stated).play("ucb1", rounds=100)


def test_a_comparison_keeps_units_and_checks_what_the_logger_chose_at_first_displays() -> None:
    found = compare(LOG, ["ucb1", "fixed:action=1"], keep_for="user", bootstrap=20)
    assert found.results[0].value == replay(LOG, "ucb1", keep_for="user").value
    assert found.results[0].resampled == replay(LOG, "ucb1", keep_for="user", bootstrap=20).resampled
    assert found.check is not None
    assert found.check["kept actions"].numbers["share"] == 1.0
    assert found.check["calibration"].verdict == "pass"


def test_a_policy_that_reads_contexts_is_not_weighed_at_later_displays() -> None:
    log = kept_log(4000, 1, dimension=3)
    pairs = WeightedPairs([plan(log, policy, keep_for="user") for policy in ("fixed:action=1", "random", "linucb")])
    assert pairs.weighable(0, 1)
    assert not pairs.weighable(0, 2)


@pytest.mark.parametrize(("keeps", "verdict", "share"), [(True, "pass", 1.0), (False, "pass", 0.2)])
def test_a_check_says_whether_the_logger_kept_its_action(keeps: bool, verdict: str, share: float) -> None:
    found = check(kept_log(4000, 1, keeps=keeps))["kept actions"]
    assert found.verdict == verdict
    assert found.numbers["share"] == pytest.approx(share, abs=0.05)
    assert ("keep_for='user'" in found.what) == keeps


def test_a_check_warns_of_a_logger_that_kept_its_action_in_part() -> None:
    log = kept_log(4000, 1, days=0.2)
    assert check(log)["kept actions"].verdict == "warn"
    said = check(log.with_meta(deployment={"keep_for": "user@17280s"}))
    assert said["kept actions"].verdict == "pass"
    assert said["calibration"].verdict == "pass"
