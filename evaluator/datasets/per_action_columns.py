"""Columns with a number for each action: probabilities of a policy to be evaluated, and vectors of the actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.cells import Kind
from evaluator.datasets.frames import Chunks, column_names
from evaluator.datasets.labels import value_texts
from evaluator.datasets.row_breaches import Breaches, CheckedRows
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_sections import Table, TargetSource
from evaluator.errors import LogError, SpecError
from evaluator.log.breaches import SUM_TOLERANCE
from evaluator.log.encoder import value_text
from evaluator.log.schema import NAMED_TARGET, TARGET

CODE = "__target_"
PLACEHOLDER = "{action}"
VECTOR_CODE = "__vector_"

# For each number of a vector, the column of each action's label.
VectorColumns = Sequence[Mapping[str, str]]


# For each policy to be evaluated, by its column of displays, the column of each action's label.
TargetColumns = Mapping[str, Mapping[str, str]]


def target_columns(spec: FileSpec, files: Sequence[TablePart]) -> dict[str, dict[str, str]]:
    """Return the columns of probabilities of each policy to be evaluated. Errors as of `columns_by_label`."""
    if spec.target is None:
        return {}
    asked = {TARGET: spec.target.columns, **{NAMED_TARGET + name: of.columns for name, of in spec.target.named.items()}}
    found = {}
    for name, columns in asked.items():
        key = f"{name.replace(':', '.')}.columns"
        if isinstance(columns, str):
            found[name] = columns_by_label(columns, key, files[0], spec.source)
        elif columns is not None:
            found[name] = {value_text(label): column for label, column in columns.items()}
    return found


def target_actions(spec: FileSpec) -> dict[str, str]:
    """Return the column of labels of each policy to be evaluated that has one, by its column of displays."""
    named = {} if spec.target is None else spec.target.named
    return {
        NAMED_TARGET + name: of.action if of.source is None else f"target.{name}.action"
        for name, of in named.items()
        if of.action is not None
    }


class TakenFromTable:
    """The actions that a policy takes, in a table of their own: displays find theirs by id as they pass by.

    Memory: an id and a label of each row. Time: a binary search a display. Raises LogError if a row has no id, or the
    id of another one.
    """

    def __init__(self, source: TargetSource, action: str, files: list[TablePart]) -> None:
        kinds: dict[str, Kind] = {source.display: "text", action: "category"}
        table, breaches = Chunks(files, source, kinds).collect(), Breaches(files, listed=False)
        ids, rows = value_texts(table[source.display]), breaches.check(table)
        rows.add(source.display, ids.is_null(), "missing", "fill the cell, or leave the row out")
        rows.add(source.display, ids.is_not_null() & ~ids.is_first_distinct(), "twice", "keep one row of each display")
        rows.close()
        breaches.refuse()
        order = ids.arg_sort()
        self._ids, self._labels = ids.gather(order), table[action].gather(order)

    def of(self, ids: pl.Series) -> pl.Series:
        """Return the label at each display, null where the table has no row of it."""
        wanted = value_texts(ids)
        if self._ids.is_empty():
            return pl.Series(dtype=pl.String).extend_constant(None, len(ids))
        at = self._ids.search_sorted(wanted.fill_null("")).clip(upper_bound=len(self._ids) - 1)
        found = pl.DataFrame({"id": self._ids.gather(at), "label": self._labels.gather(at), "wanted": wanted})
        return found.select(pl.when(pl.col("id") == pl.col("wanted")).then("label"))["label"]


def taken_from_tables(spec: FileSpec, others: Mapping[str, list[TablePart]]) -> dict[str, TakenFromTable]:
    """Read the tables of actions that policies take, by the name of the column that a display gets of them."""
    columns = target_actions(spec)
    return {
        columns[NAMED_TARGET + name]: TakenFromTable(of.source, of.action, others[f"target.{name}.source"])
        for name, of in ({} if spec.target is None else spec.target.named).items()
        if of.source is not None and of.action is not None
    }


def check_targets(rows: CheckedRows, frame: pl.DataFrame, targets: TargetColumns, actions: Mapping[str, str]) -> None:
    """Report displays at which a policy to be evaluated has no action, or probabilities that are none."""
    for name, column in actions.items():
        rows.add(
            column, rows.sound & frame[column].is_null(), f"no action of {name}",
            "write what is shown where the policy says nothing, or quarantine the row",
        )  # fmt: skip
    for name, columns in targets.items():
        _check_probabilities(rows, frame, name, columns)


def _check_probabilities(rows: CheckedRows, frame: pl.DataFrame, target: str, columns: Mapping[str, str]) -> None:
    sound = rows.sound
    remedy = "give the probability with which the policy shows the action"
    for column in columns.values():
        p = frame[column].cast(pl.Float64)
        rows.add(column, sound & (p.is_null() | p.is_nan()), "probability missing or nan", remedy)
        rows.add(column, sound & p.is_not_nan() & ((p < 0) | (p > 1)), "probability outside [0, 1]", remedy)
    # A row is told of once: of its cells if these are wrong, else of its sum.
    cells = rows.sound
    total = frame.select(pl.sum_horizontal(*dict.fromkeys(columns.values()))).to_series().cast(pl.Float64)
    first = next(iter(columns.values()))
    rows.add(
        first, cells & ((total - 1.0).abs() > SUM_TOLERANCE), "probabilities of a row do not sum to 1",
        f"name the columns of all actions in [{target.replace(':', '.')}], {len(columns)} are named, and normalise "
        "them", values=total,
    )  # fmt: skip


def target_codes(frame: pl.DataFrame, targets: TargetColumns) -> dict[str, pl.Series]:
    """Return the probabilities of a chunk as columns of the spool, by number of the policy and place of the action."""
    return {
        f"{CODE}{number}_{i}": frame[column].cast(pl.Float64)
        for number, columns in enumerate(targets.values())
        for i, column in enumerate(columns.values())
    }


def target_places(targets: TargetColumns, labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of the spool with each policy's probabilities, (K,) each. Errors as of `in_order_of`."""
    hint = "name one; if the policy never shows the action, a column of zeros."
    found = {}
    for number, (name, columns) in enumerate(targets.items()):
        place = {label: f"{CODE}{number}_{i}" for i, label in enumerate(columns)}
        found[name] = in_order_of(labels, place, name.replace(":", "."), hint)
    return found


