"""A learned policy takes displays as they come, says what it is, and keeps what it takes to encode them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import load, load_policy, replay
from evaluator.datasets import convert
from evaluator.errors import ParameterError, SourceError
from evaluator.log.encoder import ContextColumn, ContextEncoder
from evaluator.replays.learned.policy import LearnedPolicy
from tests.policies.mine import CompiledGreedy
from tests.reading.sources import dataset
from tests.replays.learned.policy_files import lived, read, write

COUNTRIES, DEVICES = ("de", "fr", "at", "ch", "es", "it", "nl", "pt", ""), ("phone", "tv")


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    rows = ["t,ad,sold,country,device,age"]
    for t in range(400):
        country, device, sold = rng.choice(COUNTRIES), rng.choice(DEVICES), t + 2 if rng.random() < 0.3 else ""
        rows.append(f"{t},{'abc'[rng.integers(3)]},{sold},{country},{device},{rng.random():.3f}")
    context = {"columns": {"country": "category", "device": "category", "age": "number"}, "dimensions": 8}
    return dataset(tmp_path_factory.mktemp("shop"), rows, context=context, display={"propensity_kind": "uniform"})


def saved(learned: LearnedPolicy, path: Path) -> LearnedPolicy:
    learned.save(path)
    return load_policy(path)


@pytest.mark.parametrize("features", [None, "one-hot", "country:one-hot", "age:number"])
def test_a_display_is_decided_as_its_row_of_the_log(spec: Path, features: str | None, tmp_path: Path) -> None:
    convert(spec, tmp_path / "converted", features=features)
    for at, log in enumerate((load(spec, features=features), load(tmp_path / "converted"))):
        file = tmp_path / f"{at}.npz"
        by_vector, by_display = saved(replay(log, "linucb", window=9).learned, file), load_policy(file)
        assert by_display.encoder == log.meta.encoder is not None
        columns = [column.name for column in by_display.encoder.columns]
        rows = [line.split(",")[3:] for line in (spec.parent / "log.csv").read_text().splitlines()[1:]]
        for (country, device, age), context in zip(rows[:60], log.column("context"), strict=False):
            values = {"country": country or None, "device": device, "age": float(age)}
            display = {name: values[name] for name in columns}
            assert by_display.choose(display, greedy=True) == by_vector.choose(context, greedy=True)
            action = by_display.choose(display)
            assert action == by_vector.choose(context)
            assert by_display.labels[action] in ("a", "b", "c")
            for learned, given in ((by_display, display), (by_vector, context)):
                learned.displayed(given, action)
                learned.converted(given, action, delay=0)
        assert np.array_equal(by_display.state.optimist.ridge.theta, by_vector.state.optimist.ridge.theta)


def test_what_a_display_lacks_is_said(spec: Path) -> None:
    learned = replay(load(spec, features="one-hot"), "linucb", window=9).learned
    with pytest.raises(ParameterError, match=r"No context column 'countri'. Hint: did you mean country\?"):
        learned.choose({"countri": "de", "device": "tv", "age": 0.5})
    with pytest.raises(ParameterError, match="the log never had 'us'"):
        learned.displayed({"country": "us", "device": "tv", "age": 0.5}, 0)
    with pytest.raises(ParameterError, match=r"shape \(13,\), finite; .*or give the display itself"):
        learned.choose([1.0])


def test_where_nobody_noted_the_encoding_a_display_is_refused(spec: Path) -> None:
    log = load(spec)
    made_by_hand = replay(log.with_meta(encoder=None), "linucb", window=9).learned
    with pytest.raises(ParameterError, match=r"does not say how its contexts were encoded: .*shape \(10,\)"):
        made_by_hand.choose({"country": "de"})
    other = replace(log.meta.encoder, hashed=9)  # of other contexts than the log holds
    assert replay(log.with_meta(encoder=other), "linucb", window=9).learned.encoder is None
    with pytest.raises(ParameterError, match=r"reads a vector for each action.*shape \(10, 5\)"):
        replay(load("synthetic", limit=2_000), "linucb").learned.choose({"country": "de"})
    assert replay(log, "ucb1", window=9).learned.choose({"country": "de"}) in range(3)  # which reads no context


def test_three_lines(spec: Path, tmp_path: Path) -> None:
    result = replay(load(spec), "linucb", window=9)
    learned = saved(result.learned, tmp_path / "learned.npz")
    waiting = f"{result.pending} conversion{'' if result.pending == 1 else 's'} still to come"
    assert repr(learned).splitlines() == [
        "linucb with diagonal=False, alpha=1.0, ridge=1.0, ties='random': 3 actions, window 9 rounds",
        f"learned in {result.rounds} rounds on log 'mine'; {waiting}",
        "policy.labels[policy.choose({'country': ..., 'device': ..., 'age': ...})] is its choice; then .displayed(), "
        ".converted(), .save()",
    ]
    assert learned._repr_html_().startswith("<pre>linucb with diagonal=False")
    assert repr(lived("ucb1")).splitlines()[1:] == [
        "learned in 60 rounds; 3 conversions still to come",
        "policy.labels[policy.choose()] is its choice; then .displayed(), .converted(), .save()",
    ]
    assert repr(lived("linucb")).endswith("policy.choose(<vectors of shape (4, 3)>)] is its choice; "
                                          "then .displayed(), .converted(), .save()")  # fmt: skip


def test_a_compiled_class_of_ones_own_comes_back_by_the_call_that_the_error_says(spec: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    replay(load(spec), CompiledGreedy(prior=2.0), window=9).learned.save(path)
    with pytest.raises(KeyError) as raised:
        load_policy(path)
    call = str(raised.value).partition("Hint: ")[2].partition("? ")[2].removesuffix(".")
    assert call == f"load_policy({str(path)!r}, policy=CompiledGreedy(prior=2.0))"
    assert eval(call, {"load_policy": load_policy, "CompiledGreedy": CompiledGreedy}).choose() in range(3)


ENCODER = ContextEncoder((ContextColumn("city", "category"),), 2, intercept=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"encoder": {**ENCODER.to_dict(), "hashed": 10**5}}, "encoder of contexts is none: hashed is 100000"),
        ({"encoder": {**ENCODER.to_dict(), "hashed": 60_000}}, "Its encoder makes one vector of 60,001 coordinates"),
        ({"encoder": {}}, "encoder of contexts is none"),
        ({"encoder": ENCODER.to_dict()}, "makes one vector of 3 coordinates, and its policy reads 4 of 3"),
        ({"encoder": []}, "`encoder` is .*, not a dict"),
        ({"encoder": ...}, "`encoder` is missing"),
        ({"learned_from": [{}]}, "`log` is missing"),
        ({"learned_from": [{"log": "a", "fingerprint": "b", "displays": -1}]}, "`displays` is -1"),
        ({"learned_from": 3}, "`learned_from` is 3, not a list"),
        ({"class": 3}, "`class` is 3, not a str"),
    ],
)
def test_a_forged_encoder_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    lived("linucb").save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    told = {name: value for name, value in {**about, **change}.items() if value is not ...}
    with pytest.raises(SourceError, match=said):
        load_policy(write(tmp_path / "forged.npz", told, arrays))


def test_contexts_encoded_otherwise_are_no_warm_start(spec: Path) -> None:
    learned = replay(load(spec, features="country,device:hash=8"), "linucb", window=9, final="last:50%").learned
    log = load(spec, features="device,country:hash=8")
    assert log.meta.encoder.dimensions == learned.encoder.dimensions
    with pytest.raises(ParameterError, match="Log 'mine' encodes column 'country' otherwise than the log"):
        replay(log, learned, delays_from="first:50%")
    same = load(spec, features="country,device:hash=8")
    assert replay(same, learned, delays_from="first:50%").learned.encoder == learned.encoder
    # A log that does not say how it was encoded is taken at its word; the policy still knows.
    assert replay(same.with_meta(encoder=None), learned, delays_from="first:50%").learned.encoder == learned.encoder
