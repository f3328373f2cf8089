"""Compiled code is run when it is found again: it lies where nobody else may write."""

from __future__ import annotations

import logging
import os
import stat
import struct
import tempfile
from pathlib import Path

import pytest
from numba.core import config

from evaluator.engine.kernels import code_cache
from evaluator.engine.kernels.code_cache import written_by_others

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user ids")


def folder_now() -> Path:
    return code_cache.cache_folder.__wrapped__()


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's cache directory; temporary files lie beside it."""
    base, temporary = tmp_path / "base", tmp_path / "tmp"
    base.mkdir(0o700)
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setattr(config, "CACHE_DIR", str(base))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return base


def test_it_is_the_users_alone(base: Path) -> None:
    folder = folder_now()
    assert folder.parent == base / "delayed-replay"
    for made in (folder, folder.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_shared_folder_is_not_used(base: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    (base / "delayed-replay").mkdir()
    (base / "delayed-replay").chmod(mode)
    with caplog.at_level(logging.WARNING, "evaluator"):
        folder = folder_now()
    assert folder.parent.parent == base.parent / "tmp"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert [r.message for r in caplog.records] == [
        f"Compiled code is not kept in {base}/delayed-replay: others may write to {base}/delayed-replay."
    ]


def test_a_folder_that_others_can_swap_is_not_used(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    base.chmod(0o777)
    assert base not in folder_now().parents
    assert f"others may write to {base}." in caplog.text
    base.chmod(0o1777)  # where nobody can remove or rename what is another's
    assert base in folder_now().parents


def test_another_users_folder_is_not_used(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_now()
    assert written_by_others(folder) is None
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert written_by_others(folder) == folder


@pytest.mark.parametrize("mode", [0o775, 0o770, 0o1775])
def test_no_group_may_write_to_the_folder(base: Path, mode: int) -> None:
    folder = folder_now()
    for at in (folder, folder.parent):  # its user's group is not root's alone, and a list of more users shows as one
        at.chmod(mode)
        assert base not in folder_now().parents
        at.chmod(0o700)
    assert folder_now() == folder


def test_above_it_a_group_may_write_if_it_is_the_users_own(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, folder = 12345, folder_now()
    if os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    base.chmod(0o770)
    assert written_by_others(folder) == base  # root's group is not root's alone
    for at in (base, folder.parent, folder):
        os.chown(at, user, user)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert written_by_others(folder) is None
    os.chown(base, user, user + 1)
    assert written_by_others(folder) == base


def test_above_it_no_list_lets_others_write(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, folder = 12345, folder_now()
    if os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    for at in (base, folder.parent, folder):
        os.chown(at, user, user)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    nobody, none = 65534, 0xFFFFFFFF
    entries = [(1, 7, none), (2, 7, nobody), (4, 0, none), (16, 7, none), (32, 0, none)]
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(base, "system.posix_acl_access", listed)
    except (AttributeError, OSError):
        pytest.skip("the file system keeps no access control lists")
    assert stat.S_IMODE(base.stat().st_mode) == 0o770
    assert written_by_others(folder) == base
    base.chmod(0o750)  # what the list allows at most
    assert written_by_others(folder) is None


def test_another_users_link_among_temporary_files_is_not_followed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, ours = os.geteuid(), base.parent / "ours"
    ours.mkdir()
    base.rmdir()
    base.touch()  # so that no folder can be made in it
    link = base.parent / "tmp" / f"delayed-replay-{user}"
    link.symlink_to(ours)
    assert folder_now().parent == ours
    if user == 0:
        os.lchown(link, 12345, -1)
        assert ours not in folder_now().parents


def test_without_a_folder_a_run_has_one_of_its_own(
    base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(code_cache, "_private", lambda folder: None)
    folder = folder_now()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "for this process alone" in caplog.text


def test_without_room_for_a_folder_nothing_is_raised(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "mkdir", full)
    assert not folder_now().exists()
