"""Wrong input: one line that says what, where and how to repair it, and the right exit code."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evaluator.errors import DataError
from tests.cli.runs import evaluate
from tests.reading.sources import ROWS, write_spec

USAGE, BAD_DATA, THE_REST = 2, 3, 1
RAISING = """
class Raises:
    def __init__(self, setting): ...
    def choose(self, vectors, rng): return 1 // 0
    def displayed(self, vectors, action): ...
    def converted(self, vector, action, delay, value): ...

class Impossible(Raises):
    def choose(self, vectors, rng): return 99
"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-p", "otflinucp"), USAGE, "did you mean otflinucb?"),
        (("-p", "otflinucb:alhpa=1"), USAGE, "did you mean alpha?"),
        (("-p", "otflinucb:alpha=-1"), USAGE, "take a number >= 0"),
        (("-p", "otflinucb:width=wide"), USAGE, "is not a choice"),
        (("-p", "fixed:action=10"), USAGE, "take 0 to 9"),
        (("-p", "random", "--window", "0"), USAGE, "take at least one round"),
        (("-p", "random", "--window", "-5"), USAGE, "take at least one round"),
        (("-p", "random", "--window", "7d"), USAGE, "counts rounds, not time"),
        (("-p", "random", "--window", "soon"), USAGE, "Expected a duration"),
        (("-p", "random", "--clock", "wal"), USAGE, "did you mean wall?"),
        (("-p", "random", "--traffic-share", "0"), USAGE, "take a share above 0"),
        (("-p", "random", "--horizon", "0"), USAGE, "--horizon 0"),
        (("-p", "random", "--level", "1"), USAGE, "--level 1"),
        (("-p", "random", "--delays", "geometrc:5"), USAGE, "geometric"),
        (("-p", "delayed-ucb", "--delays", "geometric:-5"), USAGE, "geometric"),
        (("-p", "random", "--accept-quantile", "1"), USAGE, "--accept-quantile 1"),
        (("-p", "otflinucb", "--sampler", "queue"), USAGE, "use --sampler rejection"),
        (("-p", "waitlinucb"), USAGE, "give --window"),
        (("-p", "random", "--dataset", "syntetic"), USAGE, "did you mean synthetic?"),
        (("-p", "random", "--dataset", ""), USAGE, "--dataset is empty."),
        (("-p", "random", "--attribution-window", "7d"), USAGE, "--attribution-window 7d, but"),
        (("-p", "random", "--actions", "top:2"), USAGE, "--actions does not apply"),
        (("-p", "random", "--dataset", "absent/spec.toml"), BAD_DATA, "absent/spec.toml"),
        (("-p", "absent.py:Mine"), BAD_DATA, "No policy file"),
        (("-p", "random", "--no-such-option"), USAGE, "evaluate replay has no option --no-such-option."),
        (("-p", "random", "--limit", "0"), USAGE, "--limit 0 is out of range. Hint: take a whole number from 1"),
    ],
)
def test_one_line_that_teaches(words: tuple[str, ...], code: int, said: str) -> None:
    limit = () if "--limit" in words or "--dataset" in words else ("--limit", "2000")
    run = evaluate("replay", *words, *limit)
    assert run.code == code, run.err
    assert said in " ".join(run.err.split())
    assert run.out == ""
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "-p", "random", "-d", "absent/spec.toml"),
        ("replay", "-p", "random", "-d", "absent/log"),
        ("replay", "-p", "random", "-d", "./absent"),
        ("replay", "-p", "random", "-d", "criteo_attribution", "--path", "absent.tsv"),
        ("replay", "-p", "absent.py:Mine"),
        ("replay", "-p", "delayed-klucb", "--limit", "500", "--delays", "absent.json"),
        ("compare", "--study", "absent.toml"),
        ("audit", "-p", "random", "-d", "absent/log"),
        ("simulate", "-p", "random", "-s", "absent.toml"),
        ("delays", "--file", "absent.csv"),
        ("check", "absent/"),
        ("datasets", "show", "absent/"),
        ("datasets", "convert", "absent/", "out"),
        ("datasets", "make", "absent.toml", "-o", "out.gz"),
    ],
)
def test_a_missing_file_is_bad_data_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = evaluate(*words)
    assert run.code == BAD_DATA, run.err
    assert "absent" in run.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("replay", "-p", "random", "-d", "shpo/spec.toml"), "shop/spec.toml"),
        (("replay", "-p", "random", "-d", "shop/Spce.toml"), "shop/spec.toml"),
        (("replay", "-p", "random", "-d", "./shpo"), "shop"),
        (("replay", "-p", "random", "-d", "shpo"), "shop"),
        (("replay", "-p", "random", "-d", "shop/spec.toml"), "shop/displays.csv"),
        (("replay", "-p", "random", "-d", "criteo_attribution", "--path", "shop/dsplays.csv"), "shop/displays.csv"),
        (("replay", "-p", "minne.py:Mine"), "mine.py"),
        (("compare", "--study", "shop/stduy.toml"), "shop/study.toml"),
        (("datasets", "init", "shop/display.csv"), "shop/displays.csv"),
        (("datasets", "init", "shpo/*.csv"), "shop/*.csv"),
        (("datasets", "init", "shop/displays.csv", "--conversions", "shop/salse.csv"), "shop/sales.csv"),
        (("datasets", "init", "nothing/like.this"), ""),
    ],
)
def test_a_misspelt_file_has_its_near_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], near: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    for name in ("shop/displays.csv", "shop/sales.csv", "shop/study.toml", "mine.py"):
        (tmp_path / name).write_text("t,ad,sold_at\n1,a,\n2,b,3\n")
    write_spec(tmp_path / "shop", source={"files": "dislpays.csv"})
    run = evaluate(*words)
    assert run.code == BAD_DATA or "dataset 'shpo'" in run.err
    assert (f"did you mean {near}?" in " ".join(run.err.split()).replace(f"{tmp_path}/", "")) == bool(near)


