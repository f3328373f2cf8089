"""Choosing among each display's eligible actions: the lazy loop, its definition, and the loop without sets agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import evaluator
from evaluator.api import plan
from evaluator.engine import log_replay as engine
from evaluator.engine import loop
from evaluator.errors import ParameterError, PolicyError
from evaluator.log import Log
from evaluator.log.eligible import pack
from evaluator.log.schema import fixed_size_lists, uneven_lists
from evaluator.policies.registry import POLICIES, resolve
from tests.logs import build_log

K, N, D = 6, 900, 5
OF_COLUMNS = ["columns", "target:pi", "target:new"]
CHOOSING = [name for name in POLICIES if resolve(name).among and name not in ("columns", "target")]
Truths = npt.NDArray[np.bool_]


def random_sets(n: int = N, share: float = 0.5) -> Truths:
    rng = np.random.default_rng(1)
    sets = rng.random((n, K)) < share
    sets[np.arange(n), rng.integers(0, K, n)] = True
    return sets


def log_with(sets: Truths | None, vectors: str = "context", n: int = N) -> Log:
    """Return a log of displays with these eligible actions, one of them shown at random; without sets, with all."""
    rng = np.random.default_rng(0)
    own = np.ones((n, K), np.bool_) if sets is None else sets
    action = np.array([rng.choice(np.flatnonzero(eligible)) for eligible in own])
    converted = np.flatnonzero(rng.random(n) < 0.1 + 0.1 * action)
    context, action_set = rng.normal(size=(n, D)), rng.normal(size=(n, K, D))
    log = build_log(
        time=np.arange(n),
        action=action,
        context=context if vectors == "context" else None,
        action_set=action_set if vectors == "dense" else None,
        conversion_display=converted,
        conversion_time=converted + rng.integers(0, 40, len(converted)),
        eligible=sets,
        n_actions=K,
    )
    if vectors == "uneven":
        lists = uneven_lists(action_set[own], own.sum(axis=1))
        log = replace(log, displays=log.displays.append_column("action_set", lists))
    if vectors == "features":
        log = replace(log, actions=log.actions.append_column("features", fixed_size_lists(action_set[0])))
    return log.validated()


COMPILED = loop.replay


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile nothing but where a test is about that: the loop's source is one."""
    monkeypatch.setattr(loop, "replay", loop.replay_interpreted)


def walked(log: Log, policy: Any, *, recorded: bool = False, size: int = N) -> engine.Replay:
    """Return the replay of a log whose logger was uniform, so that nothing has to be thinned but by |E|."""
    planned = plan(log, policy, window=60)
    replay = engine.begin(planned.policy, planned.setting, sampler="rejection", recorded=recorded)
    for first, batch in planned.rounds.batches(size):
        replay.read(first, batch)
    return replay.result()


def with_targets(log: Log) -> Log:
    """Return a log with policies as columns: probabilities, and labels, some of them of no action of the log."""
    rng = np.random.default_rng(2)
    displays = log.displays.append_column("target", fixed_size_lists(rng.dirichlet(np.ones(K), N)))
    displays = displays.append_column("target:pi", fixed_size_lists(rng.dirichlet(np.ones(K), N)))
    labels = np.array([*log.labels, "gold"])[rng.integers(0, K + 1, N)]
    return replace(log, displays=displays.append_column("target:new", pa.array(labels, pa.string()))).validated()


VARIANTS = ["delayed-ucb:cdf=online", "ucb1:ties=lowest", "linucb:ties=lowest"]


@pytest.mark.parametrize("policy", [*CHOOSING, *VARIANTS, *OF_COLUMNS])
def test_the_lazy_loop_accepts_what_the_definition_does_and_shows_only_what_is_eligible(policy: str) -> None:
    sets = random_sets()
    log = with_targets(log_with(sets)) if policy in OF_COLUMNS else log_with(sets)
    lazy, whole = walked(log, policy), walked(log, policy, recorded=True)
    assert whole.choices is not None
    read = len(whole.choices)  # a policy with a horizon may stop before the end
    assert sets[np.arange(read), whole.choices].all()
    shown = np.flatnonzero(whole.choices == log.column("action")[:read])
    np.testing.assert_array_equal(whole.displays, shown)
    np.testing.assert_array_equal(lazy.displays, shown)
    assert len(shown) > read / 10


@pytest.mark.parametrize("vectors", ["context", "dense", "features", "uneven"])
def test_vectors_are_those_of_the_action_wherever_a_log_keeps_them(vectors: str) -> None:
    sets = random_sets()
    log = log_with(sets, vectors)
    lazy, whole = walked(log, "linucb"), walked(log, "linucb", recorded=True)
    np.testing.assert_array_equal(lazy.displays, whole.displays)
    # The same numbers, kept in another way: what was eligible only, or of all.
    if vectors == "uneven":
        np.testing.assert_array_equal(lazy.displays, walked(log_with(sets, "dense"), "linucb").displays)
    np.testing.assert_array_equal(lazy.displays, walked(log, "linucb", size=64).displays)


