"""Damage to npz and gzip files that leaves them archives."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib

import numpy as np

from tests.fuzz.bombs import swell_gzip
from tests.fuzz.canary import PICKLE
from tests.fuzz.raw import RAW, Mutator, Rng
from tests.fuzz.text import TEXT
from tests.fuzz.trees import change_json

ABOUT = "about.npy"


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _other_array(rng: Rng, member: bytes) -> bytes:
    """Return another member: of another shape or type, with NaN in it, of a size it does not have, or a pickle."""
    try:
        array = np.load(io.BytesIO(member), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return member
    kind = rng.integers(10)
    if kind == 0:
        return _npy(array.astype(np.float32))
    if kind == 1:
        return _npy(array.reshape(-1)[: array.size // 2])
    if kind == 2:
        return _npy(np.repeat(array.reshape(-1), 2))
    if kind == 3:
        return _npy(np.full(array.shape, np.nan))
    if kind == 4:
        return _npy(np.full(array.shape, -1, array.dtype if array.dtype.kind != "u" else np.int64))
    if kind == 5:
        return _header("'<f8'", "(4611686018427387904,)")
    if kind == 6:
        return _header("'<f8'", "(400000000,)") + b"\0" * 64
    if kind == 7:
        return _header("'|O'", "(1,)") + PICKLE
    if kind == 8 and array.dtype.kind == "f" and array.size:
        changed = array.copy()
        changed.reshape(-1)[int(rng.integers(array.size))] = rng.choice([np.nan, np.inf, 1e308, -1e-320])
        return _npy(changed)
    return _npy(array.astype("U8") if array.size < 1000 else array[:0])


def change_npz(rng: Rng, data: bytes) -> bytes:
    """Change, drop, copy or inflate a member."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as stored:
            members = {name: stored.read(name) for name in stored.namelist()}
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError):
        return data  # damaged before
    names = sorted(members)
    name = names[int(rng.integers(len(names)))]
    kind = rng.integers(10)
    if kind < 4 and ABOUT in members:
        try:
            about = bytes(np.load(io.BytesIO(members[ABOUT])))
            members[ABOUT] = _npy(np.frombuffer(change_json(rng, about), np.uint8))
        except (ValueError, EOFError, OSError, json.JSONDecodeError):
            return data
    elif kind < 7:
        members[name] = _other_array(rng, members[name])
    elif kind == 7:
        del members[name]
    elif kind == 8:
        members[names[int(rng.integers(len(names)))]] = members[name]
    else:
        members[name if rng.integers(2) else "extra.npy"] = _header("'<f8'", "(8000000,)") + bytes(64_000_000)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as stored:
        for own, member in members.items():
            stored.writestr(zipfile.ZipInfo(own), member, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def change_gzip(rng: Rng, data: bytes) -> bytes:
    """Damage the text inside."""
    try:
        text = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return data
    mutators = TEXT if text and rng.integers(4) else RAW
    inner = mutators[int(rng.integers(len(mutators)))](rng, text or b"\n")
    return gzip.compress(inner, mtime=0) + (gzip.compress(b"\xe9\n", mtime=0) if rng.integers(8) == 0 else b"")


NPZ: tuple[Mutator, ...] = (change_npz,)
GZIP: tuple[Mutator, ...] = (*[change_gzip] * 7, swell_gzip)