@pytest.mark.parametrize(
    "name",
    ["log.csv", "log.csv.gz", "log.tsv.zst", "log.jsonl", "log.ndjson.gz", "log.parquet", "log.arrow", "export",
     "my log.csv", "folder", "folder/*/b.pq", "day/*.csv"],
)  # fmt: skip
@pytest.mark.parametrize(
    "words", ["replay", "replay -p random", "compare -p random", "audit", "check", "datasets show"]
)
def test_a_table_named_as_a_log_has_its_spec_drafted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("folder/a/b.pq", "day/1.csv", *([] if name.startswith(("folder", "day")) else [name])):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(b"t,ad\n")
    run = evaluate(*words.split(), name)
    assert (run.code, run.out, run.err.count("\n")) == (BAD_DATA, "", 1)
    assert f"Hint: have its spec drafted: evaluate datasets init {shlex.quote(name)}; then name the spec." in run.err


def test_what_is_no_table_is_not_drafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("synthetic").write_text("a file that hides no bundled log\n")
    assert evaluate("replay", "synthetic").err.startswith("error: evaluate replay needs --policy.")
    for name in ("empty", "absent/*.csv", "absent.csv", "empty.toml"):
        assert "datasets init" not in evaluate("check", name).err


@pytest.mark.parametrize(
    ("name", "said"), [("Raises", "ZeroDivisionError"), ("Impossible", "returned 99 from choose, round 1")]
)
def test_user_policy_that_fails(tmp_path: Path, name: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(RAISING)
    run = evaluate("replay", "-p", f"{file}:{name}", "--limit", "2000")
    assert run.code == THE_REST
    assert said in run.err
    assert len([line for line in run.err.splitlines() if line.startswith("error:")]) == 1


@pytest.mark.parametrize("quoted", ["a\x1b[2Jb", "a\nb\r", "\u2028", "\ud800", "x" * 70_000, "\x00" * 5_000])
def test_an_error_is_one_printable_line_whatever_it_quotes(quoted: str) -> None:
    line = str(DataError(f"Line 7: {quoted}, no number.", remedy=f"write {quoted} otherwise."))
    assert line.startswith("Line 7: ")
    assert line.endswith(" otherwise.")
    assert line.isprintable()
    assert len(line) < 3_000
    line.encode("utf-8")


@pytest.mark.parametrize("command", [("replay",), ("compare",), ("audit", "--twins", "10")])
def test_a_log_is_named_by_its_place_or_by_its_option(command: tuple[str, ...]) -> None:
    run = evaluate(*command, "absent/log", "-p", "random")
    assert (run.code, run.err.partition(".")[0]) == (BAD_DATA, "error: absent/log: no such folder")
    run = evaluate(*command, "synthetic", "-d", "synthetic", "-p", "random")
    assert (run.code, run.err) == (USAGE, "error: LOG and --dataset name two logs. Hint: leave one out.\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("replay -p ucb1 --horizon 5%",
         "--horizon: expected a whole number, got '5%'. Hint: take a whole number from 1 to 2^63 - 1."),
        ("replay -p ucb1 --seed 1.5",
         "--seed: expected a whole number, got '1.5'. Hint: take a whole number from 0 to 2^64 - 1."),
        ("replay -p ucb1 --level high", "--level: expected a number, got 'high'. Hint: take a number > 0, < 1, such"),
        ("replay -p ucb1 --horizn 4", "evaluate replay has no option --horizn. Hint: did you mean --horizon?"),
        ("replay -p ucb1 --twins 4", "evaluate replay has no option --twins. Hint: it is an option of evaluate audit."),
        ("check --zzz", "evaluate check has no option --zzz. Hint: evaluate check --help-all says what it takes."),
        ("compare --help-al", "evaluate compare has no option --help-al. Hint: did you mean --help-all?"),
        ("--debugg replay", "evaluate has no option --debugg. Hint: evaluate --help says what it takes."),
        ("datasets --help-all", "evaluate datasets has no option --help-all. Hint: did you mean --help?"),
        ("replya", "evaluate has no command 'replya'. Hint: did you mean replay?"),
        ("validate", "evaluate has no command 'validate'. Hint: did you mean evaluate datasets validate?"),
        ("datasets shwo", "evaluate datasets has no command 'shwo'. Hint: did you mean show?"),
        ("replay", "evaluate replay needs --policy. Hint: name[:parameter=value,...], or path/to/mine.py:Class"),
        ("datasets convert synthetic", "evaluate datasets convert needs OUT. Hint: New folder,"),
        ("replay -p", "-p needs a value. Hint: name[:parameter=value,...]"),
        ("replay -p ucb1 --out=", "--out is empty. Hint: give a value, or leave it out. New folder for page"),
        ("compare -p ucb1 --windows 5,,6", "--windows is empty. Hint: give a value such as 500,2000,7d,none, or leave"),
        ("replay -p ucb1 --policies ucb1", "--policy is given 2 times: ucb1. Hint: give it once."),
        ("replay -p ucb1 --seed", "--seed needs a value. Hint: Seed of all draws: --seed 7"),
        ("replay -p ucb1 --json=3", "--json takes no value. Hint: write --json alone."),
        ("check a b", "evaluate check takes LOG by place, and no more: 'b'. Hint: all else goes by the name of"),
        ("policies list a", "evaluate policies list takes nothing by place: 'a'. Hint: all else"),
    ],
)  # fmt: skip
def test_words_that_do_not_fit_have_one_line_too(monkeypatch: pytest.MonkeyPatch, words: str, line: str) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    run = evaluate(*words.split())
    assert run.err.startswith(f"error: {line}")
    assert (run.code, run.out, run.err.count("\n")) == (USAGE, "", 1)


