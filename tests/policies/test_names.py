"""A policy is meant by its name in any case, with underscores for hyphens, wherever one is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.errors import UnknownNameError
from evaluator.policies.registry import POLICIES, as_known, names, resolve
from tests.cli.runs import evaluate
from tests.logs import build_log


@pytest.mark.parametrize("name", POLICIES)
def test_any_case_and_underscores(name: str) -> None:
    written = "fixed:action=0" if name == "fixed" else name
    for text in (written.upper().replace("ACTION", "action"), written.replace("-", "_"), f" {written.title()}".lower()):
        assert resolve(text).spec == resolve(written).spec
        assert as_known(text).partition(":")[0] == name


def test_no_two_names_are_one_and_others_stay_unknown() -> None:
    plain = [name.lower().replace("_", "-") for name in names()]
    assert len(set(plain)) == len(plain)
    with pytest.raises(UnknownNameError, match=r"'UCB2'\. Hint: did you mean ucb1"):
        resolve("UCB2")


def test_everywhere(tmp_path: Path) -> None:
    places = np.arange(400)
    log = build_log(time=places, action=places % 2, n_actions=2)
    assert replay(log, "UCB1").plan["policy"] == "ucb1"
    found = compare(log, ["Random", "UCB1:exploration=2", "QPM_D"], baseline="UCB1:exploration=2", window=5)
    assert (found.baseline, found.results[2].plan["policy"]) == (1, "qpm-d")
    study = 'policies = ["KLUCB", "Random"]\nbaseline = "RANDOM"\n[[policy]]\nname = "UCB1"\n'
    (tmp_path / "study.toml").write_text(study)
    found = compare(log, study=tmp_path / "study.toml")
    assert [result.plan["policy"] for result in found.results] == ["klucb", "random", "ucb1"]
    assert found.baseline == 1
    assert evaluate("policies", "show", "QPM_D").out.startswith("qpm-d")
