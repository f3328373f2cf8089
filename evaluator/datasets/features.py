"""Context vectors from columns: hashed or one-hot categories, numbers, intercept."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.codes import codes
from evaluator.datasets.spec import ColumnKind, Context, Encoding, FileSpec
from evaluator.errors import UsageError

ONE_HOT_MAX = 256
_FEATURES = re.compile(r"(?P<columns>[^:]*?):?(?:(?P<encoding>hash|one-hot|number)(?:[:=](?P<width>\d+))?)?")
_ENCODING_ALONE = re.compile(r"(hash|one-hot|number)(?:[:=]\d+)?")


@dataclass(frozen=True)
class Features:
    """What a context vector is made of.

    Parameters
    ----------
    kinds
        Context columns and the kind of each; empty for a log without context.
    encoding
        Of the categories: hash or one-hot; ``number`` reads every column as a number.
    dimensions
        Width of the hashed part.
    intercept
        Whether a constant is appended.
    """

    kinds: Mapping[str, ColumnKind]
    encoding: Encoding
    dimensions: int
    intercept: bool


def choose_features(spec: FileSpec, features: str | None) -> Features:
    """Return the features of the spec, changed by the call.

    Parameters
    ----------
    spec
        Dataset spec.
    features
        None keeps the spec's. ``none``: no context. ``col1,col2``: these columns, encoded as in the spec.
        ``col1,col2:hash=32``, ``col1:one-hot``, ``col1,col2:number``: these columns, so encoded. ``hash=32`` (or
        ``hash:32``): the spec's columns, so encoded. A column that the spec does not list is a category, unless the
        encoding is ``number``.

    Raises
    ------
    UsageError
        The text cannot be read, or names an outcome, which a policy would not know when it chooses.
    """
    given: Context = spec.context
    if features is None:
        return Features(given.kinds(), given.encoding, given.dimensions, given.intercept)
    if features == "none":
        return Features({}, "hash", given.dimensions, False)
    alone = _ENCODING_ALONE.fullmatch(features)
    match = _FEATURES.fullmatch(f":{features}" if alone else features)
    if match is None or (match["width"] and (match["encoding"] != "hash" or int(match["width"]) < 1)):
        raise UsageError(f"features={features!r}.", hint="write none, col1,col2, col1,col2:hash=32 or hash=32.")
    encoding: Encoding = match["encoding"] or given.encoding  # type: ignore[assignment]
    width = int(match["width"]) if match["width"] else given.dimensions
    names = [c.strip() for c in match["columns"].split(",") if c.strip()] or list(given.kinds())
    for name in names:
        if name in spec.leakage.columns:
            raise UsageError(
                f"features={features!r}: {name!r} is known only after the outcome, a policy could not see it.",
                hint="choose columns that are known before the display.",
            )
    kind: ColumnKind = "number" if encoding == "number" else "category"
    kinds = {n: given.kinds().get(n, kind) if match["encoding"] is None else kind for n in names}
    if alone:
        kinds = {n: given.kinds()[n] if encoding != "number" else "number" for n in names}
    return Features(kinds, encoding, width, given.intercept)


def token_slot(token: str, dimensions: int) -> tuple[int, float]:
    """Return the position and sign of a token ``column=value``.

    Position from the low 31 bits of its CRC-32 (UTF-8), sign from the top bit.

    >>> token_slot("cat1=9", 16)
    (0, 1.0)
    """
    code = zlib.crc32(token.encode())
    return (code & 0x7FFFFFFF) % dimensions, -1.0 if code >> 31 else 1.0


def build_context(frame: pl.DataFrame, features: Features) -> npt.NDArray[np.float32] | None:
    """Return the context vectors, shape (n, p) float32, or None without context columns.

    Every vector is divided by sqrt(number of columns + intercept), so that its norm is at most about 1 for categories.
    A missing category is a category of its own. Cost: Python per distinct value, NumPy per row.

    Raises
    ------
    UsageError
        One-hot needs more than 256 dimensions.
    """
    if not features.kinds:
        return None
    categories = [c for c, kind in features.kinds.items() if kind == "category"]
    numbers = [c for c, kind in features.kinds.items() if kind == "number"]
    coded = {c: codes(frame[c]) for c in categories}
    one_hot = features.encoding == "one-hot"
    if one_hot:
        missing = {c: bool((code < 0).any()) for c, (_, code) in coded.items()}
        width = sum(len(labels) + missing[c] for c, (labels, _) in coded.items())
        if width > ONE_HOT_MAX:
            raise UsageError(
                f"One-hot encoding of {', '.join(categories)} needs {width} dimensions, above {ONE_HOT_MAX}.",
                hint="hash them: features='hash=16', or context.encoding = 'hash' in the spec.",
            )
    else:
        width = features.dimensions if categories else 0
    n = frame.height
    context = np.zeros((n, width + len(numbers) + features.intercept), dtype=np.float32)
    rows, offset = np.arange(n), 0
    for column, (labels, code) in coded.items():
        if one_hot:
            slots, signs = np.arange(offset, offset + len(labels) + 1), np.ones(len(labels) + 1, dtype=np.float32)
            offset += len(labels) + missing[column]
        else:
            slots, signs = _slots(column, labels, features.dimensions)
        context[rows, slots[code]] += signs[code]  # code -1 takes the last slot: missing
    for i, column in enumerate(numbers):
        context[:, width + i] = frame[column].cast(pl.Float64).to_numpy()
    if features.intercept:
        context[:, -1] = 1
    context /= np.float32(np.sqrt(len(features.kinds) + features.intercept))
    return context


def _slots(
    column: str, labels: Iterable[str], dimensions: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    found = [token_slot(f"{column}={label}", dimensions) for label in [*labels, ""]]
    return np.array([s for s, _ in found], dtype=np.int64), np.array([s for _, s in found], dtype=np.float32)
