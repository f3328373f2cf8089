"""`datasets show` and `datasets validate` say how the eligible actions vary."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from evaluator import datasets
from evaluator.log.eligible import packed
from evaluator.log.schema import BATCH
from evaluator.reading.facts import NamedActions
from evaluator.reading.summary import set_facts
from evaluator.replays.rounds.stream import read_sets
from tests.cli.runs import evaluate, validate
from tests.log.test_eligible import N, random_sets, with_sets
from tests.logs import build_log
from tests.reading.test_eligible_sets import given
from tests.worlds_with_sets import World, make_displays, make_log


def by_hand(truths: np.ndarray) -> tuple[int, float, int, int, int]:
    distinct = len(np.unique(truths, axis=0))
    size = truths.sum(axis=1)
    changes = int((truths[1:] != truths[:-1]).any(axis=1).sum())
    return distinct, float(size.mean()), int(size.min()), int(size.max()), changes


@pytest.mark.parametrize("batch", [7, 64, BATCH])
@pytest.mark.parametrize(("distinct", "n_actions"), [(1, 5), (5, 11), (None, 80)])
def test_numbers_are_those_of_the_sets(
    monkeypatch: pytest.MonkeyPatch, batch: int, distinct: int | None, n_actions: int
) -> None:
    truths = random_sets(N, n_actions, distinct=distinct)
    log = with_sets(n_actions, distinct=distinct)
    whole = type(log).batches
    monkeypatch.setattr(type(log), "batches", lambda self, columns: whole(self, columns, batch))
    facts = set_facts(log)
    assert facts is not None
    found = tuple(getattr(facts, name) for name in ("distinct", "mean", "smallest", "largest", "changes"))
    assert found == pytest.approx(by_hand(truths))
    assert facts.vary == ("never" if distinct == 1 else "otherwise")
    offered, shown = truths.any(axis=0), np.bincount(log.column("action"), minlength=n_actions) > 0
    assert facts.never_eligible.count == (~offered).sum()
    assert facts.never_logged.count == (offered & ~shown).sum()
    assert facts.never_logged.labels == tuple(f"a{k}" for k in np.flatnonzero(offered & ~shown)[:10])


@pytest.mark.parametrize("gap", [False, True])
def test_a_calendar_changes_with_time_also_where_it_pauses(gap: bool) -> None:
    n = 4_000
    truths = np.zeros((n, 5), np.bool_)
    truths[:, 0] = True
    truths[1_000:3_000, 1] = True
    truths[2_000:, 2] = True
    truths[5:8, 3] = True  # the last is never eligible
    if gap:
        truths[1_500, 1] = False
    facts = set_facts(build_log(time=np.arange(n), action=np.zeros(n), n_actions=5, eligible=truths))
    assert facts is not None
    assert facts.vary == "with time"
    assert facts.hardly_eligible == NamedActions(count=1, labels=("a3",))
    assert facts.never_eligible == NamedActions(count=1, labels=("a4",))
    assert facts.never_logged.labels == ("a1", "a2", "a3")


@pytest.mark.parametrize("sets", ["calendar", "random", "context"])
def test_replays_judge_alike_whether_sets_change_with_time(sets: str) -> None:
    log = make_log(World(sets), make_displays(World(sets), 4_000, 1))
    facts, read = set_facts(log), read_sets(log)
    assert facts is not None
    assert read is not None
    assert (facts.vary == "with time") == (read.moving >= 0) == (sets == "calendar")


def test_many_displays_of_many_actions_are_looked_at_set_by_set() -> None:
    n, k = 100_000, 5_000  # one by one, they are half a billion of eligible actions
    bits = np.full((n, k // 8), 0xFF, np.uint8)
    log = build_log(time=np.arange(n), action=np.zeros(n), n_actions=k, propensity=np.full(n, 0.5))
    log = type(log)(log.displays.append_column("eligible", packed(bits)), log.conversions, log.actions, log.meta)
    facts = set_facts(log)
    assert facts is not None
    assert (facts.distinct, facts.mean, facts.vary) == (1, float(k), "never")


@pytest.mark.parametrize("command", ["show", "validate"])
def test_the_commands_say_it(tmp_path: Path, command: str) -> None:
    path = str(given(tmp_path, "entries"))
    said = " ".join(evaluate("datasets", command, path).out.split())
    assert re.search(
        r"eligible actions 2 to 4, [23]\.\d+ on average; \d+ sets, which differ between displays \(\d unlike", said
    )
    found = evaluate("datasets", command, path, "--json").json
    validate(found)
    facts = found["log"]["eligible"] if command == "show" else found["eligible"]
    assert (facts["vary"], facts["never_eligible"]["count"]) == ("otherwise", 0)  # too few displays to tell a calendar


def test_the_spec_is_shown_in_its_own_words(tmp_path: Path) -> None:
    assert datasets.show(given(tmp_path, "entries"))["spec"]["action"][2] == {"label": "spring", "from": 20}
