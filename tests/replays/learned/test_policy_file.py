"""Whoever wrote a policy file: it runs nothing, costs no more than it weighs, and is whole, or is refused in a line."""

from __future__ import annotations

import io
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import load_policy
from evaluator.delays.cdf import DelayCDF
from evaluator.errors import EvaluatorError, ParameterError, PolicyError, SourceError, UnknownNameError
from evaluator.policies import registry
from evaluator.replays.learned import file as policy_arrays
from evaluator.replays.learned.file import restored, state_arrays
from evaluator.units import NO_WINDOW
from tests.policies.mine import CompiledGreedy, Greedy
from tests.policies.variants import PLAYED
from tests.replays.learned.policy_files import HORIZON, K, live, lived, read, write
from tests.twins.linear import inverse_of

FAR = DelayCDF(delays=np.array([0, 2, 10**9]), cdf=np.array([0.4, 0.7, 1.0]), source="by hand")
# What a reader takes for itself, beside some twenty times the file.
_READER = 1_000_000


@pytest.fixture
def good(tmp_path: Path) -> Path:
    lived("delayed-ucb").save(tmp_path / "good.npz")
    return tmp_path / "good.npz"


def refused(path: Path, words: str, error: type[EvaluatorError] = SourceError) -> None:
    with pytest.raises(error, match=words) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_what_is_written_is_not_compressed_and_goes_on_as_it_was(good: Path) -> None:
    with zipfile.ZipFile(good) as archive:
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
    assert read(good)[0]["schema"] == "evaluate.policy/5"
    expected, loaded = lived("delayed-ucb"), load_policy(good)
    assert live(loaded, 30, np.random.default_rng(4)) == live(expected, 30, np.random.default_rng(4))
    for (name, array), (_, other) in zip(state_arrays(loaded.state), state_arrays(expected.state), strict=True):
        assert np.array_equal(array, other), name


# Code


