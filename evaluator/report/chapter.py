"""A result as a chapter of a page: the terminal's report as blocks, with its charts and how it came about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluator.errors import SourceError
from evaluator.report.blocks import Section
from evaluator.report.manifest import write_json

CHAPTER = "chapter.json"
SCHEMA = "evaluate.chapter/1"
Spec = dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    """What a page says of one result.

    Parameters
    ----------
    kind
        Command that gives such results: ``replay``, ``compare``, ``check``...
    title
        Title of the chapter.
    sections
        Sections of the report; what comes first stands above all titles.
    charts
        Charts by name, as Vega-Lite specifications with their data.
    reproduce
        Facts that give the result again, by name: command, versions, seed, fingerprint.
    """

    kind: str
    title: str
    sections: tuple[Section, ...]
    charts: Mapping[str, Spec] = field(default_factory=dict)
    reproduce: Mapping[str, str] = field(default_factory=dict)


def write_chapter(folder: Path, chapter: Chapter) -> None:
    """Write ``chapter.json``, from which pages are made."""
    write_json(folder / CHAPTER, {"schema": SCHEMA, **asdict(chapter)})


def read_chapter(folder: Path) -> Chapter:
    """Return the chapter in the folder of a result.

    Raises
    ------
    SourceError
        The folder has none, or the file is not as a command wrote it.
    """
    from pydantic import TypeAdapter, ValidationError

    path = folder / CHAPTER
    again = "run the command again with --out."
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise SourceError(f"{folder}: {what}.", hint="name a folder that a command wrote with --out.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceError(f"{folder} holds no {CHAPTER}: no result of this version.", hint=again) from None
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{path}: cannot be read ({error}).", hint=again) from None
    if not isinstance(found, dict) or found.pop("schema", None) != SCHEMA:
        raise SourceError(f"{path}: no {SCHEMA}.", hint=again)
    try:
        return TypeAdapter(Chapter).validate_python(found)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise SourceError(f"{path}: not as a command wrote it, at {where or 'the top'}.", hint=again) from None
