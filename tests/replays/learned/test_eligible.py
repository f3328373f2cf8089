"""A learned policy that is told what is eligible chooses as its replay would have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaluator
from evaluator import load_policy
from evaluator.api import plan
from evaluator.engine import log_replay as engine
from evaluator.engine import loop
from evaluator.engine.eligible_choice import NO_KEY
from evaluator.errors import ParameterError, SourceError
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.policies import dispatch
from evaluator.replays.learned.policy import LearnedPolicy, learned_policy
from tests.engine.test_among import CHOOSING, COMPILED, K, Mine, N, log_with, random_sets
from tests.replays.learned.policy_files import lived, read, write

CUT = 200
SETS = random_sets()


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile nothing but where a test is about that."""
    monkeypatch.setattr(loop, "replay", loop.replay_interpreted)


def replayed(planned: Any, displays: int) -> engine.Replay:
    replay = engine.begin(planned.policy, planned.setting, sampler="rejection")
    first, batch = next(planned.rounds.batches(displays))
    replay.read(first, batch)
    return replay.result()


def contexts(log: Log, planned: Any, *, alone: bool) -> list[Any]:
    """Return what each display is given as: nothing, its context, or vectors, of the eligible actions if `alone`."""
    if planned.setting.rows == 0:
        return [None] * N
    column = log.column(planned.rounds.vectors)
    return [column[i][SETS[i]] if alone else column[i] for i in range(N)]


def serve(learned: LearnedPolicy, log: Log, planned: Any, displays: npt.NDArray[np.int64], *, alone: bool) -> list[int]:
    """Serve these displays, one a round, and tell of their conversions when they come; return what was chosen."""
    _, batch = next(planned.rounds.batches(N))
    given, action = contexts(log, planned, alone=alone), log.column("action")
    due: dict[int, list[tuple[Any, int, int, float]]] = {}
    chosen = []
    for i in displays:
        eligible = np.flatnonzero(SETS[i])
        chosen.append(learned.choose(given[i], eligible=eligible))
        shown = int(action[i])
        own = given[i][eligible == shown][0] if alone else given[i]
        learned.displayed(own, shown)
        for c in range(batch.first_conversion[i], batch.first_conversion[i + 1]):
            delay = int(batch.delay[c])
            due.setdefault(learned.rounds + delay, []).append((own, shown, delay, float(batch.value[c])))
        for context, what, delay, value in due.pop(learned.rounds, []):
            learned.converted(context, what, delay=delay, value=value)
    return chosen


def goes_on(log: Log, policy: Any, path: Path, *, alone: bool = False) -> None:
    planned = plan(log, policy, window=60)
    whole = replayed(planned, N).displays
    first = replayed(planned, CUT)
    learned = learned_policy(planned.policy, planned.setting, tuple(log.labels), first)
    assert learned.rounds == np.count_nonzero(whole < CUT) > 20
    # A round has begun, its draws too, unless the last display closed one.
    assert learned.prepared == (first.tie_key > NO_KEY) == (CUT - 1 not in whole)
    learned.save(path)
    later = whole[whole >= CUT]
    assert serve(load_policy(path), log, planned, later, alone=alone) == log.column("action")[later].tolist()
    assert len(later) > 20


@pytest.mark.parametrize("policy", [*CHOOSING, "delayed-ucb:cdf=online", "ucb1:ties=lowest", "linucb:ties=lowest"])
def test_served_round_by_round_it_makes_the_choices_of_the_replay(policy: str, tmp_path: Path) -> None:
    goes_on(log_with(SETS), policy, tmp_path / "learned.npz")


