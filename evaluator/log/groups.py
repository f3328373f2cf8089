"""The groups that displays form by a column which their log keeps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.schema import kept_columns

Ints = npt.NDArray[np.int64]


def group_codes(log: Log, displays: Ints, columns: tuple[str, ...], *, asked: str) -> list[Ints]:
    """Return a number of each distinct value of some displays in some columns, an empty cell being one value.

    Parameters
    ----------
    log
        Log whose columns are read.
    displays
        Numbers of the displays, increasing, shape (n,).
    columns
        Names of columns that the log keeps.
    asked
        The option that names them, for errors, with ``{}`` where a column stands.

    Raises
    ------
    ParameterError
        A column is not in the log, or its values are no groups.
    """
    kept = kept_columns(log.schema.names)
    for name in columns:
        if name not in kept:
            raise ParameterError(
                f"{asked.format(name)}: log {log.meta.name!r} "
                f"keeps no such column (it keeps {', '.join(kept) or 'none'}).",
                hint=f"read or convert its source anew with `keep=['{name}']`.",
            )
        kind = log.schema.field(name).type
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            raise ParameterError(
                f"{asked.format(name)}: values of type {kind} are no groups.",
                hint="keep a column of words or whole numbers, such as a device or a country.",
            )
    read = log.take(displays, columns) if columns else {}
    return [_codes(read[name]) for name in columns]


def _codes(column: pa.ChunkedArray) -> Ints:
    words = column.combine_chunks()
    if pa.types.is_dictionary(words.type):
        words = words.dictionary_decode()
    codes: Ints = words.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)
