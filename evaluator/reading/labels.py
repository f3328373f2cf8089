"""Columns of labels as small integers, so that Python touches each distinct label of a chunk once.

Of the labels of actions, which a log keeps, and which propensities the displays of these then have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import PropensityError, UnknownNameError, UsageError, nearest
from evaluator.log import PropensityKind
from evaluator.log.encoder import TRUTHS, UUID, UUID_LENGTH, WHOLE, value_text
from evaluator.streams import STEP

# Before the name of a column that the log keeps as it is.
KEPT = "__kept_"
# The largest of the bytes that stand for blanks, the point, and the least of those that truth values and UUIDs have.
_BLANK, _POINT, _LEAST_LETTER = 32, ord("."), ord("F")
# Bytes of a text that Arrow's view of it holds, and of a number.
_INLINE, _WORD = 12, 8
# Bits of the places of texts that are remembered, at first and at most; more where one cell in so many is new. Cells
# that are looked up at once: few enough that they stay in the processor's cache.
_FEWEST_BITS, _MOST_BITS, _MANY, _BLOCK = 12, 18, 16, 1 << 14

Texts = TypeVar("Texts", pl.Series, pl.Expr)
RENORMALISED = (
    "Actions were filtered: logged propensities, the same at every display of an action, were made to sum to 1 over "
    "the kept ones."
)
NOT_RENORMALISED = (
    "Actions were filtered, and the logged propensities depend on the display: they stay those of the full action set. "
    "A replay's value is for the contexts of all displays; the logging policy's value is on the displays where it "
    "showed a kept action, so the uplift over it is not known."
)
OF_SETS = (
    "Actions were filtered, and displays have eligible actions of their own: the logged propensities stay those of all "
    "that were eligible. A replay's value, and that of the best order, are of the displays at which a kept action was "
    "eligible; the logging policy's value is on those where it showed one, so the uplift over it is not known."
)
# Chance below which no action of a design is taken to have been missed by all displays.
UNSEEN = 1e-6
Floats = npt.NDArray[np.float64]
# Keeps the actions with displays that were followed long enough to be judged.
USED = "used"


class CodedLabels(NamedTuple):
    """Distinct labels of a chunk, in order of appearance, and for each row the place of its own, -1 where missing."""

    labels: pa.LargeStringArray
    code: npt.NDArray[np.int32]


def coded(column: pl.Series) -> CodedLabels:
    """Return a column of labels as codes that hold for this chunk."""
    text = column if column.dtype == pl.String else value_texts(column)
    if (short := _as_numbers(text)) is not None:
        found = pa.array(short, mask=text.is_null().to_numpy() if text.null_count() else None).dictionary_encode()
        labels = _texts_of(found.dictionary.to_numpy())
    else:
        found = text.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
        labels = found.dictionary
    return CodedLabels(labels, found.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def _inline(text: pl.Series, most: int = _INLINE) -> npt.NDArray[np.uint64] | None:
    """Return short texts as two words each, shape (n, 2); None if one has more bytes than so many.

    Arrow's views of texts hold such ones themselves: four bytes say how long one is, its bytes follow, then zeros.
    <https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>
    """
    views = text.to_arrow(compat_level=pl.CompatLevel.newest())
    if not pa.types.is_string_view(views.type) or len(views) == 0:
        return None
    words = np.frombuffer(views.buffers()[1], np.uint64).reshape(-1, 2)[views.offset : views.offset + len(views)]
    return words if int(words.view(np.uint32)[:, 0].max()) <= most else None


def value_texts(column: pl.Series) -> pl.Series:
    """Return a column as the texts that tell its values apart, by the rule of `evaluator.log.encoder`, or the same.

    An empty text, and what is no number among numbers, is missing. A column of text costs 6 ns a cell where it is as it
    should be.
    """
    kind = column.dtype
    if kind == pl.String:
        return _as_values(column)
    if kind.is_float():
        whole = column.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(kind) == column).fill_null(False)
        return whole.cast(pl.String).zip_with(is_whole, column.fill_nan(None).cast(pl.String))
    if kind.is_decimal():
        return plain_decimals(column.cast(pl.String))
    if isinstance(kind, pl.Datetime):
        # Kept in ms, us or ns, a moment looks alike.
        return column.cast(pl.String).str.replace(r"(\.\d*?)0+(\D|$)", "$1$2").str.replace(r"\.(\D|$)", "$1")
    text = column.cast(pl.String)
    return text if kind.is_integer() or kind == pl.Boolean else _as_values(text)


def _as_numbers(text: pl.Series) -> npt.NDArray[np.uint64] | None:
    """Return texts of up to eight bytes as these bytes, shape (n,): numbers are told apart in half of the time.

    None if one is longer, or holds a zero as those do that fill the others up.
    """
    numbers, at = np.empty(len(text), np.uint64), 0
    for chunk in text.get_chunks():  # to join them takes as long
        words = _inline(chunk, _WORD)
        if words is None:
            return None
        lengths, found = words.view(np.uint32)[:, 0], numbers[at : at + len(words)]
        np.right_shift(words[:, 0], np.uint64(32), out=found)
        found |= words[:, 1] << np.uint64(32)
        at += len(words)
        if np.count_nonzero(found.view(np.uint8)) != int(lengths.sum()):
            return None
    return numbers if at else None


def _texts_of(numbers: npt.NDArray[np.uint64]) -> pa.LargeStringArray:
    """Return the texts that `_as_numbers` made numbers of."""
    cells = numbers.view(np.uint8).reshape(-1, 8)
    filled = cells != 0
    ends = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    return pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(cells[filled]))


def _are_values(text: pl.Series) -> bool:
    """Return whether these are short texts none of which `_as_values` would change, as a look at their bytes tells."""
    words = _inline(text)
    if words is None or text.null_count():
        return False
    cells = words.view(np.uint8)
    lengths = words.view(np.uint32)[:, 0]
    # Beside the bytes of a text, and none else of them, blanks are no more than the length and the zeros.
    around = 16 * len(words) - int(lengths.sum())
    plain = int(cells.max()) < _LEAST_LETTER and np.count_nonzero(cells <= _BLANK) == around
    return bool(plain and lengths.min() > 0 and not (cells == _POINT).any())


def _as_values(text: pl.Series) -> pl.Series:
    if _are_values(text):
        return text
    # The bytes of all cells at once tell what none of them needs.
    data = text.to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()[2]
    data = b"" if data is None else data.to_pybytes()
    if not data.isascii() or (data and np.frombuffer(data, np.uint8).min() <= _BLANK):
        text = text.str.strip_chars()
    lengths = text.str.len_bytes()
    if (lengths == 0).any():
        text = text.set(lengths == 0, None)
    if b"." in data and text.str.ends_with("0").any():
        text = text.str.replace(WHOLE, "$1$2")
    if b"T" in data or b"F" in data:
        for said, truth in TRUTHS.items():
            found = text == said
            text = text.set(found, truth) if found.any() else text
    if (lengths == UUID_LENGTH).any() and (found := text.str.contains(UUID)).any():
        text = text.str.to_lowercase().zip_with(found, text)
    return text


def plain_decimals(text: Texts) -> Texts:
    """Return decimal numbers without zeros at their ends: 17, 17.0 and 17.00 are one number.

    >>> plain_decimals(pl.Series(["17.00", "-0.50", "100", "nan"])).to_list()
    ['17', '-0.5', '100', 'nan']
    """
    return text.str.replace(r"^(-?\d+)\.0+$", "$1").str.replace(r"^(-?\d+\.\d*[1-9])0+$", "$1")


class Remembered:
    """A function of the cells of a column, each by itself, that is not asked again of texts that came lately.

    Most columns hold few texts, and a look at where one was is quicker than to tell all of a chunk apart. Texts of up
    to eight bytes have a place each, which they may share: the last one holds it. Memory: at most 3 MB.
    """

    def __init__(self, function: Callable[[pl.Series], npt.NDArray[Any]]) -> None:
        self._function = function
        self._bits, self._texts, self._answers = 0, np.zeros(0, np.uint64), np.zeros(0, np.int32)

    def __call__(self, cells: pl.Series) -> npt.NDArray[Any]:
        """Return what the function gives for each cell, shape (n,)."""
        numbers = None if cells.null_count() else _as_numbers(cells)
        if numbers is None:
            return self._function(cells)
        if self._bits == 0:
            return self._learn(cells, numbers, _FEWEST_BITS)
        found, new = np.empty(len(numbers), self._answers.dtype), []
        for first in range(0, len(numbers), _BLOCK):
            part = numbers[first : first + _BLOCK]
            place = self._places(part)
            self._answers.take(place, out=found[first : first + _BLOCK], mode="clip")
            new.append(np.flatnonzero(self._texts.take(place, mode="clip") != part) + first)
        at = np.concatenate(new)
        if _MANY * len(at) > len(numbers) and self._bits < _MOST_BITS:
            return self._learn(cells, numbers, self._bits + 2)
        if len(at):
            found[at] = self._function(cells.gather(pl.Series(at)))
            self._put(numbers[at], found[at])
        return found

    def _learn(self, cells: pl.Series, numbers: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[Any]:
        """Return what the function gives for each cell, which it remembers in places of so many bits, and no others."""
        found = self._function(cells)
        self._bits = bits
        # Each place holds a text that has another one.
        self._texts, self._answers = np.ones(1 << bits, np.uint64), np.zeros(1 << bits, found.dtype)
        self._texts[self._places(self._texts[:1])] = 0
        self._put(numbers, found)
        return found

    def _put(self, numbers: npt.NDArray[np.uint64], found: npt.NDArray[Any]) -> None:
        place = self._places(numbers)
        self._texts[place], self._answers[place] = numbers, found

    def _places(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        return (numbers * STEP >> np.uint64(64 - self._bits)).view(np.int64)


class Labels:
    """The distinct labels of a column over all chunks, numbered in order of appearance. Memory: one text a label."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._remembered = Remembered(self._codes)

    @property
    def names(self) -> list[str]:
        """The labels; the place of each is its code."""
        return list(self._number)

    def codes(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Return the code of each row, -1 where its label is missing."""
        return self._remembered(column) if column.dtype == pl.String else self._codes(column)

    def _codes(self, column: pl.Series) -> npt.NDArray[np.int32]:
        labels, code = coded(column)
        number = self._number
        codes = [number.setdefault(label, len(number)) for label in labels.to_pylist()]
        return np.array([*codes, -1], dtype=np.int32)[code]  # code -1 takes the last


def choose_actions(
    labels: Sequence[str], shown: npt.NDArray[np.integer], wanted: str | Sequence[str] | None
) -> list[int]:
    """Return which of the labels are kept, as positions, in the order of their index.

    `shown` (K,) are the displays of each label, for ``used`` those that can be judged; labels never shown are not kept.
    None, and ``used``, keep all (numeric labels in numeric order, others alphabetically); ``top:n`` keeps the n most
    shown, most shown first; a list, or a text with commas, keeps those labels in that order. Raises UsageError unless
    the number in ``top:n`` is a whole one of at least 2, and UnknownNameError if a wanted label was never shown.
    """
    order = sorted(np.flatnonzero(shown).tolist(), key=lambda i: _label_order(labels[i]))
    if isinstance(wanted, str) and wanted.startswith("top"):
        n = re.fullmatch(r"top:([0-9]{1,18})", wanted)
        if n is None or int(n[1]) < 2:
            raise UsageError(f"actions={wanted!r}.", remedy="write top:10, with at least 2 actions.")
        return sorted(order, key=lambda i: -shown[i])[: int(n[1])]
    if wanted is None or wanted == USED:
        return order
    names = [value_text(str(w)) for w in (wanted.split(",") if isinstance(wanted, str) else wanted)]
    where = {labels[i]: i for i in order}
    for name in names:
        if name not in where:
            raise UnknownNameError(f"No action {name!r} in the log.", remedy=nearest(name, where))
    return [where[name] for name in dict.fromkeys(names)]


def _label_order(label: str) -> tuple[int, int, str]:
    # str.isdigit would take superscripts, which int() refuses, as it does numbers of more than 4,300 digits.
    return (0, int(label), label) if re.fullmatch(r"-?[0-9]{1,4000}", label) else (1, 0, label)


def by_design(design: float | Mapping[str, float], labels: Sequence[str]) -> Floats:
    """Return the propensity that a design gives each label, shape (n,).

    Raises PropensityError if the design does not name one of them.
    """
    of = {value_text(str(label)): p for label, p in design.items()} if isinstance(design, Mapping) else dict.fromkeys(
        labels, design
    )  # fmt: skip
    for label in labels:
        if label not in of:
            hint = f"name each, as the log writes it; {nearest(label, of)}"
            raise PropensityError(f"display.propensity gives action {label!r} none, and the log has it.", remedy=hint)
    return np.array([of[label] for label in labels], np.float64)


def check_design(propensity: Floats, shown: npt.NDArray[np.integer]) -> None:
    """Refuse a design whose propensities (K,) cannot be those of displays that showed each action so often, (K,).

    Raises PropensityError if the propensities of the actions that were shown sum to more than 1; or to so little that
    some of the others would have been shown, but for a chance of `UNSEEN`.
    """
    total, n = float(propensity[shown > 0].sum()), int(shown.sum())
    # One number for all may be rounded, 0.33 for a third: it accepts the same share of every action's displays.
    if not n or abs(total - 1) <= (1e-2 if np.ptp(propensity) == 0 else 1e-6):
        return
    said = f"display.propensity: those of the {np.count_nonzero(shown):,} actions that were shown sum to {total:g}"
    if total > 1:
        raise PropensityError(f"{said}, not to 1.", remedy="give each action its own, or propensity_kind = 'uniform'.")
    if n * math.log(total) < math.log(UNSEEN):
        raise PropensityError(
            f"{said}, yet all {n:,} displays show one of these.",
            remedy="read the displays of the others too, or give the propensities among those that were shown.",
        )


class ShownActions:
    """What a pass over the displays finds of each action of a source."""

    def __init__(self, n: int) -> None:
        self.shown = np.zeros(n, np.int64)
        self.weight = np.zeros(n)
        self.smallest, self.largest = np.full(n, np.inf), np.full(n, -np.inf)

    def read(
        self,
        action: npt.NDArray[np.integer],
        propensity: npt.NDArray[np.float64] | None,
        weight: npt.NDArray[np.float64] | None,
    ) -> None:
        """Take in some displays, shape (n,) each; without weights all weigh 1."""
        self.shown += np.bincount(action, minlength=len(self.shown))
        self.weight += np.bincount(action, weight, minlength=len(self.shown))
        if propensity is not None:
            np.minimum.at(self.smallest, action, propensity)
            np.maximum.at(self.largest, action, propensity)


class KeptPropensities(NamedTuple):
    """Propensities of the displays that stay.

    Displays of each kept action get the propensity `of_action` (K,), or keep what was logged where it is None.
    `kept_share` is the share of the displays that were kept, of those at which a kept action was eligible, as in
    `evaluator.log.LogMeta`.
    """

    kind: PropensityKind
    of_action: npt.NDArray[np.float64] | None = None
    kept_share: float = 1.0
    notes: tuple[str, ...] = ()


def kept_propensities(
    kind: PropensityKind, seen: ShownActions, kept: npt.NDArray[np.integer], *, choosable: float | None
) -> KeptPropensities:
    """Return the propensities of the displays that stay when some actions are kept.

    Uniform ones become 1/K. Logged ones that never change within a kept action have a known sum over the kept ones, by
    which they are divided. Others have not: the log holds the propensity of the shown action only. They stay, and a
    rejection replay is exact for the contexts of all displays, for given its context a display is accepted with the
    same probability whatever the action; what averages over the displays that stay is not. Where displays have sets of
    their own, no action knows the sum over a set. Uniform ones stay too, and are logged ones then: the fewer of a set
    are kept, the fewer of its displays stay, so that one over how many are kept would be right given the displays that
    stay, and these no even sample of the traffic. `kept` (K,) are the numbers of the kept actions among those of
    `seen`. `choosable` is the weight of the displays at which a kept action was eligible: no policy has a choice at the
    others, which are not among those that a value is of. None where every action always is.
    """
    whole = float(seen.weight.sum()) if choosable is None else choosable
    share = min(float(seen.weight[kept].sum()) / max(whole, 1e-300), 1.0)
    if kind == "uniform" and choosable is None:
        return KeptPropensities(kind, np.full(len(kept), 1.0 / max(len(kept), 1)))
    if kind == "absent" or share == 1.0:
        return KeptPropensities(kind)
    low, high = seen.smallest[kept], seen.largest[kept]
    if choosable is None and np.all(high - low <= 1e-9 * high):
        return KeptPropensities(kind, low / low.sum(), 1.0, (RENORMALISED,))
    kind = "logged" if kind == "uniform" else kind
    return KeptPropensities(kind, None, share, (NOT_RENORMALISED if choosable is None else OF_SETS,))
