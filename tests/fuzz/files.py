"""Which damage suits which file, and damage to whole files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.archives import GZIP, NPZ
from tests.fuzz.raw import RAW, Mutator, Rng
from tests.fuzz.tables import IPC, PARQUET
from tests.fuzz.text import TEXT
from tests.fuzz.trees import change_json, change_json_line, change_toml, deep, deep_toml

# Of the damage to a file as often each: what knows its format, and what does not.
SUITED: dict[str, tuple[Mutator, ...]] = {
    ".csv": TEXT,
    ".tsv": TEXT,
    ".json": (*[change_json] * 8, deep, *TEXT),
    ".jsonl": (*[change_json_line] * 8, deep, *TEXT),
    ".dsjson": (*[change_json_line] * 8, deep, *TEXT),
    ".txt": TEXT,
    ".toml": (*[change_toml] * 12, deep_toml, *TEXT),
    ".gz": GZIP,
    ".parquet": PARQUET,
    ".kept": PARQUET,
    ".arrow": IPC,
    ".npz": NPZ,
}


@dataclass(frozen=True)
class Damage:
    """What was done to files.

    Parameters
    ----------
    how
        The file and the mutators.
    knowing
        Whether one of them knew the format: then its own checksums may be right.
    """

    how: str
    knowing: bool = False


def damage(rng: Rng, files: list[Path]) -> Damage:
    """Change one of the files, or two, in place; the same generator, the same change."""
    path = files[int(rng.integers(len(files)))]
    if rng.integers(20) == 0:
        how = _damage_whole(rng, path, files)
        return Damage(how, knowing=how.endswith("exchanged"))
    before = path.read_bytes()
    data, said, knowing = before, [], False
    while data == before:
        for _ in range(rng.geometric(0.7)):
            mutators = SUITED[path.suffix] if rng.integers(2) else RAW
            mutator = mutators[int(rng.integers(len(mutators)))]
            if data or mutators is not RAW:
                data = mutator(rng, data)
            said.append(mutator.__name__)
            knowing |= mutators is not RAW
    path.write_bytes(data)
    return Damage(f"{path.name}: {', '.join(said)}", knowing)


def _damage_whole(rng: Rng, path: Path, files: list[Path]) -> str:
    other = files[int(rng.integers(len(files)))]
    kind = rng.integers(4)
    if kind == 0:
        path.unlink()
        return f"{path.name}: removed"
    if kind == 1:
        path.unlink()
        path.mkdir()
        return f"{path.name}: a folder"
    if kind == 2 and other != path:
        kept = path.read_bytes()
        shutil.copyfile(other, path)
        other.write_bytes(kept)
        return f"{path.name}, {other.name}: exchanged"
    head, tail = path.read_bytes(), other.read_bytes()
    path.write_bytes(head[: int(rng.integers(len(head) + 1))] + tail[int(rng.integers(len(tail) + 1)) :])
    return f"{path.name}: spliced with {other.name}"
