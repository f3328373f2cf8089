"""Columns that say something for each action: policies to be evaluated, and vectors of the actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import LogError, SpecError
from evaluator.log.breaches import SUM_TOLERANCE
from evaluator.log.encoder import value_text
from evaluator.log.schema import NAMED_TARGET, TARGET
from evaluator.reading.cells import Kind, merged_kinds
from evaluator.reading.frames import column_names
from evaluator.reading.labels import value_texts
from evaluator.reading.roles import TARGETS, VECTORS
from evaluator.reading.row_breaches import CheckedRows
from evaluator.reading.row_rules import read_sound
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import FileSpec
from evaluator.reading.spec_sections import Table, TargetSource

CODE = "__per_action_"
PLACEHOLDER = "{action}"

# The column of each action's label.
ByLabel = Mapping[str, str]


@dataclass(frozen=True)
class PerAction:
    """Columns of the displays that say something for each action.

    Parameters
    ----------
    targets
        Columns of the probabilities of each policy to be evaluated, by that policy's column of displays.
    actions
        Column of labels of each policy that has one instead, by its column of displays.
    vectors
        Columns by label of the action, a mapping for each number of the actions' vectors.
    """

    targets: Mapping[str, ByLabel]
    actions: Mapping[str, str]
    vectors: Sequence[ByLabel]

    def kinds(self) -> dict[str, Kind]:
        """Return the kind of each column."""
        kinds: dict[str, Kind] = {name: "float" for of in self._wide() for name in of.values()}
        return merged_kinds(kinds, dict.fromkeys(self.actions.values(), "category"))

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> None:
        """Report displays at which a policy has no action or no probabilities, or a vector lacks a number."""
        for name, column in self.actions.items():
            rows.add(
                column, rows.sound & frame[column].is_null(), f"no action of {name}",
                "write what is shown where the policy says nothing, or quarantine the row",
            )  # fmt: skip
        for name, columns in self.targets.items():
            _check_probabilities(rows, frame, name, columns)
        _check_vectors(rows, frame, self.vectors)

    def codes(self, frame: pl.DataFrame) -> dict[str, pl.Series]:
        """Return the numbers of a chunk as columns of the spool; vectors are of single precision."""
        return {
            f"{CODE}{n}_{i}": frame[column].cast(pl.Float64 if n < len(self.targets) else pl.Float32)
            for n, of in enumerate(self._wide())
            for i, column in enumerate(of.values())
        }

    def probabilities(self, columns: Mapping[str, Any], labels: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
        """Return each policy's probabilities of some displays of the spool, shape (n, K). Errors as of `_in_order`."""
        hint = "name one; if the policy never shows the action, a column of zeros."
        return {
            name: np.column_stack([columns[c] for c in self._places(n, labels, name.replace(":", "."), hint)])
            for n, name in enumerate(self.targets)
        }

    def action_vectors(self, columns: Mapping[str, Any], labels: Sequence[str]) -> npt.NDArray[np.float32] | None:
        """Return the vectors of the actions of some displays of the spool, shape (n, K, d), None where they have none.

        Errors as of `_in_order`.
        """
        if not self.vectors:
            return None
        hint = "add it to the source, or leave the action out by `actions`."
        first = len(self.targets)
        places = [self._places(first + j, labels, "action_set", hint) for j in range(len(self.vectors))]
        return np.stack([np.column_stack([columns[c] for c in of]) for of in places], axis=2)

    def _wide(self) -> list[ByLabel]:
        return [*self.targets.values(), *self.vectors]

    def _places(self, n: int, labels: Sequence[str], section: str, hint: str) -> list[str]:
        """Return the column of each label, (K,).

        Raises LogError, with the `section` of the spec and a `hint`, if an action of the log has no such column.
        """
        columns = {label: f"{CODE}{n}_{i}" for i, label in enumerate(self._wide()[n])}
        for label in labels:
            if label not in columns:
                raise LogError(f"[{section}] has no column for action {label!r} of the log.", remedy=hint)
        return [columns[label] for label in labels]