@pytest.mark.parametrize("policy", ["ucb1:ties=lowest", "klucb:ties=lowest", "linucb:ties=lowest"])
def test_where_all_but_one_display_have_every_action_the_loop_without_sets_accepts_the_same(policy: str) -> None:
    sets = np.ones((N, K), np.bool_)
    without = log_with(None)
    sets[-1, (without.column("action")[-1] + 1) % K] = False
    with_sets = replace(without, displays=without.displays.append_column("eligible", pack(sets)))
    with_sets = with_sets.with_meta(propensity="logged")
    one, other = walked(with_sets, policy), walked(without, policy)
    np.testing.assert_array_equal(one.displays[one.displays < N - 1], other.displays[other.displays < N - 1])


def test_a_column_of_labels_shows_its_action_where_it_is_eligible_and_else_one_at_random() -> None:
    sets = random_sets()
    log = with_targets(log_with(sets))
    choices = walked(log, "target:new", recorded=True).choices
    assert choices is not None
    index = np.array([log.labels.index(label) if label in log.labels else -1 for label in log.column("target:new")])
    own = (index >= 0) & sets[np.arange(N), index]
    np.testing.assert_array_equal(choices[own], index[own])
    expected = (sets / sets.sum(axis=1, keepdims=True))[~own]
    counts = np.bincount(choices[~own], minlength=K)
    assert (abs(counts - expected.sum(axis=0)) < 4 * np.sqrt((expected * (1 - expected)).sum(axis=0))).all()


