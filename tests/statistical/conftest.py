"""Results of hostile labels, and runs, for the proofs in a browser."""

from tests.reports.conftest import log, results, runs

__all__ = ["log", "results", "runs"]
