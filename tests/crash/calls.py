"""What a forked process runs: the command line, or a Python function that writes."""

from __future__ import annotations

import functools
import sys

import numpy as np
import typer.main

from evaluator.errors import EvaluatorError
from tests.crash.commands import DISPLAYS
from tests.logs import bernoulli_log


def prepare() -> None:
    """Do before anything forks what takes long, and neither writes nor starts threads that stay."""
    from evaluator import audit, compare, simulate, study_delays
    from evaluator.cli.app import app
    from evaluator.comparisons import kept
    from evaluator.findings.catalogue import catalogue
    from evaluator.jobs.workers import loaded
    from evaluator.reports import documents, result_files
    from evaluator.reports.html import page_of
    from evaluator.reports.terminal import text_of
    from evaluator.simulations import runs
    from evaluator.worlds.world import load_problem

    # Charts of pages take twice as long as the command, a process that draws them longer still: neither writes files.
    documents.charts_of = lambda result: {}
    result_files.charts_of = lambda result: {"cdf": {}, "density": {}}
    result_files.pictures = lambda charts: dict.fromkeys(charts, b"a picture")
    typer.main.get_command = functools.cache(typer.main.get_command)
    list(typer.main.get_command(app).commands.values())  # type: ignore[attr-defined]
    kept.software = runs.software = loaded
    loaded()
    catalogue()
    # Compiled code is read from its cache; schemas of results and templates of pages are made once.
    log = bernoulli_log(DISPLAYS, [0.1, 0.2], mean_delay=5, seed=0)
    compared = compare(log, ["ucb1", "random"], baseline="ucb1", windows=[20, None], bootstrap=0)
    audited = audit(log, ["ucb1", "random"], twins=10)
    studied = study_delays(log, families=["weibull"], bootstraps=19)
    simulated = simulate(load_problem("vernade2017-low"), ["ucb1"], runs=2, horizon=100)
    for result in (compared, compared.results[0], audited, studied, simulated):
        result.to_dict()
        text_of(documents.document_of(result))
        page_of([documents.chapter_of(result)])


def call(words: list[str]) -> None:
    """Run ``evaluate ...``, or one of the functions below, whose errors are said as the command line says them."""
    if words[0] == "evaluate":
        from evaluator.cli.app import main

        sys.argv = words
        main()
        return
    try:
        {"save_fit": save_fit, "save_policy": save_policy}[words[0]](*words[1:])
    except EvaluatorError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def save_fit(path: str, scale: str = "1") -> None:
    """Write a fit."""
    from evaluator.delays.fit_file import save_fit
    from evaluator.delays.nonparametric import fit_nonparametric

    delays = np.arange(1.0, 40.0) * float(scale)
    save_fit(path, fit_nonparametric(delays, np.full(delays.shape, 200.0)), tick="1 s")


def save_policy(path: str, seed: str = "1") -> None:
    """Write what a policy learned."""
    from evaluator import load, replay

    learned = replay(load("synthetic", limit=200), "ucb1", seed=int(seed)).learned
    assert learned is not None
    learned.save(path)
