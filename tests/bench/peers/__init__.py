"""Replay speed beside other packages, on one log in one run: ``python -m tests.bench.peers``."""

import os

# Set before NumPy loads: waiting BLAS threads would count as processor time of the peers that multiply matrices.
os.environ.setdefault("OMP_NUM_THREADS", "1")
