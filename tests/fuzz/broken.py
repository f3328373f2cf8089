"""Targets that end as none may, each in a way of its own: what the fuzzer must find."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

from evaluator.errors import DataError, OutputError
from tests.fuzz.canary import SONG
from tests.fuzz.targets import Target


def _dies(folder: Path) -> None:
    os.abort()


def _hangs(folder: Path) -> None:
    time.sleep(3600)


def _raises(folder: Path) -> None:
    raise KeyError("time")


def _panics(folder: Path) -> None:
    raise BaseException("a panic of compiled code")


def _sings(folder: Path) -> None:
    Path(SONG).touch()


def _writes(folder: Path) -> None:
    (folder / "log.csv").write_text("mine")


def _leaves(folder: Path) -> None:
    Path("left").touch()


def _grows(folder: Path) -> None:
    # By more than what other tests of this process held, which allocators may give back at this moment.
    bytearray(1_000_000_000)[::4096] = b"x" * len(range(0, 1_000_000_000, 4096))


def _bursts(folder: Path) -> None:
    bytes(2_000_000_000)


def _teaches_nothing(folder: Path) -> None:
    raise DataError("log.csv is wrong.")


def _names_nothing(folder: Path) -> None:
    raise DataError("Something is wrong.", remedy="look.")


def _has_another_code(folder: Path) -> None:
    raise OutputError("log.csv is wrong.", remedy="look.")


def _reads_something_else(folder: Path) -> Any:
    return (folder / "log.csv").read_bytes().decode("latin-1")


def _broken(name: str, *, sealed: Literal["", "whole"] = "") -> Target:
    read = globals()[f"_{name}"]
    undamaged: list[Path] = []

    def after_the_first(folder: Path) -> Any:
        """Read what is not damaged as if nothing were wrong."""
        if not undamaged:
            undamaged.append(folder)
            return None
        return read(folder)

    return Target(name, "csv", "log.csv", after_the_first, sealed)


# What the fuzzer says of each.
SAID: dict[str, str] = {
    "raises": "KeyError",
    "panics": "a panic of compiled code",
    "sings": "code of the file was run",
    "writes": "its own files were changed",
    "leaves": "files were left in the working folder",
    "grows": "MB of memory",
    "bursts": "MemoryError",
    "teaches_nothing": "no hint",
    "names_nothing": "names no file",
    "has_another_code": "exit code 1",
    "reads_something_else": "as something else than was written",
}
DEADLY = ("dies", "hangs")
BROKEN = {name: _broken(name, sealed="whole" if name == "reads_something_else" else "") for name in (*SAID, *DEADLY)}