@pytest.mark.parametrize(
    "name", ["{folder}/payload.py:Evil", "{folder}/payload.py:Evil:x=1", "payload:Evil", "os:system", "subprocess", ""]
)
def test_a_file_imports_nothing_by_its_name(name: str, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = good.parent
    (folder / "payload.py").write_text(
        f"open({str(folder / 'ran')!r}, 'w').close()\nfrom tests.policies.mine import CompiledGreedy as Evil\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(folder)
    about, arrays = read(good)
    before = set(sys.modules)
    path = write(folder / "evil.npz", {**about, "policy": name.format(folder=folder)}, arrays)
    refused(path, r"registered neither here nor.*load_policy\(.*, policy=DelayedUCB\(.*\)\)", UnknownNameError)
    assert not (folder / "ran").exists()
    assert not {module for module in set(sys.modules) - before if "payload" in module}


def test_a_class_of_ones_own_is_passed_by_hand(tmp_path: Path) -> None:
    lived(CompiledGreedy(prior=2.0)).save(tmp_path / "mine.npz")
    refused(
        tmp_path / "mine.npz", r"'compiled-greedy.*mine\.npz', policy=CompiledGreedy\(prior=2\.0\)\)", UnknownNameError
    )
    loaded = load_policy(tmp_path / "mine.npz", policy=CompiledGreedy(prior=2.0))
    assert live(loaded, 9, np.random.default_rng(4)) == live(
        lived(CompiledGreedy(prior=2.0)), 9, np.random.default_rng(4)
    )
    with pytest.raises(ParameterError, match=r"holds 'compiled-greedy:prior=2\.0' with"):
        load_policy(tmp_path / "mine.npz", policy=CompiledGreedy(prior=1.0))
    with pytest.raises(ParameterError, match=r"CompiledGreedy'> is no description .*policy=MyPolicy\(\)\)"):
        load_policy(tmp_path / "mine.npz", policy=CompiledGreedy)  # type: ignore[arg-type]


def test_an_installed_policy_is_found_and_must_be_one(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        def __init__(self, name: str, cls: type) -> None:
            self.name, self.cls = name, cls

        def load(self) -> type:
            return self.cls

    points = [Point("compiled-greedy", CompiledGreedy), Point("plain", Greedy)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    path = good.with_name("installed.npz")
    lived(CompiledGreedy()).save(path)
    assert load_policy(path).policy == CompiledGreedy()
    about, arrays = read(path)
    refused(write(good.with_name("plain.npz"), {**about, "policy": "plain"}, arrays), "plain Python", EvaluatorError)
    refused(write(good.with_name("log.npz"), {**about, "policy": "logging"}, arrays), "nothing to save", EvaluatorError)


@pytest.mark.parametrize("array", [np.array([{}], object), np.array(["x"]), np.zeros(4, ">f8"), np.zeros(4, "M8[s]")])
def test_arrays_hold_numbers_of_this_machine(array: np.ndarray, good: Path) -> None:
    about, arrays = read(good)
    refused(write(good.with_name("kind.npz"), about, {**arrays, "state.conversions": array}), "no policy file, or dam")


# Memory


def peak(path: Path) -> int:
    """Return the bytes that a file makes the reader take, whether it is refused or not."""
    tracemalloc.start()
    try:
        load_policy(path)
    except EvaluatorError:
        pass
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return taken


CLAIMS: list[dict[str, int]] = [
    {"n_actions": 10**9},
    {"dimension": 10**9},
    {"window": 10**9, "horizon": 10**9},
    {"window": 10**9, "horizon": 10**9 + 1},
    {"window": 10**9, "horizon": NO_WINDOW, "dimension": 10**5},
]


@pytest.mark.parametrize("spec", ["delayed-ucb:cdf=online", "adapt-patient-bandits", "otflinucb"])
def test_a_setting_alone_takes_no_memory(spec: str, tmp_path: Path) -> None:
    lived(spec).save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    allowed = 20 * (tmp_path / "good.npz").stat().st_size + _READER
    load_policy(tmp_path / "good.npz")  # imports what it imports once
    for claim in CLAIMS:
        path = write(tmp_path / "large.npz", {**about, "setting": {**about["setting"], **claim}}, arrays)
        assert peak(path) < allowed, claim


@pytest.mark.parametrize(
    ("spec", "window", "delay_cdf"),
    [
        ("delayed-ucb", NO_WINDOW, FAR),
        ("delayed-ucb:model=uncensored", 3, FAR),
        ("delayed-ucb", NO_WINDOW, DelayCDF.geometric(1e14)),
        ("odaaf", NO_WINDOW, DelayCDF.geometric(1e14)),
    ],
)
def test_the_law_of_the_delays_alone_takes_no_memory(
    spec: str, window: int, delay_cdf: DelayCDF, tmp_path: Path
) -> None:
    lived(spec, delay_cdf=delay_cdf).save(tmp_path / "short.npz")
    about, arrays = read(tmp_path / "short.npz")
    arrays |= {name: column[:0] for name, column in arrays.items() if name.startswith("pending")}
    about["setting"] |= {"window": window, "horizon": 2**31}
    assert peak(write(tmp_path / "long.npz", about, arrays)) < 20 * _READER


@pytest.mark.parametrize("spec", PLAYED)
def test_honest_settings_of_any_size_are_not_taken_for_claims(spec: str) -> None:
    gap = DelayCDF(delays=np.array([0, 2, 3_000]), cdf=np.array([0.4, 0.7, 1.0]), source="by hand")
    for window, horizon in (
        (NO_WINDOW, 5_000),
        (700, 5_000),
        (5_000, 700),
        (2_047, 2_048),
        (4_000, 5_000),
        (3, NO_WINDOW),
    ):
        for law in (gap, FAR, DelayCDF.geometric(300.0)):
            if horizon == NO_WINDOW and "uncensored" in spec:  # it would reach back for ever
                continue
            try:
                learned = lived(spec, rounds=0, window=window, horizon=horizon, delay_cdf=law)
            except ParameterError:  # it needs a window, or a horizon
                continue
            arrays = dict(state_arrays(learned.state))
            restored(learned.policy, learned.setting, arrays)
            assert not arrays


def test_a_bomb_is_not_unpacked(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about, arrays = read(good)
    zeros = {**arrays, "state.conversions": np.zeros(1 << 20)}
    bomb = write(good.with_name("bomb.npz"), about, zeros, compress=True)
    assert 100 * bomb.stat().st_size < 1 << 23
    monkeypatch.setattr(policy_arrays, "LARGEST_UNPACKED", 1 << 20)
    refused(bomb, "is compressed and unpacks to 8,.* bytes, more than 1,048,576.*replay and save")
    assert peak(bomb) < 2 * _READER


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_packed_as_we_pack_them(kind: int, good: Path) -> None:
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(good.with_name("new.npz"), "w", kind) as new:
        for item in old.infolist():
            new.writestr(item.filename, old.read(item))
    refused(good.with_name("new.npz"), "packed as no version packed them")


def test_members_are_no_larger_than_the_file(good: Path) -> None:
    """Nor do many of them share its bytes."""
    with zipfile.ZipFile(good.with_name("shared.npz"), "w") as archive:
        content = io.BytesIO()
        np.save(content, np.zeros(5000))
        archive.writestr("a.npy", content.getvalue())
        for i in range(50):
            again = zipfile.ZipInfo(f"a{i}.npy")
            for name in ("header_offset", "CRC", "file_size", "compress_size", "compress_type"):
                setattr(again, name, getattr(archive.infolist()[0], name))
            archive.filelist.append(again)
        archive._didModify = True  # type: ignore[attr-defined]
    refused(good.with_name("shared.npz"), "or damaged")


@pytest.mark.parametrize(
    "shape", ["(10000000000,)", "(-3,)", "(4, 0, 9)", "(5,)", "(3,)", "'four'", "(4,))", "(" * 900]
)
def test_a_header_says_what_its_member_holds(shape: str, good: Path) -> None:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(32)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(good.with_name("new.npz"), "w") as new:
        for item in old.infolist():
            new.writestr(item.filename, member if item.filename == "state.conversions.npy" else old.read(item))
    refused(good.with_name("new.npz"), "or damaged")
    assert peak(good.with_name("new.npz")) < _READER


# Damage


def test_no_bit_of_a_file_changes_what_it_says(good: Path) -> None:
    whole = good.read_bytes()
    about, arrays = read(good)
    rng = np.random.default_rng(0)
    silent = 0
    flips = [*rng.integers(0, len(whole), 40), *rng.integers(len(whole) - 1200, len(whole), 20)]
    for at in flips:
        good.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
        try:
            load_policy(good)
        except EvaluatorError:
            continue
        silent += 1  # a date, or a permission, of a member
        assert read(good)[0] == about
        for name, array in read(good)[1].items():
            assert np.array_equal(array, arrays[name])
    assert 0 < silent < 0.4 * len(flips)
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        good.write_bytes(whole[:cut])
        refused(good, "no policy file, or damaged")


WRONG: dict[str, list[Any]] = {
    "schema": [None, 3, "evaluate.policy/9", ["evaluate.policy/3"]],
    "policy": [None, 7, ["ucb1"], "ucb1:alpha=3", "delayed-ucb:epsilon=inf"],
    "parameters": [None, [], {}, {"epsilon": 0.5}],
    "labels": [None, [], "abcd", ["a", "b"], ["a", "b", "c", 4], {"a": 1}],
    "rounds": [None, -1, 1.5, "60", True, 10**30, [60]],
    "prepared": [None, 0, "no"],
    "stream": [None, {}, [], {"bit_generator": "PCG64"}, {"bit_generator": "PCG64", "state": {"state": -1, "inc": 3}}],
    "setting": [None, [], {}, "none"],
    "delay_cdf": [None, [], {}, "none"],
    "setting.n_actions": [None, 0, 3, 5, -4, 4.0, "4", True],
    "setting.dimension": [None, -1, 2.5, 10**40, 3],
    "setting.rows": [None, -1, 2, 1.0],
    "setting.window": [None, -1, "20", 1e300, 2**63, 19],
    "setting.horizon": [None, -5, "200", 5],
    "setting.reward_min": [None, 0.5, float("nan"), float("-inf"), "0"],
    "setting.reward_max": [None, 0, -1.0, float("nan"), float("inf"), "1", 10**400],
    "delay_cdf.source": [None, 5],
    "delay_cdf.geometric_ratio": ["0.5", 0.5, 2.0, float("nan")],
    "delay_cdf.start": [None, -1, 0.5],
    "delay_cdf.moments": [[], {}, {"mean": 1.0}, {"mean": 1.0, "variance": "1", "bound": 3.0}, 5],
}


@pytest.mark.parametrize("word", WRONG)
def test_each_word_is_checked(word: str, good: Path) -> None:
    about, arrays = read(good)
    for value in WRONG[word]:
        told, (*above, last) = dict(about), word.split(".")
        if above:
            told[above[0]] = {**about[above[0]], last: value}
        else:
            told[last] = value
        refused(write(good.with_name("wrong.npz"), told, arrays), ".", EvaluatorError)
        below = told[above[0]] if above else told
        below.pop(last)
        if word not in ("setting.reward_max", "setting.reward_min", "delay_cdf.moments"):  # which older files lack
            refused(write(good.with_name("lacks.npz"), told, arrays), ".", EvaluatorError)


@pytest.mark.parametrize("said", [[], 5, None, "x", {"schema": "evaluate.policy/3"}])
def test_what_says_nothing_is_refused(said: object, good: Path) -> None:
    _, arrays = read(good)
    refused(write(good.with_name("said.npz"), said, arrays), "is missing: it is not a whole policy file")
    for text in (b"", b"{", b"\xff", b"[" * 100_000, b"9" * 9_000):
        np.savez(good.with_name("text.npz"), about=np.frombuffer(text, np.uint8), **arrays)
        refused(good.with_name("text.npz"), "is no JSON")


PENDING: list[tuple[str, Any]] = [
    ("due", 60), ("due", -(2**63)), ("due", 2**62), ("delay", -1), ("delay", 21), ("delay", 2**62),
    ("action", -1), ("action", K), ("action", 2**62), ("value", np.nan), ("value", np.inf),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), PENDING)
def test_pending_conversions_can_come(name: str, value: float, good: Path) -> None:
    about, arrays = read(good)
    arrays[f"pending.{name}"][1] = value
    refused(write(good.with_name("pending.npz"), about, arrays), "Pending conversion 1 is of action")


@pytest.mark.parametrize("name", ["due", "value", "vector"])
def test_pending_conversions_have_one_length_and_type(name: str, good: Path) -> None:
    about, arrays = read(good)
    column = arrays[f"pending.{name}"]
    for wrong in (column[:-1], column.astype(np.float32), column[..., None], column.sum()):
        refused(write(good.with_name("length.npz"), about, {**arrays, f"pending.{name}": wrong}), "pending")


@pytest.mark.parametrize("spec", ["delayed-ucb", "otflinucb", "adapt-patient-bandits"])
def test_what_is_not_a_number_is_not_loaded_nor_saved(spec: str, tmp_path: Path) -> None:
    learned = lived(spec)
    learned.save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    floats = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size and "state" in name]
    assert len(floats) > 4
    for name in floats:
        wrong = arrays[name].copy()
        wrong.reshape(-1)[-1] = np.nan
        refused(write(tmp_path / "nan.npz", about, {**arrays, name: wrong}), f"{name} holds NaN")
    next(array for _, array in state_arrays(learned.state) if array.dtype.kind == "f" and array.size)[:] = np.nan
    with pytest.raises(SourceError, match="holds NaN"):
        learned.save(tmp_path / "bad.npz")
    assert not (tmp_path / "bad.npz").exists()


def test_what_a_setting_fixes_cannot_be_otherwise(tmp_path: Path) -> None:
    lived("otflinucb").save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    for name, value in (("optimist.n_actions", 10**9), ("dimension", 4), ("alpha", 9.0), ("optimist.squared", False)):
        started = arrays[f"state.{name}"]
        wrong = {**arrays, f"state.{name}": np.asarray(value, started.dtype)}
        refused(write(tmp_path / "other.npz", about, wrong), f"state.{name} is {value}, this version's is {started}")
    lived("delayed-ucb").save(tmp_path / "steps.npz")
    said, steps = read(tmp_path / "steps.npz")
    for name, at in (("ages", 2), ("steps_within", 9)):  # a loop goes on by the latter until the former is reached
        steps_wrong = {**steps, f"state.exposure.{name}": steps[f"state.exposure.{name}"] * (np.arange(at + 1) < at)}
        refused(write(tmp_path / "other.npz", said, steps_wrong), f"state.exposure.{name} is .*, this version's is")
    rounded = {**arrays, "state.delta": np.nextafter(arrays["state.delta"], 1.0)}
    assert load_policy(write(tmp_path / "near.npz", about, rounded)).state.delta == np.nextafter(0.1, 1.0)


def test_a_state_that_cannot_be_is_an_error_of_its_policy(tmp_path: Path) -> None:
    lived("ucb1").save(tmp_path / "good.npz")
    about, arrays = read(tmp_path / "good.npz")
    forged = {**arrays, "state.pulls": -arrays["state.pulls"]}
    learned = load_policy(write(tmp_path / "forged.npz", about, forged))
    with pytest.raises(PolicyError, match=r"ucb1 cannot go on from what it knows \(ValueError: "):
        live(learned, 30, np.random.default_rng(4))
    lived("linucb").save(tmp_path / "linear.npz")
    about, arrays = read(tmp_path / "linear.npz")
    forged = {**arrays, "state.optimist.ridge.theta": np.array([[np.inf, -np.inf, 0.0]])}
    learned = load_policy(write(tmp_path / "forged.npz", about, forged))
    with pytest.raises(PolicyError, match="linucb scores action 0 as NaN"), np.errstate(invalid="ignore"):
        learned.choose(np.ones((K, 3)), greedy=True)


@pytest.mark.parametrize("spec", ["otflinucb", "lints"])
def test_inverses_of_earlier_versions_are_read_as_factors(spec: str, tmp_path: Path) -> None:
    learned, path = lived(spec), tmp_path / "earlier.npz"
    learned.save(path)
    about, arrays = read(path)
    (name,) = (name for name in arrays if name.endswith(".ridge.factors"))
    part = learned.state.optimist if hasattr(learned.state, "optimist") else learned.state.sampler
    del arrays[name]
    arrays[name.replace("factors", "inverse")] = inverse_of(part.ridge)
    if spec == "lints":
        arrays[name.replace("ridge.factors", "factor")] = np.linalg.cholesky(np.linalg.inv(inverse_of(part.ridge)))
    write(path, {**about, "schema": "evaluate.policy/4"}, arrays)
    loaded = load_policy(path)
    for (kept, array), (_, other) in zip(state_arrays(loaded.state), state_arrays(learned.state), strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-9, atol=1e-12, err_msg=kept)
    assert live(loaded, 30, np.random.default_rng(4)) == live(learned, 30, np.random.default_rng(4))
    arrays[name.replace("factors", "inverse")] *= -1.0
    write(path, {**about, "schema": "evaluate.policy/4"}, arrays)
    refused(path, "holds what no regression leaves")


def test_files_of_earlier_versions_are_read(good: Path) -> None:
    about, arrays = read(good)
    for schema in ("evaluate.policy/3", "evaluate.policy/2", "evaluate.policy/1"):
        told = {name: said for name, said in about.items() if name not in ("class", "encoder", "learned_from")}
        told["schema"] = schema
        if schema.endswith("1"):
            told["setting"] = {name: value for name, value in about["setting"].items() if name != "reward_max"}
        loaded = load_policy(write(good.with_name("old.npz"), told, arrays, compress=True))
        assert loaded.setting == lived("delayed-ucb").setting
        assert live(loaded, 30, np.random.default_rng(4)) == live(lived("delayed-ucb"), 30, np.random.default_rng(4))
    assert loaded.rounds < HORIZON
