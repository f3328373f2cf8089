"""What a replay has learned goes on as the replay would have, also from a file."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from evaluator import load_policy, replay
from evaluator.delays.cdf import DelayCDF
from evaluator.engine.log_replay import run
from evaluator.errors import EvaluatorError, OutputExistsError, ParameterError, PolicyError, SourceError, UsageError
from evaluator.policies import dispatch, resolve
from evaluator.policies.base import Setting
from evaluator.replays.learned.policy import LearnedPolicy, learned_policy
from tests.logged_rounds import LoggedRounds
from tests.logs import bernoulli_log, linear_log
from tests.policies.mine import Greedy
from tests.policies.rounds import random_rounds
from tests.policies.variants import PLAYED

N, CUT = 600, 350
LABELS = ("a", "b", "c", "d")
DELAYS = DelayCDF.geometric(12.0)


def setting_of(rounds: LoggedRounds, *, reward_max: float = 1.0) -> Setting:
    d = rounds.vectors.shape[2]
    rows = rounds.vectors.shape[1] if d else 0
    return Setting(n_actions=4, dimension=d, rows=rows, window=40, horizon=N, delay_cdf=DELAYS, reward_max=reward_max)


def after(spec: str, rounds: LoggedRounds, *, reward_max: float = 1.0) -> LearnedPolicy:
    policy, setting = resolve(spec), setting_of(rounds, reward_max=reward_max)
    return learned_policy(policy, setting, LABELS, run(policy, setting, rounds, sampler="keep", seed=3))


def go_on(learned: LearnedPolicy, rounds: LoggedRounds, displays: np.ndarray) -> list[int]:
    """Live the next rounds on these displays; return what was chosen."""
    due: dict[int, list[tuple[int, int, int, float]]] = {}
    chosen = []
    for i in displays:
        vectors = rounds.vectors[i if len(rounds.vectors) > 1 else 0]
        context = None if vectors.shape[1] == 0 else vectors[0] if vectors.shape[0] == 1 else vectors
        chosen.append(learned.choose(context))
        action = int(rounds.action[i])
        learned.displayed(context, action)
        for c in range(rounds.first_conversion[i], rounds.first_conversion[i + 1]):
            delay = int(rounds.delay[c])
            due.setdefault(learned.rounds + delay, []).append((int(i), action, delay, float(rounds.value[c])))
        for shown, what, delay, value in due.pop(learned.rounds, []):
            at = rounds.vectors[shown if len(rounds.vectors) > 1 else 0]
            of = None if at.shape[1] == 0 else at[0] if at.shape[0] == 1 else at
            assert learned.converted(of, what, delay=delay, value=value) == (delay <= 40)
    return chosen


@pytest.mark.parametrize("spec", PLAYED)
def test_saved_and_loaded_it_goes_on_exactly_like_the_replay(spec: str, tmp_path: Path) -> None:
    layouts = ("sets", "contexts", "catalogue") if resolve(spec).contextual else ("none",)
    for layout in layouts:
        rounds = random_rounds(layout, N, units=True, seed=5)
        whole = run(resolve(spec), setting_of(rounds), rounds, sampler="keep", seed=3).displays
        learned = after(spec, rounds.first(CUT))
        assert learned.rounds == np.count_nonzero(whole < CUT) > 50
        learned.save(tmp_path / f"{layout}.npz")
        learned = load_policy(tmp_path / f"{layout}.npz")
        assert learned.labels == LABELS
        later = whole[whole >= CUT]
        assert go_on(learned, rounds, later) == rounds.action[later].tolist()


@pytest.mark.parametrize("spec", ["thompson", "klucb", "odaaf", "otflinucb"])
def test_loaded_it_is_told_money_and_learns_shares(spec: str, tmp_path: Path) -> None:
    rounds = random_rounds("sets" if resolve(spec).contextual else "none", N, seed=5)
    money = dataclasses.replace(rounds, value=64.0 * rounds.value)
    whole = run(resolve(spec), setting_of(rounds), rounds, sampler="keep", seed=3).displays
    later = whole[whole >= CUT]
    after(spec, money.first(CUT), reward_max=64.0).save(tmp_path / "money.npz")
    of_money = load_policy(tmp_path / "money.npz")
    assert of_money.setting.reward_max == 64.0
    assert go_on(of_money, money, later) == rounds.action[later].tolist()
    of_shares = after(spec, rounds.first(CUT))
    go_on(of_shares, rounds, later)
    assert np.array_equal(known(of_money), known(of_shares))
    told_shares = load_policy(tmp_path / "money.npz")
    go_on(told_shares, rounds, later)
    assert not np.array_equal(known(told_shares), known(of_shares))


def known(learned: LearnedPolicy) -> np.ndarray:
    """Return the rewards in a policy's state."""
    learned.end_round()
    state = learned.state
    if hasattr(state, "optimist"):
        return np.asarray(state.optimist.ridge.moment)
    return np.asarray(state.sums if hasattr(state, "sums") else state.conversions)