def target_of(columns: Mapping[str, npt.NDArray[np.float64]], places: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the probabilities of some displays, shape (n, K)."""
    return np.column_stack([columns[place] for place in places])


def columns_by_label(pattern: str, key: str, file: TablePart, source: Table) -> dict[str, str]:
    """Return the column of each action's label.

    In `pattern` `PLACEHOLDER` stands for the label; `key` is the key of the spec that says so. Raises SpecError if no
    column of the first `file` of the displays fits.
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
            remedy=f"the columns are {', '.join(names[:8])}{'...' if len(names) > 8 else ''}.",
        )
    return found


def in_order_of(labels: Sequence[str], columns: Mapping[str, str], section: str, hint: str) -> list[str]:
    """Return the column of each label, (K,).

    Raises LogError, with the `section` of the spec and a `hint`, if an action of the log has no such column.
    """
    for label in labels:
        if label not in columns:
            raise LogError(f"[{section}] has no column for action {label!r} of the log.", remedy=hint)
    return [columns[label] for label in labels]


def vector_columns(spec: FileSpec, files: Sequence[TablePart]) -> list[dict[str, str]]:
    """Return the columns of each number of the vectors, none without ``[action_set]``.

    Raises SpecError if no column fits, or if one is an outcome, which no policy may see.
    """
    patterns = [] if spec.action_set is None else spec.action_set.patterns
    found = [columns_by_label(pattern, "action_set.columns", files[0], spec.source) for pattern in patterns]
    for pattern, of in zip(patterns, found, strict=True):
        for column in of.values():
            if refused := spec.why_no_feature(column):
                raise SpecError(
                    f"{spec.name}: action_set.columns = {pattern!r}: {column!r} {refused}.",
                    remedy="name columns that are known before the display.",
                )
    return found


def check_vectors(rows: CheckedRows, frame: pl.DataFrame, columns: VectorColumns) -> None:
    """Report displays with a number that is missing, or none in single precision."""
    sound, remedy = rows.sound, "fill the cell, 0 where it says nothing of the action, or quarantine the row"
    for column in dict.fromkeys(name for of in columns for name in of.values()):
        finite = frame[column].cast(pl.Float32).is_finite().fill_null(False)
        rows.add(column, sound & ~finite, "missing or not finite", remedy)


def vector_codes(frame: pl.DataFrame, columns: VectorColumns) -> dict[str, pl.Series]:
    """Return the numbers of a chunk as columns of the spool."""
    return {
        _place(j, i): frame[column].cast(pl.Float32)
        for j, of in enumerate(columns)
        for i, column in enumerate(of.values())
    }


def vector_places(columns: VectorColumns, labels: Sequence[str]) -> list[list[str]]:
    """Return the column of the spool that holds each number of each action, (d, K). Errors as of `in_order_of`."""
    hint = "add it to the source, or leave the action out by `actions`."
    placed = ({label: _place(j, i) for i, label in enumerate(of)} for j, of in enumerate(columns))
    return [in_order_of(labels, of, "action_set", hint) for of in placed]


def vectors_of(
    columns: Mapping[str, npt.NDArray[np.float32]], places: Sequence[Sequence[str]]
) -> npt.NDArray[np.float32]:
    """Return the vectors of the actions of some displays, shape (n, K, d)."""
    return np.stack([np.column_stack([columns[place] for place in of]) for of in places], axis=2)


def _place(number: int, action: int) -> str:
    return f"{VECTOR_CODE}{number}_{action}"
