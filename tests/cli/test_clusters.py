"""``--cluster-by`` in the commands that take it, and its twin in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator import replay
from evaluator.reading.canonical import write_canonical
from tests.cli.runs import evaluate
from tests.statistical.users import Crowd

CROWD = Crowd(name="small", users=40, displays=50)
ASKED = ("-p", "ucb1", "-w", "100", "--sampler", "rejection", "--cluster-by", "user", "--bootstrap", "20")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("crowd")
    write_canonical(CROWD.log(1), path)
    return str(path)


def test_the_command_and_the_function_say_the_same(folder: str) -> None:
    words = ("replay", "-d", folder, *ASKED, "--doubly-robust", "--final", "last:30%")
    run, found = evaluate(*words, "--json"), replay(
        folder, "ucb1", window="100", sampler="rejection", cluster_by="user", bootstrap=20, doubly_robust=True,
        final="last:30%",
    )  # fmt: skip
    assert run.code == 0, run.err
    assert run.json == found.to_dict()
    assert run.json["plan"]["clusters"] == {"by": "user", "count": 40, "unnamed": 0}
    assert "clusters drawn whole" in run.json["expected_value"]["kind"]
    for value in (run.json["doubly_robust"], run.json["final"]["dr"], run.json["final"]["snips"]):
        assert "clusters of equal size (Liang, Zeger 1986)" in value["value"]["kind"]
    out = " ".join(evaluate(*words, "--full").out.split())
    for said in (
        "(bootstrap, by user)", "doubly robust, by user", "40 by user; the rounds are worth",
        "Intervals: Student's t by 3", "for the clusters of this log",
    ):  # fmt: skip
        assert said in out, said


def test_a_comparison_says_which_differences_are_for_whom(folder: str) -> None:
    run = evaluate("compare", "-d", folder, *ASKED, "-p", "random", "--horizon", "500", "--full")
    assert run.code == 0, run.err
    out = " ".join(run.out.split())
    assert "expected differences are for new ones" in out
    assert (
        "expected differences are for new ones"
        not in evaluate("compare", "-p", "random,ucb1", "--limit", "5000", "--bootstrap", "20", "--full").out
    )


def test_what_displays_hang_together_by_must_be_there(folder: str) -> None:
    run = evaluate("replay", "-d", folder, "-p", "ucb1", "--cluster-by", "customer")
    assert run.code == 2
    assert "keeps no column 'customer' (it keeps user)" in run.err


def test_twins_of_an_audit_have_no_users(folder: str) -> None:
    run = evaluate("audit", "-d", folder, "-p", "ucb1", "--cluster-by", "user")
    assert run.code == 2
    assert "evaluate audit has no option --cluster-by" in run.err
