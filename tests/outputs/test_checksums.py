from __future__ import annotations

import hashlib
from pathlib import Path

from evaluator.outputs.atomic import checksum, described


def test_checksum_is_that_of_the_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 3_000  # several reads
    (tmp_path / "a").write_bytes(content)
    assert checksum(tmp_path / "a") == hashlib.sha256(content).hexdigest()


def test_files_of_a_folder_are_described_by_name(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "b.txt").write_bytes(b"abc")
    (tmp_path / "a.txt").write_bytes(b"")
    found = described(tmp_path)
    assert list(found) == ["a.txt", "b.txt"]
    assert found["b.txt"] == {"bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
    assert described([tmp_path / "b.txt"]) == {"b.txt": found["b.txt"]}