def test_a_file_from_before_policies_were_told_shares_goes_on_as_it_did(tmp_path: Path) -> None:
    learned = after("thompson", random_rounds("none", N).first(CUT))
    learned.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(bytes(arrays.pop("about")))
    assert about["schema"] == "evaluate.policy/5"
    assert about["setting"].pop("reward_max") == 1.0
    old = json.dumps({**about, "schema": "evaluate.policy/1"}).encode()
    np.savez(tmp_path / "old.npz", about=np.frombuffer(old, np.uint8), **arrays)
    loaded = load_policy(tmp_path / "old.npz")
    assert loaded.setting == learned.setting
    assert [loaded.choose() for _ in range(20)] == [learned.choose() for _ in range(20)]


def test_a_choice_alone_teaches_nothing_and_draws_anew() -> None:
    learned = after("thompson", random_rounds("none", N))
    known = copy.deepcopy(learned.state)
    assert len({learned.choose() for _ in range(300)}) > 1
    assert np.array_equal(learned.state.pulls, known.pulls)
    assert np.array_equal(learned.state.conversions, known.conversions)


@pytest.mark.parametrize("policy", ["otflinucb", "delayed-klucb"])
def test_a_replay_hands_it_on(policy: str, tmp_path: Path) -> None:
    log = linear_log(2000, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
    learned = replay(log, policy, window=50).learned
    learned.save(tmp_path / "learned.npz")
    again = load_policy(tmp_path / "learned.npz")
    context = np.eye(3, 5) if policy == "otflinucb" else None
    assert again.choose(context) == learned.choose(context)
    assert (again.policy, again.labels, again.rounds) == (learned.policy, tuple(log.labels), learned.rounds)
    with pytest.raises(OutputExistsError, match="exists"):
        learned.save(tmp_path / "learned.npz")


def test_it_refuses_what_does_not_fit() -> None:
    learned = after("linucb", random_rounds("contexts", N))
    with pytest.raises(ParameterError, match=r"shape \(5,\), finite; got shape \(2,\)"):
        learned.choose([1.0, 2.0])
    with pytest.raises(ParameterError, match="finite"):
        learned.choose([1.0, 2.0, 3.0, 4.0, np.nan])
    with pytest.raises(ParameterError, match="got shape"):
        learned.choose()
    with pytest.raises(ParameterError, match="Action 4"):
        learned.displayed([1.0, 2.0, 3.0, 4.0, 5.0], 4)
    with pytest.raises(ParameterError, match="delay of 900"):
        learned.converted([1.0, 2.0, 3.0, 4.0, 5.0], 0, delay=900)


def test_it_learns_no_longer_than_it_was_told() -> None:
    rounds = random_rounds("none", N)
    policy = resolve("delayed-ucb")
    setting = Setting(n_actions=4, window=40, horizon=30, delay_cdf=DELAYS)
    learned = learned_policy(policy, setting, LABELS, run(policy, setting, rounds, sampler="keep"))
    assert learned.choose() in range(4)
    with pytest.raises(PolicyError, match="30 rounds"):
        learned.displayed(None, 0)


def test_files_that_are_none(tmp_path: Path) -> None:
    good = tmp_path / "good.npz"
    after("ucb1", random_rounds("none", N)).save(good)
    with np.load(good) as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(bytes(arrays["about"]))

    def file(name: str, changes: dict[str, np.ndarray | None], **said: object) -> Path:
        changed = {**arrays, "about": np.frombuffer(json.dumps({**about, **said}).encode(), np.uint8), **changes}
        np.savez(tmp_path / name, **{k: v for k, v in changed.items() if v is not None})
        return tmp_path / name

    cut = tmp_path / "cut.npz"
    cut.write_bytes(good.read_bytes()[:-200])
    text = tmp_path / "text.npz"
    text.write_text("no policy")
    cases: list[tuple[Path, type[EvaluatorError], str]] = [
        (tmp_path / "none.npz", SourceError, "No policy file"),
        (cut, SourceError, "damaged"),
        (text, SourceError, "no policy file, or damaged"),
        (file("schema.npz", {}, schema="evaluate.policy/9"), SourceError, "evaluate.policy/9"),
        (file("less.npz", {"state.pulls": None}), SourceError, r"lacks 'state.pulls'"),
        (file("more.npz", {"state.more": np.zeros(1)}), SourceError, "also keeps 'state.more'"),
        (file("shape.npz", {"state.pulls": np.zeros(7)}), SourceError, r"state.pulls has shape \(7,\)"),
        (file("unknown.npz", {}, policy="ucb9"), EvaluatorError, "ucb9"),
    ]
    for path, error, words in cases:
        with pytest.raises(error, match=words):
            load_policy(path)
    with pytest.raises(ParameterError, match="not UCB1"):
        load_policy(good, policy=resolve("ucb1:exploration=1"))


def test_nothing_pickled_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", about=np.array([{"schema": 1}], object))
    with pytest.raises(SourceError, match="no policy file"):
        load_policy(tmp_path / "evil.npz")


def test_plain_python_policies_are_not_saved(tmp_path: Path) -> None:
    learned = replay(bernoulli_log(200, [0.5, 0.3], mean_delay=5.0, seed=1), Greedy).learned
    assert learned.choose() in (0, 1)
    with pytest.raises(UsageError, match="plain Python class"):
        learned.save(tmp_path / "mine.npz")


@pytest.mark.parametrize("spec", ["ucb1", "thompson", "otflinucb:width=theorem", "lints"])
def test_asked_for_the_greedy_action_it_goes_on_as_if_nothing_had_been(spec: str, tmp_path: Path) -> None:
    contextual = resolve(spec).contextual
    rounds = random_rounds("sets" if contextual else "none", N, seed=5)
    learned, untouched = after(spec, rounds.first(CUT)), after(spec, rounds.first(CUT))
    learned.save(tmp_path / "learned.npz")
    loaded = load_policy(tmp_path / "learned.npz")
    contexts = rounds.vectors[CUT : CUT + 40] if contextual else [None] * 3
    values = np.empty(4)
    for context in contexts:
        chosen = learned.choose(context, greedy=True)
        assert loaded.choose(context, greedy=True) == chosen
        dispatch.estimate(learned.state, np.zeros((1, 0)) if context is None else context, values)
        assert values[chosen] == values.max()
    later = CUT + np.flatnonzero(rounds.action[CUT:] >= 0)  # the others are thinned out
    assert go_on(learned, rounds, later) == go_on(untouched, rounds, later)


def test_without_estimates_nothing_is_greedy() -> None:
    rounds = random_rounds("target", 60, seed=5)
    learned = after("columns", rounds)
    with pytest.raises(PolicyError, match="columns says nothing of its estimates, so that none is the largest"):
        learned.choose([0.1, 0.2, 0.3, 0.4], greedy=True)
