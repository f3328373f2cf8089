"""Arrays in a file that anybody may have written: no pickle, and no more memory than the file itself takes.

A file is a zip archive of ``.npy`` members, as `numpy.savez` writes it. Members are stored as they are, so that what a
file unpacks to is what it weighs. Those of earlier versions are compressed, and held to `LARGEST_UNPACKED`.
"""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.errors import SourceError, nearest_file

Arrays = dict[str, npt.NDArray[Any]]

# Of a file with compressed members, all together. A kilobyte of them may stand for a megabyte.
LARGEST_UNPACKED = 1 << 28
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a file by their names.

    Raises
    ------
    SourceError
        There is no such file, or it is damaged, or holds something else, or unpacks to more than `LARGEST_UNPACKED`.
    """
    hint = nearest_file(path, "evaluate replay --save-policy FILE writes one.")
    if not path.is_file():
        raise SourceError(f"No policy file {str(path)!r}.", remedy=hint)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_size(path, members)
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except SourceError:
        raise
    except Exception as error:  # which one a damaged archive or header ends in, its readers do not say
        raise SourceError(f"{path} is no policy file, or damaged ({error}).", remedy=hint) from error


def _check_size(path: Path, members: list[zipfile.ZipInfo]) -> None:
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise ValueError("two members of one name")
    size = path.stat().st_size
    packed, unpacked = (sum(getattr(m, name) for m in members) for name in ("compress_size", "file_size"))
    kinds = {member.compress_type for member in members}
    if kinds - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:  # others take a dictionary of the size that they state
        raise ValueError("members packed as no version packed them")
    if packed > size or (kinds <= {zipfile.ZIP_STORED} and unpacked > size):
        raise ValueError(f"{max(packed, unpacked):,} bytes in {size:,}")
    if unpacked > LARGEST_UNPACKED and zipfile.ZIP_DEFLATED in kinds:
        raise SourceError(
            f"{path} is compressed and unpacks to {unpacked:,} bytes, more than {LARGEST_UNPACKED:,}.",
            remedy="replay and save the policy with this version, which compresses nothing.",
        )


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return a member's array, after its checksum and its header were found to fit what it holds."""
    content = archive.read(member)
    file = io.BytesIO(content)
    shape, column_major, kind = _HEADERS[np.lib.format.read_magic(file)](file)
    if kind.kind not in "biuf" or not kind.isnative:
        raise ValueError(f"{member.filename} holds {kind}, not numbers of this machine")
    if any(n < 0 for n in shape) or math.prod(shape) * kind.itemsize != len(content) - file.tell():
        raise ValueError(f"{member.filename} says that its shape is {shape}, in {len(content):,} bytes")
    flat = np.frombuffer(content, kind, offset=file.tell())
    return flat.reshape(shape, order="F" if column_major else "C")
