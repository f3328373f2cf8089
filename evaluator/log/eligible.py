"""Which actions could have been shown at a display: a bit an action, and equal sets once.

A column of sets is Arrow ``dictionary<int32, binary>``. Each of its values has 8 bytes for every 64 actions, the last
perhaps in part, in which action k is bit ``k % 8``, from the lowest, of byte ``k // 8``: so 64 actions at a time can be
read where they lie. Read as NumPy it is uint8 of shape (n, width), with the width in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import LogError

Bits = npt.NDArray[np.uint8]

SETS = pa.dictionary(pa.int32(), pa.binary())
# Entries of a table of truths that are worked on at a time.
_BLOCK = 1 << 24
# Bytes of sets that one Arrow array surely holds: its offsets have 32 bits.
_MOST_BYTES = 1 << 30
# Sets that are drawn anew at each display are said to move with time with this probability at most.
MOVING_LEVEL = 1e-4
# Displays of an action, eligible and not, that a block needs at least for the chi-square law to hold so far out.
_EXPECTED = 20.0
# Parts of the log, by the number of the display, in which an action's share of the sets is compared.
_PARTS = 20
# Difference between an action's shares of two parts from which it matters what a calendar means: contexts that drift
# move sets a little, too.
_MUCH = 0.25
# Eight sizes of a byte each are summed at a time: pairs of them have 16 bits, of which a word has four.
_BYTE, _THREE_PAIRS = np.uint64(8), np.uint64(48)
_EVEN_BYTES, _EVEN_ONES = np.uint64(0x00FF_00FF_00FF_00FF), np.uint64(0x0001_0001_0001_0001)


class SetCodes(np.ndarray[tuple[int], np.dtype[np.int32]]):
    """Sets of some displays, each by its number among distinct ones, shape (n,); parts of it name the same.

    The bits of the distinct sets are `distinct`, shape (distinct, width).
    """

    distinct: Bits

    def __array_finalize__(self, of: object) -> None:
        """Take over the distinct sets of what this is a part of."""
        self.distinct = getattr(of, "distinct", np.zeros((0, 0), np.uint8))


def set_codes(codes: npt.NDArray[np.integer], distinct: Bits) -> SetCodes:
    """Return sets by their numbers."""
    found = codes.astype(np.int32, copy=False).view(SetCodes)
    found.distinct = distinct
    return found


def to_codes(sets: pa.ChunkedArray | pa.DictionaryArray) -> SetCodes:
    """Return a column of sets by their numbers; errors as `to_bits`. Those that no display has come along."""
    chunks = sets.chunks if isinstance(sets, pa.ChunkedArray) else [sets]
    return joined_codes([_chunk_codes(chunk) for chunk in chunks if len(chunk)])


def joined_codes(several: Sequence[SetCodes]) -> SetCodes:
    """Return the sets of displays that follow one another."""
    if len(several) == 1:
        return several[0]
    at = np.cumsum([0, *(len(codes.distinct) for codes in several)])
    bits = [codes.distinct for codes in several]
    if len({sets.shape[1] for sets in bits}) > 1:
        raise _uneven()
    if not several:
        return set_codes(np.zeros(0, np.int32), np.zeros((0, 0), np.uint8))
    first = several[0].distinct
    if all(sets.shape == first.shape and np.shares_memory(sets, first) for sets in bits):
        return set_codes(np.concatenate(several), first)
    return set_codes(np.concatenate([codes + low for codes, low in zip(several, at, strict=False)]), np.vstack(bits))


def _chunk_codes(sets: pa.DictionaryArray) -> SetCodes:
    if sets.null_count:
        raise _uneven()
    codes = sets.indices.to_numpy()
    return set_codes(codes, distinct_bits(sets, _reach(codes)))


def _reach(codes: npt.NDArray[np.integer]) -> slice:
    """Return the distinct sets from the first to the last that some displays have."""
    return slice(int(codes.min()), int(codes.max()) + 1) if len(codes) else slice(0, 0)


def width(n_actions: int) -> int:
    """Return the bytes of a set of K actions, a multiple of 8."""
    return -(-n_actions // 64) * 8


def pack(sets: npt.NDArray[np.bool_]) -> pa.DictionaryArray:
    """Return sets given as truths, shape (n, K), as a column of a log.

    Examples
    --------
    >>> [set[0] for set in pack(np.array([[True, False, True], [False, True, True]])).to_pylist()]
    [5, 6]
    """
    return packed(bits_of(sets))


def bits_of(sets: npt.NDArray[np.bool_]) -> Bits:
    """Return sets given as truths, shape (n, K), as bits, shape (n, width)."""
    return _whole_words(np.packbits(sets, axis=1, bitorder="little"))


def packed(bits: Bits) -> pa.DictionaryArray:
    """Return sets given as bits, shape (n, ceil(K / 8)) or wider, as a column: equal ones share their bytes."""
    bits = _whole_words(bits)
    n, size = bits.shape
    plain = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), n, [None, pa.py_buffer(np.ascontiguousarray(bits).reshape(-1))]
    )
    return plain.dictionary_encode().cast(SETS) if n else pa.array([], SETS)


def as_one(sets: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose equal sets are shared between its chunks, where they repeat and one array holds them."""
    if sets.type != SETS:
        return sets
    distinct = sum(len(chunk.dictionary) for chunk in sets.chunks)
    held = sum(chunk.dictionary.nbytes for chunk in sets.chunks)
    return sets.unify_dictionaries() if 2 * distinct <= len(sets) and held <= _MOST_BYTES else sets


