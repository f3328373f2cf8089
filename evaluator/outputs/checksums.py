"""Sizes and checksums of files, by which a damaged or exchanged file is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict


class FileChecksum(TypedDict):
    """Size of a file in bytes, and the SHA-256 of its content in hexadecimal digits."""

    bytes: int
    sha256: str


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits; memory does not grow with the size of the file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def described(files: Path | Iterable[Path]) -> dict[str, FileChecksum]:
    """Return size and checksum of each file, by its name, in the order of names; of a folder, not its subfolders."""
    paths = [path for path in files.iterdir() if path.is_file()] if isinstance(files, Path) else files
    return {
        path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)}
        for path in sorted(paths, key=lambda path: path.name)
    }
