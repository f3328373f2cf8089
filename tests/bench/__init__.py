"""Benchmarks, run by hand: ``python -m tests.bench``. Nothing here asserts a time."""
