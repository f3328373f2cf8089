"""All randomness of the package: every stream in one list, so that no two ever meet.

A stream is a child of the seed (NumPy's SeedSequence): its number in `Stream` begins its spawn key, and what there are
several of, a repeat or a run, goes on with it. Whoever draws something new adds a stream here; a number that was given
once keeps its meaning, since the results of a seed rest on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


@unique
class Stream(IntEnum):
    """What is drawn, by the first number of its spawn key."""

    SYNTHETIC_LOG = 0
    """A synthetic log: contexts, actions, rewards, delays and arrivals, a child each."""
    THINNING = 1
    """Which displays a sampler keeps; by repeat, the same for every policy."""
    REPLAYED_POLICY = 2
    """What a policy draws in a replay; by repeat."""
    LIVE_WORLD = 3
    """Contexts and luck of a simulated run; by run, the same for every policy."""
    LIVE_POLICY = 4
    """What a policy draws in a simulated run; by run."""
    RESAMPLED_LOG = 6
    """Displays of a resampled log, by its number and the lap through the log; with a repeat, which of them are kept."""
    FROZEN_POLICY = 7
    """What a policy that no longer learns draws; by repeat."""
    CRITEO_TWIN = 8
    """A log like Criteo's: by what is drawn, and chunk."""
    LOGGER_REPLAY = 9
    """The logging policy's choices in the check that replays it."""
    AUDIT_TWIN = 10
    """An audit's twin of a log, a child each for what it consists of; by twin."""
    AUDIT_SEED = 11
    """The seed of the replays of a twin; by twin."""
    AUDIT_WORLD = 12
    """Contexts and luck of an audit's live run; by run, the same for every policy."""
    AUDIT_POLICY = 13
    """What a policy draws in an audit's live run; by run."""
    EVEN_CONVERSIONS = 30
    """Which conversions of displays with weights are an even sample of the traffic's."""
    EVEN_DISPLAYS = 31
    """Which displays with weights are an even sample of the traffic."""
    FROZEN_BLOCK = 40
    """A posterior's draws that a block of displays shares; by repeat and block."""
    CROSS_FITTING = 43
    """The group of each display for propensities fitted to the others; the same for every seed."""
    HALVES = 52
    """Which half of an action's displays chooses the best action, and which values it."""
    REPEAT_ORDER = 53
    """The order in which a repeat reads the log; by repeat."""
    RESAMPLED_ORDER = 54
    """The order in which a repeat reads a resampled log; by its number, lap and repeat."""
    ACTION_RATES = 59
    """The fitted rates' draws in the check of rates by action."""
    SHOP = 60
    """The made-up shop's displays and sales."""
    AUDIT_TWIN_MONEY = 61
    """Refunds and costs of an audit's twin, a child each for what they consist of; by twin."""
    AUDIT_LIVE_MONEY = 62
    """Refunds and costs of an audit's live run; by run, the same for every policy."""
    VALUE_DRIFT = 71
    """The check of drifting values: which converted displays are looked at, and their ranks' exchanges; by which."""


def seed_sequence(stream: Stream, seed: int, *which: int) -> np.random.SeedSequence:
    """Return what a stream begins with; `which` tells apart what there are several of."""
    return np.random.SeedSequence(seed, spawn_key=(int(stream), *which))


def random_stream(stream: Stream, seed: int, *which: int) -> np.random.Generator:
    """Return a stream; `which` tells apart what there are several of."""
    return np.random.default_rng(seed_sequence(stream, seed, *which))


def child_streams(n: int, stream: Stream, seed: int, *which: int) -> list[np.random.Generator]:
    """Return `n` streams, the children of one: a longer draw from one of them leaves the others as they are."""
    return [np.random.default_rng(child) for child in seed_sequence(stream, seed, *which).spawn(n)]


def seed_stream(seed: int) -> np.random.Generator:
    """Return the stream of the seed itself, none of its children: every part of a delay study begins with it."""
    return np.random.default_rng(seed)


def stream_at(state: Mapping[str, Any]) -> np.random.Generator:
    """Return a stream that goes on from a state (`numpy.random.BitGenerator.state`).

    Raises ValueError, TypeError, KeyError or ArithmeticError where the state is none of a generator.
    """
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    return rng


class StreamState(NamedTuple):
    """Where a stream is, as plain numbers: `state` and `increment` of PCG64, and the half of a draw that it keeps."""

    state: int
    increment: int
    keeps: int
    kept: int


def state_of(rng: np.random.Generator) -> StreamState:
    """Return where a stream is."""
    state: Mapping[str, Any] = rng.bit_generator.state
    return StreamState(state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"])


def stream_from(state: StreamState, *, after: int = 0) -> np.random.Generator:
    """Return a stream that goes on from where one was, as if it had given `after` numbers of `random` since."""

    def as_numpy(state: StreamState) -> Mapping[str, Any]:
        pcg = {"state": state.state, "inc": state.increment}
        return {"bit_generator": "PCG64", "state": pcg, "has_uint32": state.keeps, "uinteger": state.kept}

    rng = stream_at(as_numpy(state))
    if after:
        rng.bit_generator.advance(after)  # type: ignore[attr-defined]
        # Whole draws leave the half that is kept as it is; `advance` forgets it.
        rng.bit_generator.state = as_numpy(state_of(rng)._replace(keeps=state.keeps, kept=state.kept))
    return rng


# SplitMix64 (Steele, Lea, Flood. Fast splittable pseudorandom number generators. OOPSLA 2014): what it counts by, an
# odd number, so that multiplying by it loses nothing; and its mixing.
STEP = np.uint64(0x9E3779B97F4A7C15)
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST = np.uint64(31)


def mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 64 random bits of each number, which follow from it alone; other numbers have others."""
    for shift, factor in _MIXING:
        numbers = (numbers ^ (numbers >> shift)) * factor
    return np.asarray(numbers ^ (numbers >> _LAST))
