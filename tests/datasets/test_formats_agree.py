"""The same rows are the same log, to the bit, in whatever format they are kept (replays of it: tests/statistical)."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator import datasets, load
from evaluator.log import Log
from tests.fuzz.seeds import write_log

FILES = ("log.csv", "log.tsv.gz", "log.parquet", "log.arrow")


def everything(log: Log) -> list[Any]:
    meta = log.with_meta(fingerprint="").meta
    return [log.displays.to_pydict(), log.conversions.to_pydict(), log.actions.to_pydict(), meta]


def in_all_formats(tmp_path_factory: pytest.TempPathFactory, rows: int) -> dict[str, Log]:
    found = {}
    for file in FILES:
        folder = tmp_path_factory.mktemp("formats")
        write_log(folder, file=file, rows=rows)
        found[file] = load(str(folder / "spec.toml"))
        datasets.convert(folder / "spec.toml", folder / "converted")
        found[f"{file}, converted"] = load(str(folder / "converted"))
    return found


def test_csv_tsv_parquet_ipc_and_converted_are_one_log(tmp_path_factory: pytest.TempPathFactory) -> None:
    logs = in_all_formats(tmp_path_factory, 200)
    first = everything(logs["log.csv"])
    for name, log in logs.items():
        assert everything(log) == first, name