@pytest.mark.parametrize("flag", ["-o", "--out", "--cluster-by", "--window", "--save-policy", "--path", "-p"])
def test_an_empty_value_is_refused(flag: str) -> None:
    run = evaluate("replay", "-p", "ucb1", flag, "")
    assert (run.code, run.out, run.err.count("\n")) == (USAGE, "", 1)
    assert run.err.startswith(f"error: {flag} is empty. Hint: give a value, or leave it out. ")


def test_a_group_without_a_command_shows_its_help() -> None:
    for group in ((), ("datasets",), ("policies",)):
        run = evaluate(*group)
        assert (run.code, run.out) == (USAGE, "")
        assert "Commands:\n" in run.err


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    import subprocess
    import sys

    words = [sys.executable, "-m", "evaluator", "replay", "-p", "otflinucp", "--debug"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        f"{sys.executable} -m evaluator policies list | head -1", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "-p", "random", "--out", "\udcffo"),
        ("datasets", "convert", "synthetic", "\udcffo"),
        ("datasets", "validate", "spec.toml", "--path", "\udcff.csv"),
        ("datasets", "validate", "spec.toml", "--path", "*.csv"),
        ("delays", "--file", "\udcff.csv"),
        ("replay", "-p", "random", "-d", "\udcff"),
    ],
)
def test_names_that_are_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path)
    try:
        (tmp_path / "\udcff.csv").write_text("\n".join(ROWS))
    except OSError:
        pytest.skip("this file system takes no such name")
    run = evaluate(*words)
    assert run.code == USAGE, run.err
    assert run.err.count("\n") == 1
    assert "is no UTF-8 name. Hint: rename it." in run.err
    assert {path.name for path in tmp_path.iterdir()} == {"spec.toml", "\udcff.csv"}
