"""Contexts cut into groups, and vectors that many displays share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.encoder import Coordinate
from evaluator.log.schema import Columns, is_uneven, to_numpy
from evaluator.log.vectors_of_displays import display_vectors
from evaluator.streams import STEP

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
# Coordinates beyond this many are not looked at: those that vary most are.
MOST = 32
BINS = 5
SAMPLE = 20_000
# A vector is looked at if it has this share of the displays of a sample, and so many of them; at most so many vectors.
SHARE, _FEWEST, _MOST = 0.01, 30, 100
_WORDS = 64
# Rows that are hashed at once.
_CACHED = 2_048


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates of contexts, cut at quantiles of a sample of displays. Outcomes and actions play no part in it."""

    # ``context`` or ``action_set``, of which the mean over the actions is the context; None for a log without either.
    column: str | None
    kept: Ints  # Numbers of the coordinates that are looked at, shape (C,)
    of: int  # Number of coordinates that a context has
    # Inner edges of the bins of each kept coordinate, C arrays of shape (bins - 1,).
    edges: tuple[Floats, ...]
    # Mean and standard deviation of each kept coordinate in the sample, shape (C,).
    center: Floats
    scale: Floats
    # Hashes of the vectors that many displays of the sample share, shape (V,).
    frequent: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    meaning: tuple[Coordinate, ...] = ()  # What each kept coordinate stands for, C of them, no two of one name

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of the displays."""
        return () if self.column is None else (self.column,)

    def values(self, displays: Columns) -> Floats:
        """Return the kept coordinates of some displays, shape (n, C)."""
        if self.column is None:
            return np.zeros((len(displays["action"]), 0))
        array = displays[self.column]
        if self.column == "action_set":
            array = array.mean(axis=1)
        return array[:, self.kept].astype(np.float64, copy=False)

    def bins(self, j: int, values: Floats) -> Ints:
        """Return the bin of each value of coordinate j (of the kept ones), shape (n,)."""
        out = np.zeros(len(values), np.int64)
        for edge in self.edges[j]:  # four at most: faster than a search
            out += values >= edge
        return out

    def name(self, j: int) -> str:
        """Return what coordinate j (of the kept ones) is called."""
        return self.meaning[j].name

    def bin_name(self, j: int, b: int) -> str:
        """Return what a bin of coordinate j is called, in the units of its column."""
        edges, told = self.edges[j], self.meaning[j]
        if told.without:  # one-hot: it has one edge
            return told.name if b else told.without
        numbers = [_number_words(edge * told.unit + told.centre) for edge in edges.tolist()]
        if b == 0:
            return f"{told.name} < {numbers[0]}"
        # Two edges next to each other have one value between them, the first.
        if b == len(edges):
            above_one = b > 1 and edges[-1] == np.nextafter(edges[-2], np.inf)
            return f"{told.name} > {numbers[-2]}" if above_one else f"{told.name} >= {numbers[-1]}"
        if edges[b] == np.nextafter(edges[b - 1], np.inf):
            return f"{told.name} = {numbers[b - 1]}"
        return f"{numbers[b - 1]} <= {told.name} < {numbers[b]}"


def cut_contexts(log: Log) -> Coordinates:
    """Return the coordinates of a log's contexts and their bins, from displays evenly spaced over the log."""
    column = display_vectors(log, first="context")
    none = np.zeros(0)
    if column is None or is_uneven(log.schema.field(column).type):  # vectors of some actions alone are no context
        return Coordinates(None, np.zeros(0, np.int64), 0, (), none, none)
    n = min(len(log), SAMPLE)
    sample = to_numpy(log.take(np.arange(n, dtype=np.int64) * len(log) // n, [column])[column])
    often = frequent(sample)
    sample = sample.astype(np.float64)
    if column == "action_set":
        sample = sample.mean(axis=1)
    found = [(j, edges) for j in range(sample.shape[1]) if len(edges := _edges(sample[:, j]))]
    found.sort(key=lambda pair: -float(sample[:, pair[0]].var()))
    found = sorted(found[:MOST], key=lambda pair: pair[0])
    kept = np.array([j for j, _ in found], np.int64)
    chosen = sample[:, kept]
    return Coordinates(
        column, kept, sample.shape[1], tuple(edges for _, edges in found), chosen.mean(axis=0), chosen.std(axis=0),
        often, _meaning(log, column, kept, sample.shape[1]),
    )  # fmt: skip


def _meaning(log: Log, column: str, kept: Ints, dimensions: int) -> tuple[Coordinate, ...]:
    """Return what the kept coordinates stand for: their places where the log does not say."""
    nameless = {j: Coordinate(f"context[{j}]") for j in kept.tolist()}
    encoder = log.meta.encoder if column == "context" else None
    if encoder is None or encoder.dimensions != dimensions:
        return tuple(nameless.values())
    told = encoder.coordinates()
    often = Counter(told[j].name for j in nameless)
    # Labels that are shortened, and columns with " = " in their names, can give one name twice.
    return tuple(told[j] if often[told[j].name] == 1 else plain for j, plain in nameless.items())


def _number_words(number: float) -> str:
    """Return a number with the six digits that a coordinate (float32) tells surely.

    >>> _number_words(29.990000724), _number_words(1234567.0)
    ('29.99', '1234570')
    """
    plain = 1e-4 < abs(number) < 1e9
    return np.format_float_positional(number, 6, fractional=False, trim="-") if plain else f"{number:.6g}"


def _edges(values: Floats) -> Floats:
    distinct = np.unique(values)
    if len(distinct) <= BINS:
        return distinct[1:]
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    # Mostly one value: it, what is below it, and what is above it.
    return np.append(edges, np.nextafter(edges[-1], np.inf)) if len(edges) == 1 else edges


class CommonVectors:
    """Vectors with a good share of the displays, by their hashes, sorted, shape (V,)."""

    def __init__(self, codes: Hashes) -> None:
        self.codes = codes
        # Number of displays of each vector, of those old enough to be judged, and of these that converted, shape
        # (V + 1,): the last place is for all other vectors.
        self.shown, self.judged, self.converted = np.zeros((3, len(codes) + 1))

    def add(self, key: Hashes, judged: int, converted: Flags) -> None:
        """Count some displays, of which the first `judged` can be judged; key, converted: shape (n,)."""
        of = len(self.shown)
        at = np.zeros(len(key), np.int64)
        if of > 1:
            at = np.minimum(np.searchsorted(self.codes, key), of - 2)
            at = np.where(self.codes[at] == key, at, of - 1)
        self.shown[:] += np.bincount(at, minlength=of)
        self.judged[:] += np.bincount(at[:judged], minlength=of)
        self.converted[:] += np.bincount(at[converted], minlength=of)


def frequent(sample: npt.NDArray[np.float32]) -> Hashes:
    """Return the hashes of the vectors that are frequent among some displays, shape (n, ...), sorted."""
    found, count = np.unique(hashes(sample), return_counts=True)
    often = np.flatnonzero(count >= max(SHARE * len(sample), _FEWEST))
    return np.sort(found[often[np.argsort(-count[often], kind="stable")[:_MOST]]])


def hashes(rows: npt.NDArray[Any]) -> Hashes:
    """Return a hash of each row, shape (n,), of its first 256 bytes."""
    words = np.ascontiguousarray(rows.reshape(len(rows), -1)).view(np.uint32)[:, :_WORDS]
    hashed = np.zeros(len(rows), np.uint64)
    # Of so few rows at a time that they stay in a cache.
    for first in range(0, len(rows), _CACHED):
        out = hashed[first : first + _CACHED]
        for column in words[first : first + _CACHED].T.astype(np.uint64, order="C"):
            out ^= column
            out *= STEP
            out ^= out >> np.uint64(29)
    return hashed
