"""What rows of delays hold, in one hash: rows with the same one give the same study, wherever they were read from."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa

from evaluator.log.delay_rows import DelayRows


def delays_hash(rows: DelayRows) -> str:
    """Return the SHA-256, in hex, of delays, limits and groups, and of what their time stamps tell apart.

    >>> import numpy as np
    >>> rows = DelayRows("file", "s", np.arange(3), None, None, "")
    >>> delays_hash(rows) == delays_hash(DelayRows("other", "s", np.arange(3), None, None, ""))
    True
    """
    digest = hashlib.sha256(f"{len(rows.delay)} {rows.stamp}".encode())
    for name, values in (("delay", rows.delay), ("limit", rows.limit)):
        digest.update(f"\n{name}: {values is not None}\n".encode())
        if values is not None:
            digest.update(np.ascontiguousarray(values, np.int64).data)
    digest.update(f"\ngroup: {rows.group is not None}\n".encode())
    if rows.group is not None:
        labels = pa.array(rows.group.astype(object, copy=False), pa.string()).dictionary_encode()
        digest.update(json.dumps(labels.dictionary.to_pylist()).encode())
        digest.update(np.ascontiguousarray(labels.indices.to_numpy(zero_copy_only=False), np.int32).data)
    return digest.hexdigest()
