"""LinUCB by a C loop, compiled on the spot: a plain one, and the fastest that we know to write."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.logged_rounds import LoggedRounds

SOURCE = Path(__file__).with_name("linucb.c")


def c_linucb(lazy: int | None = None) -> Callable[[LoggedRounds, int], npt.NDArray[np.int64]] | None:
    """Return a function from rounds and window to the accepted displays; None without a C compiler.

    It is the plain loop, or with `lazy` the fastest, for vectors of this length.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = Path(tempfile.mkdtemp()) / "linucb.so"
    flags = ["-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
    if lazy is not None:
        flags.append(f"-DLAZY={lazy}")
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).replay
    function.restype = ctypes.c_int64

    def pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def replay(rounds: LoggedRounds, window: int) -> npt.NDArray[np.int64]:
        n, k, d = rounds.vectors.shape
        accepted = np.empty(n, np.int64)
        played = function(
            *map(ctypes.c_int64, (n, k, d)),
            *map(pointer, (rounds.action, rounds.vectors, rounds.first_conversion, rounds.delay)),
            ctypes.c_double(1.0), ctypes.c_double(1.0), ctypes.c_int64(window), pointer(accepted),
        )  # fmt: skip
        return accepted[:played]

    return replay
