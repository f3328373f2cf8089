from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from evaluator.errors import OutputError, OutputExistsError, OutputInUseError, UsageError
from evaluator.outputs import staging
from evaluator.outputs.atomic import refuse_existing, whole_file, whole_files, whole_folder
from evaluator.outputs.staging import aside, mark


def replaceable(folder: Path) -> None:
    assert folder.exists()


def write(out: Path, content: str = "new") -> None:
    with whole_folder(out, check_old=replaceable) as folder:
        (folder / "a").write_text(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_kill_before_any_call_leaves_the_old_or_the_new_and_the_next_run_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.outputs.killed"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)
    assert len(points) == 5
    assert min(points.values()) > 8


def test_nothing_is_at_the_target_until_the_block_ends(tmp_path: Path) -> None:
    out = tmp_path / "made" / "out"
    with whole_folder(out) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "b").write_text("b")
        assert not out.exists()
        assert all(name.startswith(".") for name in names(out.parent))
    assert (out / "inner" / "b").read_text() == "b"
    assert names(out.parent) == ["out"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool) -> None:
    if not exchanges:
        monkeypatch.setattr(staging, "exchange", lambda one, other: False)
    link, real = tmp_path / "link", tmp_path / "volume" / "real"
    link.symlink_to(real)
    for content in ("old", "new"):
        write(link, content)
        assert link.is_symlink()
        assert (real / "a").read_text() == content
    assert names(tmp_path) == ["link", "volume"]
    assert names(real.parent) == ["real"]


def test_what_a_kill_left_of_an_output_that_is_refused_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out)
    for refused in (lambda: whole_folder(out), lambda: whole_files([tmp_path / "side", out])):
        (tmp_path / f".out.partial-{'0' * 16}").mkdir()
        (tmp_path / ".out.evaluate-lock").touch()
        with pytest.raises(OutputExistsError), refused():
            pass
        assert names(tmp_path) == ["out"]


def test_what_is_being_written_is_not_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out) as folder:
        out.mkdir()
        with pytest.raises(OutputExistsError):
            refuse_existing(out)
        assert folder.is_dir()
        out.rmdir()
    assert names(tmp_path) == ["out"]


def test_a_link_that_leads_in_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OutputExistsError, match="exists"), whole_folder(tmp_path / "a"):
        pass


def test_two_steps_that_fail_between_put_the_old_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "exchange", lambda one, other: False)
    out = tmp_path / "out"
    write(out, "old")
    known = Path.rename

    def fails_at_second(self: Path, target: Path) -> Path:
        if Path(target) == out and (self / "a").read_text() == "new":
            raise OSError(28, "No space left on device")
        return known(self, target)

    monkeypatch.setattr(Path, "rename", fails_at_second)
    with pytest.raises(OutputError, match="No space left"):
        write(out)
    assert (out / "a").read_text() == "old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("placed", [False, True])
def test_an_old_output_is_put_back_only_while_it_is_whole(tmp_path: Path, placed: bool) -> None:
    # What two steps leave if they are stopped between them, or later: then the old one may have been deleted in part.
    left = tmp_path / ".out.partial-0123456789abcdef"
    left.mkdir()
    mark(left, ["out"])
    for path in [aside(left)] if placed else [aside(left), left / "out"]:
        path.mkdir()
        (path / "a").write_text("old" if path == aside(left) else "new")
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out", check_old=replaceable):
        raise KeyboardInterrupt
    assert names(tmp_path) == ([] if placed else ["out"])
    assert placed or (tmp_path / "out" / "a").read_text() == "old"


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def other() -> None:
        out.mkdir()
        (out / "mine").write_text("mine")

    with pytest.raises(OutputExistsError, match="exists"), whole_folder(out):
        other()
    assert names(out) == ["mine"]
    assert names(tmp_path) == ["out"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    known = os.link

    def after_another(source: Path, target: Path) -> None:
        if target == last:
            last.write_text("mine")
        known(source, target)

    monkeypatch.setattr(os, "link", after_another)

    def write_both() -> None:
        with whole_files([first, last]) as parts:
            for part in parts:
                part.write_text("new")

    with pytest.raises(OutputError, match="File exists"):
        write_both()
    assert last.read_text() == "mine"
    assert names(tmp_path) == ["last"]


@pytest.mark.parametrize("appears", [True, False])
def test_files_where_files_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appears: bool) -> None:
    def refused(source: Path, target: Path) -> None:
        if appears:
            target.write_text("mine")
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    out = tmp_path / "out"

    def write_one() -> None:
        with whole_files([out]) as (part,):
            part.write_text("new")

    if appears:
        with pytest.raises(OutputError, match="File exists"):
            write_one()
    else:
        write_one()
    assert out.read_text() == ("mine" if appears else "new")
    assert names(tmp_path) == ["out"]


def test_the_second_writer_is_told_and_the_first_is_whole(tmp_path: Path) -> None:
    out, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(out)
    with whole_folder(out) as folder:
        (folder / "a").write_text("first")
        for other in (out, link):
            with pytest.raises(OutputInUseError, match="written by another process"), whole_folder(other):
                pass
        with pytest.raises(OutputInUseError), whole_file(out):
            pass
    assert (out / "a").read_text() == "first"
    assert names(tmp_path) == ["link", "out"]


def test_names_that_only_look_like_leftovers_stay(tmp_path: Path) -> None:
    others = [".out.partial-4711", ".out.partial-0123456789abcdef0", ".outer.partial-0123456789abcdef", ".out.old"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / ".out.partial-0000000000000000").write_text("")
    left = tmp_path / ".out.partial-0123456789abcdef"
    left.mkdir()
    mark(left, ["out"])
    (left / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".out.partial-fedcba9876543210").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "out")
    assert names(tmp_path) == sorted(
        [*others, ".out.partial-0000000000000000", ".out.partial-fedcba9876543210", "elsewhere", "out"]
    )