@pytest.mark.parametrize("policy", ["linucb", "otflints"])
@pytest.mark.parametrize("alone", [False, True], ids=["all vectors", "those of the eligible alone"])
def test_with_vectors_of_each_action(policy: str, alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if policy == "linucb":
        monkeypatch.setattr(loop, "replay", COMPILED)
    goes_on(log_with(SETS, "dense"), policy, tmp_path / "learned.npz", alone=alone)


def test_with_columns_of_probabilities(tmp_path: Path) -> None:
    log = log_with(SETS)
    target = np.random.default_rng(2).dirichlet(np.ones(K), N)
    log = replace(log, displays=log.displays.append_column("target", fixed_size_lists(target)))
    goes_on(log, "columns", tmp_path / "learned.npz")


@pytest.mark.parametrize("policy", ["thompson", "linucb"])
def test_a_policy_saved_on_a_log_with_sets_must_be_told_them(policy: str, tmp_path: Path) -> None:
    learned = evaluator.replay(log_with(SETS), policy, window=60).learned
    assert learned is not None
    learned.save(tmp_path / "learned.npz")
    learned = load_policy(tmp_path / "learned.npz")
    context = np.ones(learned.setting.dimension)
    with pytest.raises(
        ParameterError, match=r"learned from a log in which not every.*choose\(display, eligible=\[0, 2\]\)"
    ):
        learned.choose(context)
    assert "eligible=[...])] is its choice" in repr(learned)
    before = learned.rounds
    for wrong in ([], [K], [-1], ["a"], [[0]], [True, False], 2, {1, 2}):
        with pytest.raises(
            ParameterError, match=r"`eligible` is .* give the indices of one action or more, from 0 to 5"
        ):
            learned.choose(context, eligible=wrong)  # type: ignore[arg-type]
    assert learned.rounds == before
    assert learned.choose(context, eligible=[3]) == 3
    values = np.empty(K)
    dispatch.estimate(learned.state, context.reshape(1, -1), values)
    assert learned.choose(context, eligible=[1, 4], greedy=True) == max((1, 4), key=lambda k: values[k])


@pytest.mark.parametrize("policy", ["ucb1", "thompson", "random", "linucb", "lints"])
def test_one_saved_without_sets_accepts_them(policy: str, tmp_path: Path) -> None:
    lived(policy).save(tmp_path / "learned.npz")
    learned = load_policy(tmp_path / "learned.npz")
    rng = np.random.default_rng(3)
    d = learned.setting.dimension
    for _ in range(40):
        eligible = np.flatnonzero(rng.random(4) < 0.5)
        context = rng.random((len(eligible) or 4, d)) if d else None
        action = learned.choose(context, eligible=eligible if len(eligible) else None)
        assert action in (eligible if len(eligible) else range(4))
        own = None if context is None else context[list(eligible).index(action)] if len(eligible) else context
        learned.displayed(own, action)
        learned.converted(own, action, delay=0)
    with pytest.raises(ParameterError, match=r"got shape \(7, 7\)") if d else pytest.raises(ParameterError, match="is"):
        learned.choose(np.ones((7, 7)), eligible=[0, 1] if d else [9])


@pytest.mark.parametrize("policy", ["lints", "otflints"])
def test_files_of_versions_that_drew_every_action_are_read(policy: str, tmp_path: Path) -> None:
    log = log_with(SETS)
    planned = plan(log, policy, window=60)
    learned = learned_policy(planned.policy, planned.setting, tuple(log.labels), replayed(planned, CUT))
    # They began their rounds by drawing theta~ of every action, and kept that alone.
    dispatch.begin(learned.state, learned.rng)
    learned.save(tmp_path / "now.npz")
    about, arrays = read(tmp_path / "now.npz")
    for name in ("key", "scale"):
        del arrays[f"state.sampler.{name}"]
    loaded = load_policy(write(tmp_path / "then.npz", about, arrays))
    assert loaded.fresh
    context, draw = log.column("context")[CUT], learned.state.sampler.draw
    eligible = np.flatnonzero(SETS[CUT])
    assert loaded.choose(context, eligible=eligible) == eligible[np.argmax(draw[eligible] @ context)]
    loaded.displayed(context, int(eligible[0]))
    assert loaded.choose(context, eligible=eligible) in eligible
    assert loaded.state.sampler.key[0] >= 0


def test_without_an_answer_it_refuses_unless_all_are_eligible() -> None:
    learned = lived("qpm-d")
    said = r"and `eligible` leaves some out\. Hint: take one that can: random"
    with pytest.raises(ParameterError, match=f"qpm-d cannot choose among some of its actions, {said}"):
        learned.choose(eligible=[0, 1])
    assert learned.choose(eligible=range(4)) in range(4)


def test_a_class_of_ones_own_is_told_as_in_a_replay() -> None:
    learned = evaluator.replay(log_with(SETS), Mine, window=60).learned
    assert learned is not None
    assert learned.choose(np.ones(5), eligible=[4, 2]) in (2, 4)
    learned.displayed(np.ones(5), 2)


def test_a_replay_goes_on_from_a_policy_that_knows_no_sets_and_not_the_other_way(tmp_path: Path) -> None:
    without, given = log_with(None), log_with(SETS)
    evaluator.replay(without, "otflinucb", window=60).learned.save(tmp_path / "all.npz")  # type: ignore[union-attr]
    found = evaluator.replay(given, "otflinucb", warm_start=tmp_path / "all.npz")
    assert found.rounds > 20
    assert found.learned is not None
    found.learned.save(tmp_path / "some.npz")
    assert load_policy(tmp_path / "some.npz").setting.among
    with pytest.raises(
        ParameterError, match=r"learned where not every action is always eligible, and in log .* all are"
    ):
        evaluator.replay(without, "otflinucb", warm_start=tmp_path / "some.npz")


@pytest.mark.parametrize("key", [-2, 2**32, 0.5, "1", True])
def test_a_forged_key_is_refused(key: object, tmp_path: Path) -> None:
    lived("ucb1").save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    with pytest.raises(SourceError, match="`tie_key` is"):
        load_policy(write(tmp_path / "forged.npz", {**about, "tie_key": key}, arrays))
