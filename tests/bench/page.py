"""The page of a comparison of 20 variants with 1,000,000 rounds: how large it is, and how fast a browser opens it.

``python -m tests.bench.page [--rounds 1000000]``. Needs playwright and Chromium, as the browser's tests do.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from evaluator import Comparison, compare
from evaluator.reports.documents import chapter_of
from evaluator.reports.html import page_of
from tests.bench.tables import print_table
from tests.logs import build_log

QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
RUNS = 7
VARIANTS = 20


def comparison(rounds: int) -> Comparison:
    """Return a comparison of 20 variants on a log of two actions, each of which lives about so many rounds."""
    rng = np.random.default_rng(0)
    n = 2 * rounds
    action = rng.integers(0, 2, n)
    of = np.flatnonzero(rng.random(n) < np.array([0.02, 0.03])[action])
    when = of + rng.geometric(0.01, len(of))
    log = build_log(time=np.arange(n), action=action, conversion_display=of, conversion_time=when, n_actions=2)
    policies = [f"delayed-ucb:epsilon={(i + 1) / VARIANTS:g}" for i in range(VARIANTS)]
    return compare(log, policies, windows=[500], bootstrap=0, jobs=2)


def opening(file: Path, runs: int = RUNS) -> tuple[list[float], list[float]]:
    """Return seconds from asking for a page until it is parsed, and until it is painted, of some runs."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    loaded, painted = [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=QUIET)
        for _ in range(runs):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            page.goto(file.as_uri(), wait_until="load")
            loaded.append(time.perf_counter() - start)
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            painted.append(time.perf_counter() - start)
            page.close()
        browser.close()
    return loaded, painted


def main() -> None:
    """Print size and times."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    given = parser.parse_args()
    found = comparison(given.rounds)
    text = page_of([chapter_of(found)])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        size = file.stat().st_size
        loaded, painted = opening(file)
    least = min(result.rounds for result in found.results)
    print(f"{len(found.results)} variants of at least {least:,} rounds; {RUNS} times opened, median (largest), seconds")
    print_table(
        ("kB", "loaded", "painted"),
        [(f"{size / 1000:,.0f}", *(f"{statistics.median(of):.2f} ({max(of):.2f})" for of in (loaded, painted)))],
    )


if __name__ == "__main__":
    main()
