"""A result as a chapter of a page: its document, its charts, and the facts that reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluator.errors import SourceError
from evaluator.reports.document import Many, Section
from evaluator.reports.manifest import AGAIN, read_json, write_json

CHAPTER = "chapter.json"
SCHEMA = "evaluate.chapter/2"
Spec = dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    """A chapter of a page, on one result.

    Parameters
    ----------
    kind
        Command that gives such results: ``replay``, ``compare``, ``check``...
    title
        Title of the chapter.
    sections
        Sections of the report; a first section without a title stands above the others.
    charts
        Charts by name, as Vega-Lite specifications with their data; of these a file holds what
        `evaluator.reports.chart_schema` lets through, and no program.
    reproduce
        Facts that reproduce the result, by name: command, versions, seed, fingerprint.
    """

    kind: str
    title: str
    sections: Many[Section]
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
        The folder has no chapter, or the file was changed after a command wrote it.
    """
    from pydantic import TypeAdapter, ValidationError

    from evaluator.reports.chart_schema import MOST_CHARTS, check_charts, place_of

    path = folder / CHAPTER
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise SourceError(f"{folder}: {what}.", remedy="name a folder that a command wrote with --out.")
    if not path.exists():
        raise SourceError(f"{folder} holds no {CHAPTER}: no result of this version.", remedy=AGAIN)
    content = read_json(path, most_names=MOST_CHARTS)
    if content.pop("schema", None) != SCHEMA:
        raise SourceError(f"{path}: no {SCHEMA}.", remedy=AGAIN)
    try:
        chapter = TypeAdapter(Chapter).validate_python(content)
        check_charts(chapter.charts)
    except ValueError as error:
        where = place_of(error) if isinstance(error, ValidationError) else str(error)
        raise SourceError(f"{path}: not as a command wrote it, at {where or 'the top'}.", remedy=AGAIN) from None
    return chapter
