"""What a folder holds, and whether a command that was cut off left it as it may."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

Contents = Mapping[str, bytes | str]
# Names that a careless pattern would take for leftovers of ours.
NEIGHBOURS = ("notes.txt", ".out.partial-notes/thesis.txt", "out.old/thesis.txt", "outer.partial/thesis.txt")


def contents(folder: Path) -> Contents:
    """Return bytes of files, ``"folder"``, and where links lead, by relative path."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        else:
            found[name] = "folder" if path.is_dir() else path.read_bytes()
    return found


def part(found: Contents, target: str) -> Contents:
    """Return what is at a path and below."""
    return {name: held for name, held in found.items() if name == target or name.startswith(f"{target}/")}


def torn(found: Contents, targets: tuple[str, ...], *wholes: Contents, together: bool = True) -> list[str]:
    """Return what is wrong: outputs that are none of the whole ones, and neighbours that changed or went.

    The first of the wholes is what was there before. Of outputs that belong `together` the last is there only if all
    are.
    """
    before = wholes[0]
    wrong = []
    for target in targets:
        now = part(found, target)
        if all(now != part(whole, target) for whole in wholes):
            wrong.append(f"{target} is torn: {_differences(now, part(wholes[-1], target))}")
    placed = part(found, targets[-1]) != part(before, targets[-1])
    if together and placed and not wrong and all(_differ(found, whole, targets) for whole in wholes):
        wrong.append(f"{targets[-1]} is there without the others, or with those of another")
    of_targets = {name for target in targets for whole in (*wholes, found) for name in part(whole, target)}
    for name, held in before.items():
        if name not in of_targets and found.get(name) != held:
            wrong.append(f"{name} beside it was changed or removed")
    return wrong


def _differ(one: Contents, other: Contents, targets: tuple[str, ...]) -> bool:
    return any(part(one, target) != part(other, target) for target in targets)


def left(found: Contents, targets: tuple[str, ...], before: Contents) -> list[str]:
    """Return what is there that is neither an output nor was there before; of a folder, its name alone."""
    own = {name for target in targets for name in part(found, target)}
    extra = [name for name in found if name not in before and name not in own]
    return [name for name in extra if name.rpartition("/")[0] not in extra]


def _differences(found: Contents, whole: Contents) -> str:
    names = sorted({*found, *whole})
    said = {
        name: "missing" if name not in found else "extra" if name not in whole else "other bytes"
        for name in names
        if found.get(name) != whole.get(name)
    }
    return ", ".join(f"{name} {what}" for name, what in said.items())


def neighbours(folder: Path) -> None:
    """Write what is not ours beside where outputs go."""
    for name in NEIGHBOURS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def fresh(folder: Path, before: Path) -> Path:
    """Make a folder anew as it was before: links stay links, and files of two names stay one file."""
    copied: dict[int, str] = {}

    def copy(source: str, to: str) -> None:
        first = copied.setdefault(os.stat(source).st_ino, to)
        if first == to:
            shutil.copy2(source, to)
        else:
            os.link(first, to)

    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(before, folder, symlinks=True, copy_function=copy)
    return folder
