"""The sampler is one that is right for policy and log, also under drift; or the one asked for, or a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.engine.log_replay import choose_sampler, safe_horizon
from evaluator.errors import ParameterError
from evaluator.policies import resolve

COMMON: dict[str, Any] = {"even": True, "known": True}


@pytest.mark.parametrize(
    ("policy", "changes", "expected"),
    [
        ("otflinucb", {}, "rejection"),
        ("thompson", {}, "keep"),
        ("otflinucb", {"even": False}, "rejection"),
        ("thompson", {"even": False}, "rejection"),  # keep's end would depend on which arms the policy likes
        ("thompson", {"even": False, "known": False}, "keep"),  # nothing to reject by
        ("logging", {}, "logged"),
    ],
)
def test_default(policy: str, changes: dict[str, Any], expected: str) -> None:
    assert choose_sampler(resolve(policy), None, **{**COMMON, **changes}) == expected


def test_a_request_is_kept() -> None:
    assert choose_sampler(resolve("thompson"), "rejection", **COMMON) == "rejection"


@pytest.mark.parametrize("sampler", ["keep", "queue"])
def test_a_biased_request_is_refused(sampler: str) -> None:
    with pytest.raises(ParameterError, match="biased for otflinucb"):
        choose_sampler(resolve("otflinucb"), sampler, **COMMON)


@pytest.mark.parametrize("policy", ["thompson", "logging"])
def test_an_unknown_request_is_refused(policy: str) -> None:
    with pytest.raises(ParameterError, match="did you mean queue"):
        choose_sampler(resolve(policy), "queu", **COMMON)


def test_safe_horizon_counts_what_thinning_has_left_of_the_rarest_action() -> None:
    assert safe_horizon(np.array([0, 1, 0, -1, 1, 0], np.int32), 2) == 2
    assert safe_horizon(np.array([0, 0], np.int32), 2) == 2  # an action without displays decides for itself alone