@pytest.mark.parametrize("policy", ["otflinucb", "otflints", *OF_COLUMNS])
def test_compiled_and_interpreted_loops_agree(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = random_sets()
    log = with_targets(log_with(sets)) if policy in OF_COLUMNS else log_with(sets)
    slow = walked(log, policy)
    monkeypatch.setattr(loop, "replay", COMPILED)
    fast = walked(log, policy)
    np.testing.assert_array_equal(fast.displays, slow.displays)


def log_of_places(places: npt.NDArray[np.int64], n_actions: int, vectors: str, n: int = 400) -> Log:
    """Return a log whose actions have these numbers, increasing, among others that are never eligible."""
    rng = np.random.default_rng(5)
    own = rng.random((n, len(places))) < 0.3
    logged = own & (rng.random(len(places)) < 0.8)  # some are eligible and never logged
    logged[np.arange(n), rng.integers(0, 2, n)] = True
    own |= logged
    action = np.array([rng.choice(np.flatnonzero(row)) for row in logged])
    sets = np.zeros((n, n_actions), np.bool_)
    sets[:, places] = own
    converted = np.flatnonzero(rng.random(n) < 0.3)
    context, action_set = rng.normal(size=(n, D)), rng.normal(size=(n, len(places), D))
    log = build_log(
        time=np.arange(n),
        action=places[action],
        propensity=1.0 / logged.sum(axis=1),
        context=context if vectors == "context" else None,
        conversion_display=converted,
        conversion_time=converted + rng.integers(0, 40, len(converted)),
        eligible=sets,
        n_actions=n_actions,
    )
    if vectors == "uneven":
        lists = uneven_lists(action_set[own], own.sum(axis=1))
        log = replace(log, displays=log.displays.append_column("action_set", lists))
    return log


@pytest.mark.parametrize("vectors", ["context", "uneven"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("recorded", [True, False])
def test_where_among_thousands_the_actions_lie_changes_no_choice(
    vectors: str, together: bool, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "replay", COMPILED)
    # The first or second group of 64 words, each action in a word of its own or several in one.
    far = np.array([0, 1, 62, 63, 64, 127, 128, 1000, 4095, 4096, 4097, 4160, 4299])
    first = np.arange(len(far))
    places = first + 4090 if together else far
    spread = log_of_places(places, 4_300, vectors)
    near = log_of_places(first, len(far), vectors)
    one = walked(spread, "linucb:ties=lowest", recorded=recorded, size=50)
    other = walked(near, "linucb:ties=lowest", recorded=recorded)
    assert len(one.displays) > 40
    np.testing.assert_array_equal(one.displays, other.displays)
    if recorded:
        assert one.choices is not None
        assert other.choices is not None
        np.testing.assert_array_equal(one.choices, places[other.choices])


def test_random_play_is_even_over_each_set_and_a_fixed_action_gives_way_at_random() -> None:
    n = 20_000
    sets = random_sets(n)
    log = log_with(sets, n=n)
    for policy, held in (("random", None), ("fixed:action=2", 2)):
        found = walked(log, policy, recorded=True, size=n)
        choice = found.choices
        assert choice is not None
        if held is not None:
            assert (choice[sets[:, held]] == held).all()
        free = np.arange(n) if held is None else np.flatnonzero(~sets[:, held])
        # Rounds draw anew, displays within a round share their draw: of each round one display.
        first = np.unique(np.searchsorted(found.displays, free), return_index=True)[1]
        rows = free[first]
        rank = np.array([(np.flatnonzero(sets[i]) < choice[i]).sum() for i in rows])
        size = sets[rows].sum(axis=1)
        score = (rank + 0.5) / size - 0.5
        error = np.sqrt(((1.0 - 1.0 / size**2) / 12.0).sum())
        assert abs(score.sum()) < 4 * error


def test_a_log_whose_sets_hold_every_action_is_one_without_sets() -> None:
    log = log_with(None)
    full = replace(log, displays=log.displays.append_column("eligible", pack(np.ones((N, K), np.bool_))))
    assert plan(full, "ucb1", window=60).sets is None
    assert plan(full, "qpm-d", window=60).sampler == plan(log, "qpm-d", window=60).sampler


def test_uniform_propensities_are_one_over_the_size_of_the_set() -> None:
    sets = random_sets()
    log = log_with(sets).with_meta(propensity="absent")
    planned = plan(log, "ucb1", window=60, propensity="uniform")
    assert planned.sampler == "rejection"
    np.testing.assert_array_equal(planned.matched.c, np.full(K, 1.0 / sets.sum(axis=1).max()))


@pytest.mark.parametrize("policy", ["qpm-d", "odaaf", "odaaf-b", "odaaf-v", "improved-ucb"])
def test_policies_without_an_answer_are_refused_with_those_that_have_one(policy: str) -> None:
    with pytest.raises(ParameterError, match="cannot choose among some of its actions") as refused:
        plan(log_with(random_sets()), policy, window=60, horizon=100)
    assert "take one that can: random, fixed, columns, target, ucb1" in str(refused.value)


@pytest.mark.parametrize("sampler", ["keep", "queue"])
def test_samplers_that_hold_or_queue_are_refused(sampler: Any) -> None:
    with pytest.raises(ParameterError, match=r"tilts the sets of the rounds.*sampler='rejection'"):
        plan(log_with(random_sets()), "ucb1", window=60, sampler=sampler)


class Mine:
    """Shows the eligible action with the most conversions, and keeps what it was asked."""

    def __init__(self, setting: Any) -> None:
        self.earned = np.zeros(setting.n_actions)

    def choose(self, vectors: Any, rng: Any, eligible: npt.NDArray[np.int64]) -> int:
        assert vectors.shape == (1, D)
        assert (np.diff(eligible) > 0).all()
        return int(eligible[np.argmax(self.earned[eligible])])

    def displayed(self, vectors: Any, action: int) -> None:
        assert vectors.shape == (1, D)

    def converted(self, vector: Any, action: int, delay: int, value: float) -> None:
        self.earned[action] += value


class Blind(Mine):
    def choose(self, vectors: Any, rng: Any) -> int:  # type: ignore[override]
        return 0


class Wrong(Mine):
    def choose(self, vectors: Any, rng: Any, eligible: npt.NDArray[np.int64]) -> int:
        return int(np.setdiff1d(np.arange(K), eligible)[0])


def test_a_class_of_ones_own_is_told_what_is_eligible() -> None:
    log = log_with(random_sets())
    assert evaluator.replay(log, policy=Mine, window=60).rounds > 50
    with pytest.raises(ParameterError, match=r"Blind cannot choose among.*choose\(self, vectors, rng, eligible\)"):
        evaluator.replay(log, policy=Blind, window=60)
    with pytest.raises(PolicyError, match=r"Wrong returned . from choose, round 1, where the eligible actions are"):
        evaluator.replay(log, policy=Wrong, window=60)


def test_an_action_never_logged_is_nobodys_choice_and_counts_for_no_width() -> None:
    sets = random_sets()
    log = log_with(sets)
    wider = np.column_stack([sets, np.ones(N, np.bool_)])
    actions = pa.table({"action": pa.array(np.arange(K + 1, dtype=np.int32)), "label": [f"a{k}" for k in range(K + 1)]})
    at = log.displays.schema.get_field_index("eligible")
    more = replace(log, displays=log.displays.set_column(at, "eligible", pack(wider)), actions=actions)
    more = more.with_meta(propensity="logged")
    assert plan(more, "ucb1", window=60).setting.arms == K
    for policy in ("linucb:ties=lowest", "patient-bandits:ties=lowest"):
        np.testing.assert_array_equal(walked(more, policy).displays, walked(log, policy).displays)