@pytest.mark.parametrize("inside", ["out", "log.csv", ".out.partial-0123456789abcdef"])
def test_what_others_put_under_our_names_stays(tmp_path: Path, inside: str) -> None:
    # The last one has the name of the marker; the second is a second name of what lies beside the output.
    beside, theirs = tmp_path / "log.csv", tmp_path / ".out.partial-0123456789abcdef"
    beside.write_text("log")
    theirs.mkdir()
    os.link(beside, theirs / inside)
    write(tmp_path / "out")
    with pytest.raises(OutputExistsError), whole_files([tmp_path / "out"]):
        pass
    assert names(tmp_path) == [theirs.name, "log.csv", "out"]
    assert (theirs / inside).read_text() == beside.read_text() == "log"


def test_what_others_put_into_our_folder_stays(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "out") as folder:
        (folder.parent / "thesis").write_text("mine")
    (left,) = tmp_path.glob(".out.partial-*")
    assert names(left) == ["thesis"]
    write(tmp_path / "out")
    assert names(left) == ["thesis"]


@pytest.mark.parametrize("begun", [False, True])
def test_a_folder_killed_before_it_was_marked_is_removed(tmp_path: Path, begun: bool) -> None:
    left = tmp_path / ".out.partial-0123456789abcdef"
    left.mkdir()
    if begun:
        (left / left.name).touch()
    write(tmp_path / "out")
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["n" * 255, "\N{PILE OF POO}" * 63])
def test_every_legal_name_can_be_written(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    for content in ("old", "new"):
        write(out, content)
        assert (out / "a").read_text() == content
    with whole_files([tmp_path / name[::-1][:-1]]) as (part,):
        part.write_text("")
    assert names(tmp_path) == sorted([name, name[:-1]])


@pytest.mark.parametrize("writer", [whole_folder, lambda out: whole_files([out]), whole_file])
def test_a_name_that_is_too_long_is_found_before_the_work(
    tmp_path: Path, writer: Callable[[Path], AbstractContextManager[object]]
) -> None:
    with pytest.raises(OutputError, match="File name too long"), writer(tmp_path / ("n" * 256)):
        pytest.fail("the work was begun")
    assert names(tmp_path) == []


def test_names_that_are_patterns(tmp_path: Path) -> None:
    (tmp_path / ".out.partial-0123456789abcdef").mkdir()
    write(tmp_path / "o.t")
    write(tmp_path / "[o]*")
    assert names(tmp_path) == [".out.partial-0123456789abcdef", "[o]*", "o.t"]


@pytest.mark.parametrize("writer", [whole_folder, whole_file])
def test_what_cannot_be_written_is_found_before_the_work(
    tmp_path: Path, writer: Callable[[Path], AbstractContextManager[object]]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file/out: cannot be written") as raised, writer(tmp_path / "file" / "out"):
        pytest.fail("the work was begun")
    assert "\n" not in str(raised.value)


def test_files_without_a_folder_are_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No folder"), whole_files([tmp_path / "absent" / "out"]):
        pytest.fail("the work was begun")


def test_a_failure_of_the_block_is_passed_on_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), whole_folder(tmp_path / "out"):
        raise BrokenPipeError
    assert names(tmp_path) == []


def test_a_file_is_replaced_through_its_link(tmp_path: Path) -> None:
    link, real = tmp_path / "link", tmp_path / "real"
    link.symlink_to(real)
    for content in ("old", "new"):
        with whole_file(link) as part:
            part.write_text(content)
        assert real.read_text() == content
    assert link.is_symlink()
    assert names(tmp_path) == ["link", "real"]


def test_outputs_have_the_rights_that_other_files_have(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    write(tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_content_is_on_disk_before_it_is_in_place_and_names_are_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "made" / "deep" / "out"
    known, before, after = os.fsync, set(), set()

    def seen(handle: int) -> None:
        (after if out.exists() else before).add(os.fstat(handle).st_ino)
        known(handle)

    monkeypatch.setattr(os, "fsync", seen)
    with whole_folder(out) as folder:
        (folder / "inner").mkdir()
        for name in ("a", "inner/b"):
            (folder / name).write_text("new")
    assert {path.stat().st_ino for path in (out, *out.rglob("*"))} <= before
    assert {path.stat().st_ino for path in (out.parent, out.parent.parent, tmp_path)} <= after


def test_what_is_replaced_hands_on_its_rights(tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "file"
    write(out, "old")
    out.chmod(0o700)
    (out / "a").chmod(0o640)
    file.touch(0o600)
    with whole_folder(out, check_old=replaceable) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700  # before anything is in it
        for name in ("a", "more"):
            (folder / name).write_text("new")
    with whole_file(file) as part:
        part.write_text("new")
    rights = {path.name: path.stat().st_mode & 0o777 for path in (out, out / "a", out / "more", file)}
    assert rights == {"out": 0o700, "a": 0o640, "more": 0o600, "file": 0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_is_replaced_hands_on_its_owner(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    os.chown(tmp_path / "out", 1234, 1234)
    write(tmp_path / "out")
    assert (tmp_path / "out").stat().st_uid == 1234


def test_a_mount_point_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == tmp_path / "out")
    with (
        pytest.raises(OutputExistsError, match="mount point"),
        whole_folder(tmp_path / "out", check_old=replaceable),
    ):
        pytest.fail("the work was begun")
