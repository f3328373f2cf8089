"""Where compiled code is kept between runs. It is code: what lies there is run, so nobody else may write there.

A folder named by a hash of the package's sources, since edits in functions reached through `overload` do not show in
the function that is compiled. It lives in the user's cache directory, because site-packages may be read-only; where
that is not to be had, in a folder of the user's own among the temporary files; and for want of that in one for this
process alone.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numba
from numba.core import config

# How files begin that are being written.
UNFINISHED = ".code-"
_LOG = logging.getLogger("evaluator")
# Who can write everywhere.
OF_ROOT = 0
_ACL = "system.posix_acl_access"
# What a killed process was writing is older than any process writes for.
_ABANDONED = 3600.0
# Folders of earlier versions are kept for processes that still run them.
_KEPT_VERSIONS = 4


@cache
def cache_folder() -> Path:
    """Return the folder of this version's compiled code, created if need be; nobody else may write to it."""
    sources = hashlib.sha256(numba.__version__.encode())
    package = Path(__file__).resolve().parents[1]
    for folder in ("kernels", "policies", "replays/loop", "simulations"):
        for file in sorted((package / folder).rglob("*.py")):
            sources.update(file.name.encode() + file.read_bytes())
    name = sources.hexdigest()[:16]
    for parent in _parents():
        version = _private(parent) and _private(parent / name)
        if version:
            _forget_old(version)
            return version
    try:
        version = Path(tempfile.mkdtemp(prefix="delayed-replay-"))
    except OSError:  # the disk is full, or read-only: that nothing is kept is said when something is to be
        return Path(os.devnull) / name
    atexit.register(shutil.rmtree, version, ignore_errors=True)
    _LOG.warning("Compiled code is kept for this process alone: no folder of the user's own can be written.")
    return version


def _parents() -> Iterator[Path]:
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches").expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    yield base / "delayed-replay"
    with suppress(OSError):  # nowhere is there room for temporary files
        yield Path(tempfile.gettempdir()) / f"delayed-replay-{os.geteuid() if hasattr(os, 'geteuid') else ''}"


def _private(folder: Path) -> Path | None:
    """Return the folder, made if need be, or None where it cannot be written, or others can change what it holds."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_symlink() and hasattr(os, "geteuid") and folder.lstat().st_uid not in (os.geteuid(), OF_ROOT):
            return None
        folder = folder.resolve(strict=True)
        if not os.access(folder, os.W_OK):
            return None
        others = written_by_others(folder)
    except OSError:
        return None
    if others:
        _LOG.warning("Compiled code is not kept in %s: others may write to %s.", folder, others)
        return None
    return folder


def written_by_others(folder: Path) -> Path | None:
    """Return the folder, or the one above it, through which another user can change what the folder holds, if any.

    Root can always. A sticky folder, such as ``/tmp``, lets others add what is theirs and leaves ours alone, which is
    enough above the folder; so is a group that is the user's own. Systems without user ids are taken at their word.
    """
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid()
    for at in (folder, *folder.parents):
        about = at.stat()
        if at == folder:
            ours, apart = about.st_uid == user, False
        else:
            ours, apart = about.st_uid in (user, OF_ROOT), bool(about.st_mode & stat.S_ISVTX)
        by_group = about.st_mode & stat.S_IWGRP and (at == folder or not _group_of_one(at, about))
        if not ours or ((by_group or about.st_mode & stat.S_IWOTH) and not apart):
            return at
    return None


def _group_of_one(folder: Path, about: os.stat_result) -> bool:
    """Whether a folder's group is its owner's alone: many systems give each user one, with the user's own number.

    Not root's, which services are put into. Where a folder has an access control list, what its mode says of the group
    is the most that the list allows anybody, whoever that is.
    """
    if about.st_gid != about.st_uid or about.st_uid == OF_ROOT:
        return False
    try:
        os.getxattr(folder, _ACL)
    except AttributeError:  # a system without
        return True
    except OSError as error:
        return error.errno in (errno.ENODATA, errno.ENOTSUP)
    return False


def _forget_old(keep: Path) -> None:
    """Remove the versions used longest ago, and what processes that were killed left of this one."""

    def last_used(entry: Path) -> float:
        try:
            return entry.stat().st_mtime
        except OSError:  # another process forgot it meanwhile
            return 0.0

    named = re.compile("[0-9a-f]{16}")
    versions = sorted((f for f in keep.parent.iterdir() if named.fullmatch(f.name) and f != keep), key=last_used)
    for folder in versions[:-_KEPT_VERSIONS]:
        shutil.rmtree(folder, ignore_errors=True)
    for part in keep.glob(f"{UNFINISHED}*"):
        if last_used(part) < time.time() - _ABANDONED:
            part.unlink(missing_ok=True)
