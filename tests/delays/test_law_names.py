"""A delay law is a function and an entry of the registry, a family a function and a line; what else each needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evaluator.delays import laws
from evaluator.delays.families import FAMILIES
from evaluator.delays.law_names import LAWS, LawKey, LawNumber, NamedLaw, table
from evaluator.delays.laws import DelayLaw, parse_law
from evaluator.errors import ParameterError
from evaluator.worlds.scenarios.scenario import Delay
from tests.delays.laws import TRUTHS
from tests.reading import test_scenarios

README = (Path(__file__).parents[2] / "datasets" / "README.md").read_text(encoding="utf-8")
TWICE = NamedLaw(make="twice", numbers=(LawNumber("delay", int),), keys=(LawKey("mean", parameter="delay"),), cdf="-")


def what_is_missing(named: dict[str, NamedLaw]) -> list[str]:
    said = []
    for name, law in named.items():
        if not hasattr(laws, law.make):
            said.append(f"evaluator/delays/laws.py has no function {law.make!r}: write it, for the law {name!r}")
        if name not in test_scenarios.FAMILIES and "file" not in law.takes:
            said.append(
                f"tests/reading/test_scenarios.py has no case of the law {name!r}: write its keys and P(D <= a) at "
                "some ages in FAMILIES"
            )
        said += [
            f"evaluator/worlds/scenarios/scenario.py has no key {key!r} of the law {name!r}: write it, a field of Delay"
            for key in law.takes
            if key not in Delay.model_fields
        ]
    return said


def test_every_law_is_made_documented_and_tested() -> None:
    assert what_is_missing(LAWS) == []
    for row in table():
        assert row in README.splitlines(), f"datasets/README.md lacks this row of its table of delays: {row}"


def test_what_a_new_law_needs_is_asked_for_in_a_sentence_each() -> None:
    keys = (LawKey("mean", needed=True), LawKey("twist"))
    assert what_is_missing({"twisted": NamedLaw(make="twisted", keys=keys, cdf="-")}) == [
        "evaluator/delays/laws.py has no function 'twisted': write it, for the law 'twisted'",
        "tests/reading/test_scenarios.py has no case of the law 'twisted': write its keys and P(D <= a) at some ages "
        "in FAMILIES",
        "evaluator/worlds/scenarios/scenario.py has no key 'twist' of the law 'twisted': write it, a field of Delay",
    ]


def test_a_new_law_has_its_word_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(delay: int) -> DelayLaw:
        return laws.fixed(2 * delay)

    monkeypatch.setattr(laws, "twice", twice, raising=False)
    monkeypatch.setitem(LAWS, "twice", TWICE)
    np.testing.assert_array_equal(parse_law("twice:3")([5, 6]), [0.0, 1.0])
    with pytest.raises(ParameterError, match=r"pareto:ALPHA or twice:DELAY, in rounds"):
        parse_law("thrice:3")
    assert table()[-1] == "| `twice` | `mean` | - |"


def test_a_new_law_is_one_of_a_scenario_at_once() -> None:
    code = """
import evaluator.delays.law_names as names
names.LAWS["twice"] = names.NamedLaw(make="twice", keys=(names.LawKey("mean", parameter="delay", read=int),), cdf="-")
from pathlib import Path
from evaluator.worlds.scenarios.problem import delay_law
from evaluator.worlds.scenarios.scenario import Delay
from evaluator.delays import laws
laws.twice = lambda delay: laws.fixed(2 * delay)
print(delay_law(Delay.model_validate({"family": "twice", "mean": 3}), Path()).source)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "every conversion 6 rounds late (given)\n"


def test_specs_name_laws_without_numpy() -> None:
    code = "import sys, evaluator.worlds.scenarios.scenario; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_family_has_a_truth_that_tests_draw_from() -> None:
    for name in FAMILIES:
        assert name in TRUTHS, f"tests/delays/laws.py has no truth of the family {name!r}: write parameters in TRUTHS"
    assert set(TRUTHS) == set(FAMILIES)
