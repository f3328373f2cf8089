"""What context vectors are made of: the spec's columns and encoding, or those of the call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.datasets.spec import ColumnKind, Context, Encoding, FileSpec, Scale
from evaluator.errors import UsageError

_FEATURES = re.compile(r"(?P<columns>[^:]*?):?(?:(?P<encoding>hash|one-hot|number)(?:[:=](?P<width>\d+))?)?")
_ENCODING_ALONE = re.compile(r"(hash|one-hot|number)(?:[:=]\d+)?")


@dataclass(frozen=True)
class Features:
    """What a context vector is made of.

    Parameters
    ----------
    kinds
        Kind of each context column, by name; empty for a log without context.
    encoding
        Encoding of the categories, hash or one-hot; ``number`` reads every column as a number.
    dimensions
        Number of dimensions of the hashed part.
    intercept
        Whether a constant 1 is appended.
    scale
        How numbers are scaled; None as they are.
    """

    kinds: Mapping[str, ColumnKind]
    encoding: Encoding
    dimensions: int
    intercept: bool
    scale: Scale | None = None

    def columns(self, kind: ColumnKind) -> list[str]:
        """Return the columns of a kind."""
        return [column for column, found in self.kinds.items() if found == kind]


def choose_features(spec: FileSpec, features: str | None) -> Features:
    """Return the features of the spec, changed by the call.

    Parameters
    ----------
    spec
        Spec of the dataset.
    features
        Choice of features. None keeps the spec's. ``none``: no context. ``col1,col2``: these columns, encoded as in the
        spec. ``col1,col2:hash=32``, ``col1:one-hot``, ``col1,col2:number``: these columns, so encoded. ``hash=32`` (or
        ``hash:32``): the spec's columns, so encoded. A column that the spec does not list is a category, unless the
        encoding is ``number``.

    Raises
    ------
    UsageError
        The text cannot be read, or names an outcome, which a policy would not know when it chooses.
    """
    given: Context = spec.context
    if features is None:
        return Features(given.kinds(), given.encoding, given.dimensions, given.intercept, given.scale)
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
        if refused := spec.why_no_feature(name):
            raise UsageError(
                f"features={features!r}: {name!r} {refused}.", hint="choose columns that are known before the display."
            )
    kind: ColumnKind = "number" if encoding == "number" else "category"
    kinds = {n: given.kinds().get(n, kind) if match["encoding"] is None else kind for n in names}
    if alone:
        kinds = {n: given.kinds()[n] if encoding != "number" else "number" for n in names}
    return Features(kinds, encoding, width, given.intercept, given.scale)
