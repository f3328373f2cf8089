"""Finished results of a study come back as they were, to the same question alone, or not at all."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.arguments import as_description
from evaluator.comparisons.kept import FoundResults, KeptResults
from evaluator.comparisons.run import plan_comparison
from evaluator.errors import OutputError, OutputExistsError, OutputInUseError
from evaluator.outputs.atomic import checksum
from evaluator.outputs.kept_folder import RESULT, kept_beside, kept_name
from evaluator.outputs.locks import locked
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute_all
from tests.logs import linear_log

LOG = linear_log(1500, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
POLICIES = [as_description(policy) for policy in ("ucb1", "random")]
Study = tuple[list[ReplayPlan], list[ReplayResult]]


@pytest.fixture(scope="module")
def study() -> Study:
    plans = plan_comparison(LOG, POLICIES, [50], ReplayOptions(horizon=40))
    return plans, execute_all(plans)


def kept(folder: Path, study: Study) -> Path:
    """Keep the results of a study and return the file of the first."""
    results = KeptResults(folder, POLICIES)
    results.find(study[0], LOG)
    for plan, result in zip(*study, strict=True):
        results.keep(plan, result)
    assert len(list(folder.iterdir())) == 2
    return next(file for file in folder.iterdir() if pq.read_table(file).equals(study[1][0].trajectory))


def found(folder: Path, study: Study) -> FoundResults:
    return KeptResults(folder, POLICIES).find(study[0], LOG)


def test_every_number_comes_back_also_those_asked_for(tmp_path: Path) -> None:
    options = ReplayOptions(final="last:20%", doubly_robust=True, bootstrap=20, horizon=200)
    policies = [as_description(p) for p in ("linucb", "lints")]
    plans = plan_comparison(LOG, policies, [50], options)
    results = execute_all(plans)
    kept = KeptResults(tmp_path / "day=3" / "kept", policies)
    assert kept.find(plans, LOG) == FoundResults({}, 0, 0)
    for plan, result in zip(plans, results, strict=True):
        kept.keep(plan, result)
    found = kept.find(plans, LOG).results
    for i, result in enumerate(results):
        assert found[i].to_dict() == result.to_dict()
        assert found[i].trajectory.equals(result.trajectory)
        assert found[i].resampled == result.resampled
        assert repr(found[i].final) == repr(result.final)  # in which what is withheld, nan, equals itself


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]


def test_a_file_with_one_flipped_bit_or_cut_short_anywhere_is_computed_anew(tmp_path: Path, study: Study) -> None:
    file = kept(tmp_path / "kept", study)
    whole = file.read_bytes()
    step = len(whole) // 12
    for damaged in (
        *(flipped(whole, at) for at in range(0, len(whole), step)),
        *(whole[:at] for at in range(0, len(whole), step)),
        whole + b"\0",
    ):
        file.write_bytes(damaged)
        there = found(tmp_path / "kept", study)
        assert (list(there.results), there.damaged, there.others) == ([1], 1, 0)
        assert not file.exists()
    file.write_bytes(whole)
    assert list(found(tmp_path / "kept", study).results) == [0, 1]


def test_a_file_under_another_question_is_no_answer_to_it(tmp_path: Path, study: Study) -> None:
    one = kept(tmp_path / "kept", study)
    other = next(file for file in one.parent.iterdir() if file != one)
    key = one.name[:64]
    one.unlink()
    other.rename(other.with_name(key + other.name[64:]))
    assert found(tmp_path / "kept", study) == FoundResults({}, 1, 0)


@pytest.mark.parametrize("change", ["nothing said", "no result"])
def test_what_was_never_written_so_is_not_taken_up(tmp_path: Path, study: Study, change: str) -> None:
    file = kept(tmp_path / "kept", study)
    table = pq.read_table(file)
    said = json.loads(table.schema.metadata[RESULT])
    if change == "nothing said":
        table = table.replace_schema_metadata(None)
    else:
        table = table.replace_schema_metadata({RESULT: json.dumps({"key": said["key"], "value": 1})})
    pq.write_table(table, file)
    file.rename(file.with_name(kept_name(said["key"], checksum(file))))
    there = found(tmp_path / "kept", study)
    assert (list(there.results), there.damaged) == ([1], 1)


def test_results_of_another_log_are_counted_and_left(tmp_path: Path, study: Study) -> None:
    kept(tmp_path / "kept", study)
    other = LOG.with_meta(reward_max=2.0)
    plans = plan_comparison(other, POLICIES, [50], ReplayOptions(horizon=40))
    assert KeptResults(tmp_path / "kept", POLICIES).find(plans, other) == FoundResults({}, 0, 2)
    assert list(found(tmp_path / "kept", study).results) == [0, 1]


def test_what_is_upgraded_while_a_study_runs_did_not_make_its_results(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = KeptResults(tmp_path, POLICIES)
    results.find(study[0], LOG)
    monkeypatch.setattr("evaluator.jobs.workers.package_code", lambda: "upgraded")
    results.keep(study[0][0], study[1][0])
    assert found(tmp_path, study) == FoundResults({}, 0, 1)
    monkeypatch.undo()
    assert list(found(tmp_path, study).results) == [0]


def test_the_folder_goes_when_the_study_is_written_and_stays_when_it_fails(tmp_path: Path, study: Study) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), kept_beside(out) as folder:  # noqa: PT012
        kept(folder, study)
        raise KeyboardInterrupt
    assert folder == tmp_path / "run.partial"
    left = folder / f".{'a' * 16}.kept"
    left.write_bytes(b"PAR1half")
    before = folder / f"{'b' * 64}.parquet"  # as version 0.1.0 kept them
    pq.write_table(study[1][0].trajectory.replace_schema_metadata({"result": "{}"}), before)
    with kept_beside(out) as folder:
        assert not left.exists()
        there = found(folder, study)
        assert (list(there.results), there.others) == ([0, 1], 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", ["killed", "younger", "not ours", "no result", "in use"])
def test_what_a_kill_after_the_result_was_placed_leaves_is_tidied_and_nothing_else(
    tmp_path: Path, study: Study, case: str
) -> None:
    out, folder = tmp_path / "run", tmp_path / "run.partial"
    kept(folder, study)
    own = sorted(folder.iterdir())
    assert own
    if case == "not ours":
        (folder / "thesis.md").write_text("chapter 1")
    out.mkdir()
    manifest = out / ("notes.txt" if case == "no result" else "manifest.json")
    manifest.write_text("{}")
    late = max(file.stat().st_mtime for file in folder.iterdir()) + (-1.0 if case == "younger" else 1.0)
    os.utime(manifest, (late, late))
    with locked(folder) if case == "in use" else nullcontext():  # noqa: SIM117
        with pytest.raises(OutputExistsError, match="run exists"), kept_beside(out):
            pass
    left = {"killed": [], "not ours": [folder / "thesis.md"]}.get(case, own)
    assert sorted(folder.iterdir() if folder.exists() else []) == left
    assert sorted(tmp_path.iterdir()) == [out, *([folder] if left else [])]
    assert manifest.read_text() == "{}"


@pytest.mark.parametrize(
    "name",
    [
        *("thesis.md", f"{'c' * 64}.parquet", "folder", "link"),
        *(f"{'d' * 64}-{'e' * 64}.kept", f".{'a' * 16}.kept", f".{'b' * 64}.parquet-4711"),
    ],
)
def test_what_is_not_ours_is_refused_by_name_and_left(tmp_path: Path, name: str) -> None:
    foreign = tmp_path / "run.partial" / (f"{'d' * 64}-{'e' * 64}.kept" if name == "link" else name)
    if name == "link":
        (tmp_path / "run.partial").mkdir()
        foreign.symlink_to(tmp_path)
    elif name == "folder":
        foreign.mkdir(parents=True)
    else:
        foreign.parent.mkdir()
        foreign.write_text("chapter 1")
    with pytest.raises(OutputExistsError, match=foreign.name), kept_beside(tmp_path / "run"):
        pass
    assert os.path.lexists(foreign)


@pytest.mark.parametrize("name", [f"{'d' * 64}-{'e' * 64}.kept", f".{'a' * 16}.kept"])
def test_a_table_under_the_name_of_a_result_is_refused_and_a_damaged_result_is_not(tmp_path: Path, name: str) -> None:
    file = tmp_path / "run.partial" / name
    file.parent.mkdir()
    pq.write_table(pa.table({"chapter": [1]}), file)
    with pytest.raises(OutputExistsError, match=name), kept_beside(tmp_path / "run"):
        pass
    assert file.exists()
    for content in (b"", file.read_bytes()[:20]):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        with kept_beside(tmp_path / "run"):
            pass
        assert list(tmp_path.iterdir()) == []


def test_a_file_or_a_link_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.partial").write_text("mine")
    with pytest.raises(OutputExistsError, match=r"run\.partial"), kept_beside(tmp_path / "run"):
        pass
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "again.partial").symlink_to("elsewhere")
    with pytest.raises(OutputExistsError, match=r"again\.partial"), kept_beside(tmp_path / "again"):
        pass
    assert (tmp_path / "run.partial").read_text() == "mine"


def test_who_comes_second_is_told_so_before_anything_of_the_first_is_touched(tmp_path: Path) -> None:
    with kept_beside(tmp_path / "new" / "run") as folder:
        folder.mkdir()
        passing = folder / f".{'a' * 16}.kept"
        passing.write_bytes(b"PAR1being written")
        with pytest.raises(OutputInUseError, match=r"run\.partial"), kept_beside(tmp_path / "new" / "run"):
            pass
        assert passing.exists()
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("out", [".", "..", "/", "run"])
def test_an_output_that_is_there_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    with pytest.raises(OutputExistsError, match="exists"), kept_beside(Path(out)):
        pass


def test_a_foreign_file_that_comes_meanwhile_stays(tmp_path: Path, study: Study) -> None:
    with kept_beside(tmp_path / "run") as folder:
        kept(folder, study)
        (folder / "notes.txt").write_text("mine")
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, study: Study) -> None:
    (tmp_path / "kept").write_text("in the way")
    results = KeptResults(tmp_path / "kept", POLICIES)
    results.find(study[0], LOG)
    with pytest.raises(OutputError, match="kept"):
        results.keep(study[0][0], study[1][0])


def test_a_lock_left_beside_a_whole_output_is_removed_when_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / ".out.partial.evaluate-lock").touch()
    with pytest.raises(OutputExistsError), kept_beside(tmp_path / "out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