def target_columns(spec: FileSpec, files: Sequence[TablePart]) -> dict[str, dict[str, str]]:
    """Return the columns of probabilities of each policy to be evaluated. Errors as of `_by_label`."""
    if spec.target is None:
        return {}
    asked = {TARGET: spec.target.columns, **{NAMED_TARGET + name: of.columns for name, of in spec.target.named.items()}}
    found = {}
    for name, columns in asked.items():
        key = f"{name.replace(':', '.')}.columns"
        if isinstance(columns, str):
            found[name] = _by_label(columns, key, files[0], spec.source)
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


def vector_columns(spec: FileSpec, files: Sequence[TablePart]) -> list[dict[str, str]]:
    """Return the columns of each number of the vectors, none without ``[action_set]``.

    Raises SpecError if no column fits, or if one is an outcome, which no policy may see.
    """
    patterns = [] if spec.action_set is None else spec.action_set.patterns
    found = [_by_label(pattern, "action_set.columns", files[0], spec.source) for pattern in patterns]
    for pattern, of in zip(patterns, found, strict=True):
        for column in of.values():
            if refused := spec.why_no_feature(column):
                raise SpecError(
                    f"{spec.name}: action_set.columns = {pattern!r}: {column!r} {refused}.",
                    remedy="name columns that are known before the display.",
                )
    return found


def _by_label(pattern: str, key: str, file: TablePart, source: Table) -> dict[str, str]:
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


def _check_probabilities(rows: CheckedRows, frame: pl.DataFrame, target: str, columns: Mapping[str, str]) -> None:
    sound = rows.sound
    for column in columns.values():
        for rule in TARGETS["columns"].rules:
            rows.add(column, sound & rule.breaks(frame[column].cast(pl.Float64)), rule.problem, rule.repair)
    # A row is told of once: of its cells if these are wrong, else of its sum.
    cells = rows.sound
    total = frame.select(pl.sum_horizontal(*dict.fromkeys(columns.values()))).to_series().cast(pl.Float64)
    first = next(iter(columns.values()))
    rows.add(
        first, cells & ((total - 1.0).abs() > SUM_TOLERANCE), "probabilities of a row do not sum to 1",
        f"name the columns of all actions in [{target.replace(':', '.')}], {len(columns)} are named, and normalise "
        "them", values=total,
    )  # fmt: skip


def _check_vectors(rows: CheckedRows, frame: pl.DataFrame, columns: Sequence[ByLabel]) -> None:
    """Report displays with a number that is missing, or none in single precision."""
    sound = rows.sound
    for column in dict.fromkeys(name for of in columns for name in of.values()):
        for rule in VECTORS.rules:
            rows.add(column, sound & rule.breaks(frame[column]), rule.problem, rule.repair)


class PolicyActions:
    """The actions that a policy takes, in a table of their own: displays find theirs by id as they pass by.

    Memory: an id and a label of each row. Time: a binary search a display. Raises LogError if a row has no id, or the
    id of another one.
    """

    def __init__(self, source: TargetSource, action: str, files: list[TablePart]) -> None:
        def check_once(rows: CheckedRows, table: pl.DataFrame) -> None:
            again = ~value_texts(table[source.display]).is_first_distinct()
            rows.add(source.display, rows.sound & again, "twice", "keep one row of each display")

        kinds: dict[str, Kind] = {source.display: "text", action: "category"}
        table = read_sound(files, source, kinds, [TARGETS["display"]], check_once)
        ids = value_texts(table[source.display])
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


def policy_actions(spec: FileSpec, others: Mapping[str, list[TablePart]]) -> dict[str, PolicyActions]:
    """Read the tables of actions that policies take, by the name of the column that a display gets of them."""
    columns = target_actions(spec)
    return {
        columns[NAMED_TARGET + name]: PolicyActions(of.source, of.action, others[f"target.{name}.source"])
        for name, of in ({} if spec.target is None else spec.target.named).items()
        if of.source is not None and of.action is not None
    }
