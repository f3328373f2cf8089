"""Columns of a source with a number for each action, whose names hold the action's label: ``pi_{action}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.datasets.frames import column_names
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec_sections import Table
from evaluator.errors import LogError, SpecError
from evaluator.log.value_text import value_text

PLACEHOLDER = "{action}"


def columns_by_label(pattern: str, key: str, file: TablePart, source: Table) -> dict[str, str]:
    """Return the column of each action's label.

    Parameters
    ----------
    pattern
        Name of the columns, with `PLACEHOLDER` for the label.
    key
        Key of the spec that says so.
    file, source
        First file of the displays, and how it is read.

    Raises
    ------
    SpecError
        No column of the source fits the pattern.
    """
    before, after = pattern.split(PLACEHOLDER)
    names = column_names(file, source)
    found = {
        value_text(name[len(before) : len(name) - len(after)]): name
        for name in names
        if len(name) > len(before) + len(after) and name.startswith(before) and name.endswith(after)
    }
    if not found:
        raise SpecError(
            f"{file.name}: no column fits {key} = {pattern!r}.",
            hint=f"the columns are {', '.join(names[:8])}{'...' if len(names) > 8 else ''}.",
        )
    return found


def in_order_of(labels: Sequence[str], columns: Mapping[str, str], section: str, hint: str) -> list[str]:
    """Return the column of each label, (K,).

    Parameters
    ----------
    labels
        Labels of the log's K actions.
    columns
        Column of each label that the source has one for.
    section, hint
        Section of the spec, and what to do about a label without a column, for the error.

    Raises
    ------
    LogError
        An action of the log has no such column.
    """
    for label in labels:
        if label not in columns:
            raise LogError(f"[{section}] has no column for action {label!r} of the log.", hint=hint)
    return [columns[label] for label in labels]
