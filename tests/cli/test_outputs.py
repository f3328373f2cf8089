"""Outputs are reserved before the work, and in place before anything is printed."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.cli import options
from tests.cli.runs import evaluate

SMALL = ("-d", "synthetic", "--limit", "2000")
COMMANDS = [
    ("replay", *SMALL, "-p", "random", "--out"),
    ("replay", *SMALL, "-p", "random", "--save-policy"),
    ("compare", *SMALL, "-p", "random", "--out"),
    ("audit", *SMALL, "-p", "random", "--twins", "10", "--out"),
    ("simulate", "-s", "vernade2017-low", "-p", "random", "--runs", "2", "--horizon", "50", "--out"),
    ("delays", *SMALL, "--families", "geometric", "--bootstraps", "19", "--out"),
    ("datasets", "convert", "synthetic", "--limit", "2000"),
    ("datasets", "make", "criteo_twin", "--rows", "1000", "--out"),
    ("datasets", "make", "shop", "--out"),
]
MOST_BYTES = 1000


def named(words: tuple[str, ...]) -> str:
    return " ".join(word for word in words if word.isalpha() or word.startswith("--"))


@contextmanager
def little_room() -> Iterator[None]:
    """Let no file grow beyond `MOST_BYTES`, as a disk would that is almost full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("words", COMMANDS, ids=named)
@pytest.mark.parametrize("name", ["file/run", "x" * 300])
def test_a_place_that_cannot_be_written_fails_before_the_work(
    words: tuple[str, ...], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for worker in ("evaluator.datasets.read", "evaluator.simulations.simulate", "evaluator.reading.converting.read"):
        monkeypatch.setattr(worker, None)
    (tmp_path / "file").write_text("not a folder")
    run = evaluate(*words, str(tmp_path / name))
    assert run.code in (1, 2), run.err
    assert run.out == ""
    assert len(run.err.splitlines()) == 1
    assert str(tmp_path) in run.err
    assert "may be a bug" not in run.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("words", COMMANDS, ids=named)
def test_a_full_disk_is_one_line_and_leaves_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    with little_room():
        run = evaluate(*words, str(tmp_path / "run"))
    assert (run.code, run.out) == (1, ""), run.err
    # What is cut into units keeps those that are finished beside its output.
    keeps = {"compare", "audit", "simulate", "delays"} & set(words)
    place = f"{tmp_path}/run.partial" if keeps else f"{tmp_path}/run"
    said = run.err.splitlines()[-1]  # before it, that compiled code cannot be kept either
    assert said == f"error: {place}: cannot be written (File too large). Hint: make room, or choose another place."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [words for words in COMMANDS if "datasets" not in words], ids=named)
def test_it_is_in_place_before_the_result_is_printed(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator.reports.result_files.pictures", lambda _: {})
    seen = []
    monkeypatch.setattr(options, "print_json", lambda _: seen.append(sorted(p.name for p in tmp_path.iterdir())))
    run = evaluate(*words, str(tmp_path / "run"), "--json")
    assert run.code == 0
    assert seen == [["run"]]
    # Pictures come last, and what cannot be drawn costs no table.
    undrawn = "cdf.png, density.png, groups.png, rates.png could not be drawn.\n"
    assert run.err.endswith(undrawn) == ("delays" in words)


def test_both_outputs_of_a_replay_are_reserved(tmp_path: Path) -> None:
    (tmp_path / "learned.npz").write_text("mine")
    words = ("replay", *SMALL, "-p", "random", "--save-policy", str(tmp_path / "learned.npz"))
    run = evaluate(*words, "--out", str(tmp_path / "run"))
    assert (run.code, run.out) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["learned.npz"]


@pytest.mark.parametrize("saved", ["run", "link/run", "elsewhere/../run"])
def test_two_outputs_that_are_one_place_are_told_so(tmp_path: Path, saved: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    words = ("replay", *SMALL, "-p", "random", "--save-policy", str(tmp_path / saved))
    run = evaluate(*words, "--out", str(tmp_path / "run"))
    assert (run.code, run.out) == (2, "")
    assert "--out and --save-policy are one place" in run.err


def test_nothing_is_written_into_a_converted_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert evaluate("datasets", "convert", "synthetic", str(log), "--limit", "50").code == 0
    before = sorted(log.iterdir())
    for words in COMMANDS:
        for inside in ("new", "deep/new"):
            run = evaluate(*words, str(log / inside))
            assert (run.code, run.out) == (2, "")
            assert "which is a converted log" in run.err or "No folder" in run.err
    assert sorted(log.iterdir()) == before


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    words = ("replay", *SMALL, "-p", "random", "--dry-run", "--save-policy", str(tmp_path / "learned.npz"))
    assert evaluate(*words, "--out", str(tmp_path / "run")).json["schema"] == "evaluate.plan/2"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "-p", "ucb1", "--limit", "500", "--out"),
        ("replay", "-p", "ucb1", "--limit", "500", "--save-policy"),
        ("compare", "-p", "ucb1,random", "--limit", "500", "-o"),
        ("delays", "--limit", "3000", "--out"),
        ("check", "synthetic", "--limit", "3000", "--out"),
        ("datasets", "make", "shop", "-o"),
    ],
)
def test_an_address_of_a_store_is_no_place_for_them(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = evaluate(*words, "s3://bucket/runs/one")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error: Output s3://bucket/runs/one is an address, and outputs are written to disk.")
    assert list(tmp_path.iterdir()) == []
