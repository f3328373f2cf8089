"""Campaigns drawn by context, as auctions do: only propensities estimated on that context recover the truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluator import compare, datasets, load
from evaluator.log import Log

# The best campaign is then shown 24,000 times, and a bias of 0.01 of its rate of 0.07 is six standard errors.
ROWS = 1_500_000
TOP = 3
BOUND = 4  # standard errors


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, dict[str, float]]:
    """A twin of the Criteo log, and the true value of always showing each of its ten largest campaigns."""
    made = datasets.make("criteo_twin", tmp_path_factory.mktemp("twin") / "log.tsv.gz", rows=ROWS, seed=3)
    log = load("criteo_twin", path=made.path, actions="top:10", features="cat1,cat4:one-hot")
    top = json.loads(Path(made.truth).read_text(encoding="utf-8"))["top"]
    truth = {str(c): v for c, v in zip(top["campaigns"], top["fixed_values"], strict=True)}
    return log, truth


def errors(log: Log, truth: dict[str, float], propensity: str) -> np.ndarray:
    """Standardised errors of the replayed values of the campaigns whose true values are the largest."""
    best = sorted(log.labels, key=lambda label: -truth[label])[:TOP]
    policies = [f"fixed:action={log.labels.index(label)}" for label in best]
    found = compare(
        log, policies, baseline=policies[0], sampler="keep", propensity=propensity
    )  # one fit of the propensities for all
    value = np.array([result.value.estimate for result in found.results])
    rounds = np.array([result.rounds for result in found.results])
    true = np.array([truth[label] for label in best])
    return (value - true) / np.sqrt(true * (1 - true) / rounds)


def test_propensities_estimated_on_the_context_recover_the_truth(twin: tuple[Log, dict[str, float]]) -> None:
    assert np.abs(errors(*twin, "estimate:context")).max() < BOUND


def test_propensities_that_ignore_the_context_do_not(twin: tuple[Log, dict[str, float]]) -> None:
    assert np.abs(errors(*twin, "estimate")).max() > BOUND
