"""A replay that goes on from what a policy learned elsewhere is one life of the policy, on other displays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import audit, compare, load, load_policy, plan, replay, simulate
from evaluator.comparisons.kept import question_key
from evaluator.errors import EvaluatorError, ParameterError, UsageError
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists, to_numpy
from evaluator.log.vectors_of_displays import in_order
from evaluator.policies import dispatch
from evaluator.replays.learned.file import content_hash, state_arrays
from evaluator.replays.learned.policy import LearnedPolicy
from tests.policies.mine import CompiledGreedy, Greedy

N, HALF, WINDOW = 8_000, 4_000, 40


@pytest.fixture(scope="module")
def halves() -> tuple[Log, Log]:
    log = load("synthetic", limit=N)
    return log.until(HALF), log.after(HALF)


@pytest.fixture(scope="module")
def saved(halves: tuple[Log, Log], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("saved")
    for policy in ("delayed-klucb", "linucb", "thompson"):
        replay(halves[0], policy, window=WINDOW, seed=1).learned.save(folder / f"{policy}.npz")
    return {file.stem: file for file in folder.glob("*.npz")}


def told(learned: LearnedPolicy, log: Log, displays: np.ndarray) -> list[int]:
    """Live the rounds on these displays of a log, with the conversions that come meanwhile; return the choices."""
    rounds = plan(log, "ucb1", window=WINDOW).rounds
    delay, value = rounds.delay, to_numpy(log.conversions["value"])
    of, action = to_numpy(log.conversions["display_id"]), log.column("action")
    vectors = log.column("action_set") if learned.setting.rows else None
    due: dict[int, list[tuple[int, int]]] = {}
    chosen = []
    for i in displays:
        context = None if vectors is None else vectors[i]
        chosen.append(learned.choose(context))
        learned.displayed(context, int(action[i]))
        for c in np.flatnonzero(of == i):
            due.setdefault(learned.rounds + int(delay[c]), []).append((int(i), int(c)))
        for shown, c in due.pop(learned.rounds, []):
            at = None if vectors is None else vectors[shown]
            learned.converted(at, int(action[shown]), delay=int(delay[c]), value=float(value[c]))
    return chosen


def assert_equal_states(one: LearnedPolicy, other: LearnedPolicy) -> None:
    assert one.rounds == other.rounds
    assert one.rng.bit_generator.state == other.rng.bit_generator.state
    for (name, array), (_, like) in zip(state_arrays(one.state), state_arrays(other.state), strict=True):
        if name.endswith(".rival"):  # which action was looked at last: it saves time, and decides nothing
            continue
        np.testing.assert_allclose(array, like, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("policy", ["delayed-klucb", "linucb", "thompson"])
def test_the_second_half_is_lived_as_the_learned_policy_would(
    policy: str, halves: tuple[Log, Log], saved: dict[str, Path]
) -> None:
    first = load_policy(saved[policy])
    result = replay(halves[1], policy, warm_start=saved[policy], seed=2)
    displays = to_numpy(result.trajectory["display_id"])
    assert result.rounds == len(displays) > 200
    by_hand = load_policy(saved[policy])
    assert int(by_hand.pending.size[0]) > 0
    chosen = told(by_hand, halves[1], displays)
    assert chosen == to_numpy(result.trajectory["action"]).tolist()
    by_hand.end_round()
    if result.learned.prepared:
        dispatch.begin(by_hand.state, by_hand.rng)
    assert_equal_states(result.learned, by_hand)
    assert result.learned.rounds == first.rounds + result.rounds
    assert result.generated == result.delivered + result.expired + result.pending
    assert result.plan["window_rounds"] == WINDOW
    assert result.plan["warm_start"]["sha256"] == content_hash(load_policy(saved[policy]).content())
    assert result.plan["warm_start"]["rounds"] == first.rounds
    assert any(line.startswith(f"warm start: the policy began with what it had learned in {first.rounds:,} rounds on")
               for line in result.assumptions)  # fmt: skip
    # In memory as from its file, and it stays as it was.
    again = replay(halves[1], first, seed=2)
    assert again.trajectory == result.trajectory
    assert content_hash(first.content()) == result.plan["warm_start"]["sha256"]


def test_it_is_another_life_than_one_that_begins_with_nothing(halves: tuple[Log, Log], saved: dict[str, Path]) -> None:
    found = compare(
        halves[1],
        ["linucb", "random", "delayed-klucb"],
        baseline="linucb",
        warm_start=str(saved["linucb"]),
        window=WINDOW,
    )
    alone = [
        replay(halves[1], "linucb", warm_start=str(saved["linucb"])),
        *(replay(halves[1], policy, window=WINDOW) for policy in ("random", "delayed-klucb")),
    ]
    assert [result.trajectory for result in found.results] == [result.trajectory for result in alone]
    assert [result.plan["warm_start"] is None for result in found.results] == [False, True, True]
    assert [result.plan["options"]["warm_start"] is None for result in found.results] == [False, True, True]
    cold = replay(halves[1], "linucb", window=WINDOW)
    assert found.results[0].value.estimate != cold.value.estimate
    in_memory = compare(halves[1], [load_policy(saved["linucb"]), "random"])
    assert in_memory.results[0].trajectory == alone[0].trajectory
    with pytest.raises(ParameterError, match=r"holds 'linucb' with .*, not Random"):
        compare(halves[1], ["random"], baseline="random", warm_start=str(saved["linucb"]))


def test_resamples_and_repeats_begin_with_the_same(halves: tuple[Log, Log], saved: dict[str, Path]) -> None:
    before = saved["thompson"].read_bytes()
    options: dict[str, Any] = {"bootstrap": 20, "repeats": 2, "seed": 3}
    learned = load_policy(saved["thompson"])
    one, other = (replay(halves[1], policy, **options) for policy in (learned, load_policy(saved["thompson"])))
    assert one.resampled == other.resampled
    assert one.expected_value is not None
    assert one.trajectory == other.trajectory
    assert saved["thompson"].read_bytes() == before
    assert replay(halves[1], learned, **options).resampled == one.resampled


def test_kept_results_are_known_by_what_the_policy_knew(halves: tuple[Log, Log], saved: dict[str, Path]) -> None:
    learned = load_policy(saved["linucb"])
    keys = [question_key(plan(halves[1], policy), "log", []) for policy in (learned, load_policy(saved["linucb"]))]
    assert keys[0] == keys[1]
    learned.choose(halves[1].column("action_set")[0])
    learned.displayed(halves[1].column("action_set")[0], 0)
    assert question_key(plan(halves[1], learned), "log", []) != keys[0]


def renumbered(log: Log, seed: int) -> Log:
    order = np.random.default_rng(seed).permutation(log.n_actions)
    return in_order(log, [log.labels[k] for k in order])


@pytest.mark.parametrize("policy", ["delayed-klucb", "linucb"])
def test_actions_are_matched_by_their_labels(policy: str, halves: tuple[Log, Log], saved: dict[str, Path]) -> None:
    mixed = renumbered(halves[1], 4).validated()
    assert mixed.labels != halves[1].labels
    results = [replay(log, policy, warm_start=str(saved[policy])) for log in (halves[1], mixed)]
    assert results[0].trajectory == results[1].trajectory
    assert results[0].action_labels == results[1].action_labels == tuple(halves[1].labels)


def test_a_converted_log_in_another_order_is_the_same_log(tmp_path: Path) -> None:
    from evaluator.datasets import convert

    convert("synthetic", tmp_path / "log", limit=500)
    stored, memory = renumbered(load(tmp_path / "log"), 5), renumbered(load("synthetic", limit=500), 5)
    assert stored.validated().displays.equals(memory.displays)
    assert stored.actions.equals(memory.actions)
    back = in_order(stored, load("synthetic", limit=500).labels)
    assert back.displays.equals(load("synthetic", limit=500).displays)


def test_what_does_not_fit_is_said(halves: tuple[Log, Log], saved: dict[str, Path]) -> None:
    first, second = halves
    klucb, linucb = saved["delayed-klucb"], saved["linucb"]
    labels = [*second.labels[1:], "new"]
    other = replace(second, actions=second.actions.set_column(1, "label", pa.array(labels, pa.string())))

    def refused(said: str, log: Log, policy: Any, kind: type[EvaluatorError] = ParameterError, **options: Any) -> None:
        with pytest.raises(kind, match=said):
            replay(log, policy, **options)

    refused("exclude each other", second, load_policy(klucb), sampler="queue")
    refused("`delays` and `warm_start` exclude", second, load_policy(klucb), delays="geometric:20")
    refused("`window='50'`, and the policy learned with a window of 40", second, load_policy(klucb), window=50)
    refused(r"started for [\d,]+ rounds and has lived [\d,]+: [\d,]+ are left, and `horizon=3999`", second,
            load_policy(klucb), horizon=3_999)  # fmt: skip
    refused("learned from displays of this log, 'synthetic'", first, load_policy(klucb), UsageError)
    refused("learned from displays of this log", load("synthetic", limit=N), load_policy(klucb), UsageError)
    refused("holds 'linucb' with", second, "ucb1", warm_start=str(linucb))
    refused("No policy file", second, "ucb1", EvaluatorError, warm_start="nowhere.npz")
    refused("plain Python class", second, replay(first, Greedy, window=WINDOW).learned, UsageError)
    refused("has action new, and the policy learned of 10 actions: ", other, load_policy(klucb))
    for call in (lambda: audit(second, load_policy(klucb)), lambda: simulate("vernade2017-high", load_policy(klucb))):
        with pytest.raises(UsageError, match="lets policies begin with nothing, and delayed-klucb has learned"):
            call()
    told = first.displays.column_names
    without = replace(second, displays=second.displays.drop_columns([c for c in ("action_set",) if c in told]))
    contexts = np.ones((len(second), 2), np.float32)
    narrow = replace(without, displays=without.displays.append_column("context", fixed_size_lists(contexts)))
    refused("10 vectors of 5 coordinates a display, and log 'synthetic' has a vector of 2", narrow, load_policy(linucb))


def test_parts_of_one_log_by_options_alone(tmp_path: Path) -> None:
    log = load("synthetic", limit=N)
    learned = replay(log, CompiledGreedy(prior=2.0), window=WINDOW, final="last:50%", propensity="uniform").learned
    result = replay(log, learned, delays_from="first:50%")
    assert to_numpy(result.trajectory["display_id"]).min() >= learned.learned_from[0].end_display
    assert [source.log for source in result.learned.learned_from] == ["synthetic", "synthetic"]
    # What has learned from both parts is judged on neither.
    with pytest.raises(UsageError, match="learned from displays of this log"):
        replay(log, result.learned, delays_from="first:50%")
