"""Benchmarks, run by hand: ``python -m tests.bench [section ...] [--displays 1000000]``. Nothing here asserts a time.

`SECTIONS` lists the modules that a run goes through. A section is a module of this folder with

``rows(displays: int) -> list[tuple[str | float, ...]]``
    Measures, on logs of about that many displays.
``print_section(displays: int) -> None``
    Prints a headline with the scenario, and the rows as a table (`tests.bench.tables`).

To add one, write its module and its line here. What is compared is timed side by side (`tests.bench.timing`), so that
a busy machine slows all of it alike; quote ratios, not speeds.
"""

from __future__ import annotations

SECTIONS = ("contextual", "arms", "windows", "long_vectors", "many_actions", "catalogue", "compare")
