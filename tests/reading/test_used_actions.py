"""``--actions used`` keeps the actions that have displays which can be judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator import load, replay
from evaluator.datasets import convert
from evaluator.errors import NoRoundsError
from tests.cli.runs import evaluate
from tests.reading.sources import dataset

# Displays up to 980 are followed for the window of 20 seconds; ad c is launched after that.
LOG = {"observed_until": 1000, "attribution_window": 20}
ROWS = [
    "t,ad,sold",
    *(
        f"{t},{'c' if t > 980 and t % 3 == 0 else 'ab'[t * 7 % 5 % 2]},{t + 3 if t % 4 == 0 else ''}"
        for t in range(997)
    ),
]


def spec_in(folder: Path, **log: object) -> Path:
    return dataset(folder, ROWS, log={**LOG, **log})


@pytest.mark.parametrize("converted", [False, True])
def test_actions_with_young_displays_only_are_left_out(tmp_path: Path, converted: bool) -> None:
    source: Path = spec_in(tmp_path)
    if converted:
        convert(source, tmp_path / "log")
        source = tmp_path / "log"
    whole, used = load(str(source)), load(str(source), actions="used")
    assert (whole.labels, used.labels) == (["a", "b", "c"], ["a", "b"])
    assert len(whole) - len(used) == sum(row.split(",")[1] == "c" for row in ROWS)
    # Without it nothing can be replayed that tries c, nor c itself; with it all that came before.
    with pytest.raises(NoRoundsError, match="it chose action c, which has young displays only"):
        replay(whole, "fixed:action=2")
    assert replay(whole, "ucb1:ties=lowest").rounds == 2
    assert replay(used, "ucb1:ties=lowest").rounds > 400


def test_all_are_kept_where_every_display_was_followed_to_its_end(tmp_path: Path) -> None:
    source = dataset(tmp_path, ROWS, log={"observed_until": "complete"})
    assert load(str(source), actions="used").labels == ["a", "b", "c"]


def test_the_end_of_the_log_is_its_last_display_or_conversion(tmp_path: Path) -> None:
    assert load(str(spec_in(tmp_path, observed_until="end")), actions="used").labels == ["a", "b"]


def test_without_a_window_of_the_log_the_others_are_named(tmp_path: Path) -> None:
    # Only the replay's window says what is young, and reading knows nothing of it.
    log = load(str(spec_in(tmp_path, attribution_window=None)))
    (said,) = [w for w in replay(log, "fixed:action=0", window="20s").warnings if "no usable display" in w]
    assert "`actions='a,b'` leaves it out" in said
    kept = load(str(spec_in(tmp_path, attribution_window=None)), actions="a,b")
    assert not any("no usable" in w for w in replay(kept, "fixed:action=0", window="20s").warnings)


def test_the_command_takes_it(tmp_path: Path) -> None:
    run = evaluate("replay", "-d", str(spec_in(tmp_path)), "-p", "ucb1:ties=lowest")
    assert "After 2 rounds the policy chose action c, which has no usable display" in " ".join(run.out.split())
    assert "--actions used leaves it out" in " ".join(run.out.split())
    run = evaluate("replay", "-d", str(spec_in(tmp_path)), "-p", "ucb1", "--actions", "used")
    assert run.code == 0, run.err
    assert "no usable display" not in " ".join(run.out.split())
