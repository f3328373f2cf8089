"""A drafted ``spec.toml``: its keys, each with the reason for its value, and the text that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import UsageError
from evaluator.input_files import Value, toml_comment, toml_key, toml_value

NO_ANSWER = "none"
# What the comment of a line begins with: what the sample shows, or what it cannot show.
GUESSED, CHECK = "guessed: ", "please check: "


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a file cannot tell for certain.

    Parameters
    ----------
    key
        Key of the spec that the answer decides, such as ``display.time``.
    words
        Sentence that asks it.
    guess
        Answer that the file suggests, ``"none"`` where it suggests none.
    choices
        Answers that are possible, None where any is.
    why
        What speaks for the guess.
    """

    key: str
    words: str
    guess: str
    choices: tuple[str, ...] | None
    why: str


Ask = Callable[[Question], str]


@dataclass(frozen=True)
class Line:
    """A key of the spec.

    Without a key, the comment, which is the reason for the value, stands alone. A line that is not `live` is written as
    a comment, to be completed or dropped.
    """

    key: str
    value: Value = ""
    comment: str = ""
    live: bool = True

    def __str__(self) -> str:
        if not self.key:
            return toml_comment(self.comment)
        said = f"{toml_key(self.key)} = {toml_value(self.value)}"
        said = said if self.live else f"# {said}"
        return f"{said}  {toml_comment(self.comment)}" if self.comment else said


@dataclass(frozen=True)
class Draft:
    """A spec drafted from files.

    `conversions` are the files of events, which may be those of the displays; `sections` has the lines, without the
    files; `rows` the numbers of rows looked at, of the displays and of the second table, and whether these are all;
    `missing` the keys without which it is no spec, and which could not be guessed.
    """

    files: Path
    conversions: Path | None
    sections: dict[str, tuple[Line, ...]]
    rows: tuple[tuple[int, bool], ...]
    missing: tuple[str, ...]

    @property
    def open(self) -> list[str]:
        """What to check before a number is believed: a sentence for each key that no one decided for certain."""
        return [
            f"{section}{'.' if line.key else ''}{line.key}: {line.comment.removeprefix(CHECK)}"
            for section, lines in self.sections.items()
            for line in lines
            if line.comment.startswith(CHECK)
        ]

    @property
    def commented(self) -> list[str]:
        """Keys that stand in comments, without effect."""
        return [f"{name}.{line.key}" for name, lines in self.sections.items() for line in lines if not line.live]

    def toml(self, folder: str | Path | None = None) -> str:
        """Return the text of the spec.

        Files are named relative to `folder`, which the spec is for, or by their whole paths.
        """
        looked = " and ".join(f"{'all' if whole else 'the first'} {rows:,} rows" for rows, whole in self.rows)
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", re.sub(r"\.[A-Za-z0-9.]+$|[*?]+.*", "", self.files.name)).strip("-.")
        head = [
            toml_comment(f"Drafted from {looked}. Read every line: what is guessed, and what to check, says so."),
            f"name = {toml_value(stem or 'log')}",
            f"title = {toml_value(self.files.name)}",
            f'licence = "unknown"  {toml_comment("please check: who may use this log")}',
        ]
        for section, lines in self.sections.items():
            found = self.files if section == "source" else self.conversions if section.endswith(".source") else None
            files = [] if found is None else [str(Line("files", _named(found, folder)))]
            head += ["", f"[{section}]", *files, *map(str, lines)]
        return "\n".join(head) + "\n"


def _named(path: Path, folder: str | Path | None) -> str:
    whole = Path(os.path.abspath(path))
    if folder is None:
        return whole.as_posix()
    try:
        return Path(os.path.relpath(whole, os.path.realpath(folder))).as_posix()
    except ValueError:  # another drive
        return whole.as_posix()


def most_of(text: str | None) -> float:
    """Return the number in an answer to what a display can earn at most; 1 without one."""
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        raise UsageError(f"log.reward_max: {text!r} is no number.", remedy="write 20, or none.") from None
