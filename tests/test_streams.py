"""One list of all random streams: they never meet, and nothing else of the package makes one."""

from __future__ import annotations

import ast
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import evaluator
from evaluator.streams import (
    Stream,
    child_streams,
    mixed,
    random_stream,
    seed_stream,
    state_of,
    stream_at,
    stream_from,
)

PACKAGE = Path(evaluator.__file__).parent
FILES = [file for file in PACKAGE.rglob("*.py") if file.name != "streams.py" or file.parent != PACKAGE]
# Types: naming them makes no stream.
TYPES = {"Generator", "BitGenerator", "RandomState", "Random"}


def makers(code: str) -> list[str]:
    """Return what makes a stream by itself in some code: of NumPy's, or of Python's `random`."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random", "random"):
            found += [node] if node.attr not in TYPES else []
        elif isinstance(node, ast.Call):
            found += [node] if ast.unparse(node.func).split(".")[-1] in {*TYPES, "spawn"} else []
        elif isinstance(node, ast.ImportFrom):
            found += [node] if node.module in ("random", "numpy.random") else []
    return [ast.unparse(node) for node in found]


@pytest.mark.parametrize(
    "code",
    [
        "np.random.default_rng(7)",
        "np.random.SeedSequence(seed, spawn_key=(3,))",
        "np.random.Generator(bits)",
        "rng.spawn(2)",
        "random.Random(1)",
        "random.random()",
        "from numpy.random import default_rng",
    ],
)
def test_makers_are_found(code: str) -> None:
    assert makers(code)


def test_streams_are_made_in_one_place() -> None:
    found = {file.relative_to(PACKAGE).as_posix(): makers(file.read_text(encoding="utf-8")) for file in FILES}
    assert {name: made for name, made in found.items() if made} == {}


def test_each_stream_is_drawn_from_in_one_room() -> None:
    """Two rooms that draw from one stream would draw the same numbers; and a stream that nobody draws from is none."""
    used: dict[str, set[str]] = {stream.name: set() for stream in Stream}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Stream":
                used[node.attr].add(file.parent.as_posix())
    assert {name: rooms for name, rooms in used.items() if len(rooms) != 1} == {}


def test_streams_never_meet() -> None:
    every = [seed_stream(5), *(random_stream(stream, 5, *which) for stream in Stream for which in ((), (0,), (1,)))]
    every += child_streams(4, Stream.SYNTHETIC_LOG, 5)[2:]
    drawn = [rng.random(4) for rng in every]
    assert all((a != b).all() for a, b in combinations(drawn, 2))


def test_a_stream_is_what_it_always_was() -> None:
    """Results of a seed rest on it: these are NumPy's own, by the keys that were given once."""
    of_repeat = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(2, 3)))
    np.testing.assert_array_equal(random_stream(Stream.REPLAYED_POLICY, 7, 3).random(5), of_repeat.random(5))
    child = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(10, 3, 1)))
    np.testing.assert_array_equal(child_streams(2, Stream.AUDIT_TWIN, 7, 3)[1].random(5), child.random(5))
    known = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 30, 31, 40, 43, 52, 53, 54, 59, 60, 61, 62, 71]
    assert sorted(Stream) == known


def test_a_stream_goes_on_from_its_state() -> None:
    rng = random_stream(Stream.REPLAYED_POLICY, 1)
    rng.random(3)
    again = stream_at(rng.bit_generator.state)
    np.testing.assert_array_equal(again.random(5), rng.random(5))


def test_mixing_is_that_of_splitmix64() -> None:
    """The first three numbers of its reference implementation in C, started at 1234567."""
    state = np.uint64(1234567) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, 4, dtype=np.uint64)
    assert mixed(state).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_stream_goes_on_from_anywhere_as_if_it_had_been_drawn_from() -> None:
    rng = seed_stream(3)
    rng.choice(4000, 7, replace=False)  # which leaves half of a draw
    state = state_of(rng)
    assert state.keeps
    other = stream_from(state, after=1234)
    rng.random(1000)
    rng.random(234)
    assert state_of(other) == state_of(rng)
    assert other.integers(0, 9, 5).tolist() == rng.integers(0, 9, 5).tolist()
    again = stream_from(state)
    assert state_of(again) == state