def to_bits(sets: pa.ChunkedArray | pa.DictionaryArray) -> Bits:
    """Return a column of sets as NumPy, shape (n, width). Raises LogError where widths differ or a set is missing."""
    codes = to_codes(sets)
    found: Bits = codes.distinct[np.asarray(codes)]
    return found


def distinct_bits(sets: pa.DictionaryArray, used: slice = slice(None)) -> Bits:
    """Return the bits of each distinct set of a column, shape (distinct, width); errors as `to_bits`.

    Widths are looked at of those that are `used`: each batch of a log may come with the distinct sets of all.
    """
    values, offsets, n = sets.dictionary, _offsets(sets.dictionary), len(sets.dictionary)
    total = int(offsets[-1] - offsets[0])
    size = total // n if n else 0
    low, high, _ = used.indices(n)
    held = offsets[low : high + 1]
    if values.null_count or total != n * size or held[0] - offsets[0] != low * size or (np.diff(held) != size).any():
        raise _uneven()
    found = np.frombuffer(values.buffers()[2], np.uint8, total, int(offsets[0])) if total else np.zeros(0, np.uint8)
    return found.reshape(n, size)


def set_bytes(sets: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Return how many bytes the set of each display has, shape (n,); none is missing."""
    found: npt.NDArray[np.int32] = np.diff(_offsets(sets.dictionary))[sets.indices.to_numpy()]
    return found


def _offsets(values: pa.BinaryArray) -> npt.NDArray[np.int32]:
    if len(values) == 0:  # perhaps without any buffer
        return np.zeros(1, np.int32)
    return np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)


def _uneven() -> LogError:
    return LogError(
        "displays.eligible: sets of different widths, or missing ones.",
        remedy="give each display 8 bytes for every 64 actions (evaluator.log.eligible.pack).",
    )


def unpack(sets: pa.ChunkedArray | pa.DictionaryArray, n_actions: int) -> npt.NDArray[np.bool_]:
    """Return a column of sets as truths, shape (n, K): for some displays, not for those of a whole log."""
    return np.unpackbits(to_bits(sets), axis=1, count=n_actions, bitorder="little").view(np.bool_)


def sizes(bits: Bits | SetCodes) -> npt.NDArray[np.int64]:
    """Return the number of eligible actions of each display, shape (n,)."""
    if isinstance(bits, SetCodes):
        codes = np.asarray(bits)
        if len(codes) >= len(bits.distinct):
            return sizes(bits.distinct)[codes]
        # A log's distinct sets may be as many as its displays, of which these are few, and often lie together.
        reach = _reach(codes)
        together = reach.stop - reach.start <= len(codes)
        return sizes(bits.distinct[reach])[codes - reach.start] if together else sizes(bits.distinct[codes])
    counts = np.zeros(len(bits), np.int64)
    # Words are read once, row by row; NumPy is slow at sums of a few each.
    of_words = np.bitwise_count(words(bits))
    eights = of_words.shape[1] // 8 * 8
    for of_word in of_words[:, eights:].T:
        counts += of_word
    for eight in of_words[:, :eights].view(np.uint64).T:
        # Eight numbers of a byte each, of at most 64: added in pairs, and the pairs by a product whose top they are.
        pairs = (eight >> _BYTE) & _EVEN_BYTES
        pairs += eight & _EVEN_BYTES
        pairs *= _EVEN_ONES
        pairs >>= _THREE_PAIRS
        counts += pairs.view(np.int64)
    return counts


def members(bits: Bits) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the eligible actions of displays with sets of shape (n, width), one display after the other.

    The first array, shape (n + 1,), holds the place of each display's first action in the second, which holds the
    actions of all displays, shape (m,): those of display i are at first[i] to first[i + 1] (excluded), increasing.

    Examples
    --------
    >>> first, action = members(to_bits(pack(np.array([[True, False, True], [False, True, False]]))))
    >>> first.tolist(), action.tolist()
    ([0, 2, 3], [0, 2, 1])
    """
    wide = words(bits)
    # Of thousands of actions a display has tens: only what is not empty is taken apart.
    row, column = np.nonzero(wide)
    full = wide[row, column]
    counts = np.bitwise_count(full)
    found = np.empty(int(counts.sum(dtype=np.int64)), np.int32)
    at = 0
    for part in blocks(len(full), 64):
        truths = np.unpackbits(full[part].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        place, bit = np.nonzero(truths)
        found[at : at + len(bit)] = column[part][place] * 64 + bit
        at += len(bit)
    of = np.bincount(row, counts, minlength=len(bits)).astype(np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(of)]), found


def holds(bits: Bits, action: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Return whether each display's set holds an action, shape (n,); no set holds an invalid action."""
    inside = (action >= 0) & (action < 8 * bits.shape[1])
    at = np.where(inside, action, 0).astype(np.int64)
    held: npt.NDArray[np.bool_] = (bits[np.arange(len(bits)), at >> 3] >> (at & 7).astype(np.uint8)) & 1 == 1
    held &= inside
    return held


def chosen_bits(bits: Bits, actions: npt.NDArray[np.integer]) -> Bits:
    """Return the sets, shape (n, width), of the given actions alone, shape (k,), numbered in this order."""
    out = np.empty((len(bits), width(len(actions))), np.uint8)
    byte, bit = np.asarray(actions) >> 3, (np.asarray(actions) & 7).astype(np.uint8)
    for part in blocks(len(bits), len(actions)):
        out[part] = bits_of((bits[part][:, byte] >> bit) & 1 == 1)
    return out


def any_eligible(sets: SetCodes, actions: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Return whether some of these actions is eligible at each display, shape (n,)."""
    some: npt.NDArray[np.bool_] = np.asarray(chosen_bits(sets.distinct, actions).any(axis=1))
    return some[np.asarray(sets)]


def chosen_sets(sets: pa.DictionaryArray, actions: npt.NDArray[np.integer]) -> pa.DictionaryArray:
    """Return a column of sets of some actions alone, numbered in this order, shape (k,)."""
    of_distinct = packed(chosen_bits(distinct_bits(sets), actions))
    return pa.DictionaryArray.from_arrays(of_distinct.indices.take(sets.indices), of_distinct.dictionary)


def beyond(bits: Bits, n_actions: int) -> npt.NDArray[np.int64]:
    """Return the first bit of each set that is none of the K actions, shape (n,), -1 where there is none."""
    extra = bits[:, n_actions // 8 :].copy()
    if extra.shape[1] == 0:
        return np.full(len(bits), -1, np.int64)
    extra[:, 0] &= np.uint8(0xFF << n_actions % 8 & 0xFF)
    found = np.full(len(bits), -1, np.int64)
    rows = np.flatnonzero(extra.any(axis=1))
    found[rows] = 8 * (n_actions // 8) + np.unpackbits(extra[rows], axis=1, bitorder="little").argmax(axis=1)
    return found


def blocks(n: int, entries: int) -> Iterator[slice]:
    """Yield slices of n rows with so many entries each, as many at a time as fit into little memory."""
    step = max(_BLOCK // max(entries, 1), 1)
    for start in range(0, n, step):
        yield slice(start, start + step)


def words(bits: Bits) -> npt.NDArray[np.uint64]:
    """Return sets 64 actions at a time, the first the lowest bit, shape (n, ceil(K / 64))."""
    return np.require(_whole_words(bits), requirements=["C", "A"]).view("<u8").astype(np.uint64, copy=False)


def _whole_words(bits: Bits) -> Bits:
    """Return sets with as many bytes as the actions of a column need, shape (n, width)."""
    n, size = bits.shape
    if size % 8 == 0:
        return bits
    wide = np.zeros((n, width(8 * size)), np.uint8)
    wide[:, :size] = bits
    return wide


class EligibleByPart:
    """Number of displays at which each action was eligible, in parts of a log, added up batch by batch."""

    def __init__(self, n_displays: int, n_actions: int) -> None:
        self._n = n_displays
        self._counts = np.zeros((_PARTS, n_actions), np.int64)
        self._sizes = np.zeros(_PARTS, np.int64)

    def add(
        self, first: int, of: npt.NDArray[np.integer], begins: npt.NDArray[np.int64], actions: npt.NDArray[np.integer]
    ) -> None:
        """Add the displays of one batch, of which the first is the log's display `first`.

        `of` is the distinct set of each, in [0, S), shape (n,); the actions of each distinct set are `actions`, from
        `begins` on, shape (S + 1,), as `members` has them.
        """
        part = np.arange(first, first + len(of)) * _PARTS // self._n
        for p in np.unique(part):
            shown = np.bincount(of[part == p], minlength=len(begins) - 1)
            self._counts[p] += np.bincount(
                actions, np.repeat(shown, np.diff(begins)), minlength=self._counts.shape[1]
            ).astype(np.int64)
            self._sizes[p] += int(shown.sum())

    @property
    def displays(self) -> npt.NDArray[np.int64]:
        """Number of displays at which each action was eligible, shape (K,)."""
        found: npt.NDArray[np.int64] = self._counts.sum(axis=0)
        return found

    def moving(self) -> int:
        """Return the action whose eligibility changes most with time, or -1 if no action's changes much."""
        known = self._sizes > 0
        counts, sizes = self._counts[known], self._sizes[known]
        if len(counts) < 2:
            return -1
        spread = np.ptp(counts / sizes[:, None], axis=0)
        if spread.max() <= _MUCH or not moves_with_time(counts, sizes):
            return -1
        return int(spread.argmax())


def moves_with_time(by_block: npt.NDArray[np.int64], displays: npt.NDArray[np.int64]) -> bool:
    """Return whether some action's eligible displays are concentrated in time, at `MOVING_LEVEL` over all actions.

    Where sets are exchangeable over the displays, an action is eligible at the same share of every block of time: each
    action's chi-square test at MOVING_LEVEL / K. Contexts that drift move the sets that depend on them, and are found
    as well. `by_block` counts the displays at which each action was eligible, by block of successive displays, shape
    (B, K); `displays` counts those of each block, shape (B,).
    """
    from scipy.stats import chi2

    share = by_block.sum(axis=0) / displays.sum()
    variance = displays[:, None] * share * (1.0 - share)
    known = variance.min(axis=0) >= _EXPECTED
    if len(displays) < 2 or not known.any():
        return False
    off = ((by_block - displays[:, None] * share)[:, known] ** 2 / variance[:, known]).sum(axis=0)
    return bool(chi2.sf(off.max(), len(displays) - 1) < MOVING_LEVEL / by_block.shape[1])
